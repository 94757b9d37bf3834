"""An event: what happened, as attributes with values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.errors import InvalidValueError
from harken.events.canonical import canonical, too_deep
from harken.events.conform import conform
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.paths import Path
from harken.schema.values import Value

if TYPE_CHECKING:
    from harken.schema import Schema


@dataclass(frozen=True, slots=True)
class Event:
    """An event in canonical form. Make one with `Event.of`; the attributes are to be read, not changed."""

    attributes: dict[str, Any]

    @classmethod
    def of(cls, raw: Mapping[str, Any] | Event, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Event:
        """The event that raw attributes describe. Raises EventError, or LimitError if it is too large or too deep."""
        try:
            if isinstance(raw, Event):
                attributes = raw.attributes
            elif type(raw) is dict or isinstance(raw, Mapping):  # an abstract class takes its time to tell
                attributes = canonical(raw, limits)
            else:
                raise InvalidValueError(f"an event is an object of attributes and values, not a {type(raw).__name__}")
            return cls(attributes if schema is None else conform(attributes, schema))
        except RecursionError:  # where max_event_depth was set beyond what Python can follow
            raise too_deep(limits) from None

    def values(self, path: Path) -> list[Value | dict[str, Any]]:
        """All values of an attribute in the whole event, through arrays; an object at the end of the path is one."""
        found: list[Any] = [self.attributes]
        for key in path:
            found = [
                value for holder in found if type(holder) is dict and key in holder for value in _each(holder[key])
            ]
        return found


def _each(value: Any) -> Iterator[Any]:
    if type(value) is list:
        for element in value:
            yield from _each(element)
    else:
        yield value
