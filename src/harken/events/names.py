"""Which attributes of an event are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harken.schema import Schema


def looked_at(used: frozenset[str] | None, schema: Schema | None) -> frozenset[str] | None:
    """The names of the attributes to read: those that subscriptions use and those that the schema declares.

    None means all. A schema with event types checks the whole event.
    """
    if used is None or schema is None:
        return used
    return None if schema.event_types else used | {path[0] for path in schema.attributes}
