"""Which attributes of an event are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harken.schema import Schema


def looked_at(asked: frozenset[str] | None, schema: Schema | None) -> frozenset[str] | None:
    """The names of the attributes to look at where subscriptions ask for these; None for all.

    What the schema declares is looked at too. Where it has event types, the whole event is judged by them.
    """
    if asked is None or schema is None:
        return asked
    return None if schema.event_types else asked | {path[0] for path in schema.attributes}
