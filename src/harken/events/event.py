"""An event: what happened, as attributes with values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.errors import InvalidValueError
from harken.events.canonical import canonical, too_deep
from harken.events.conform import conform
from harken.events.records import content_of, is_record
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.paths import DOCUMENT, Path
from harken.schema.values import Value

if TYPE_CHECKING:
    from harken.schema import Schema


BYTES = (bytes, bytearray, memoryview)
"""What an XML document comes as."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in canonical form. Make one with `Event.of`; the attributes are to be read, not changed."""

    attributes: dict[str, Any]

    @classmethod
    def of(
        cls,
        raw: Any,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        names: Collection[str] | None = None,
    ) -> Event:
        """The event that a mapping, a dataclass, a named tuple or a pydantic model describes.

        Bytes are an XML document, the only attribute of its event. With names it has only the attributes of these
        names: the others are not looked at, whatever they are. Raises EventError, or LimitError if it is too large or
        too deep.
        """
        try:
            if type(raw) is dict:
                attributes = canonical(raw, limits, names)
            elif isinstance(raw, Event):
                attributes = raw.attributes
            elif isinstance(raw, BYTES):
                attributes = {} if names is not None and DOCUMENT[0] not in names else _document(raw, limits)
            else:
                attributes = canonical(_mapping(raw, names), limits, names)
            return cls(attributes if schema is None else conform(attributes, schema))
        except RecursionError:  # where max_event_depth was set beyond what Python can follow
            raise too_deep(limits) from None

    def values(self, path: Path) -> list[Value | dict[str, Any]]:
        """All values of an attribute in the whole event, through arrays; an object at the end of the path is one."""
        found: list[Any] = [self.attributes]
        for key in path:
            reached: list[Any] = []
            for holder in found:
                if type(holder) is dict and key in holder:
                    _add_each(holder[key], reached)
            found = reached
        return found


def _mapping(raw: object, names: Collection[str] | None) -> Mapping[Any, Any]:
    content = content_of(raw, names) if is_record(raw) else raw
    if isinstance(content, Mapping):
        return content
    kind = type(content)
    if kind is str:
        hint = "`json.loads(text)` makes one of JSON; an XML document is passed as bytes"
    elif kind in (list, tuple, set) or hasattr(content, "__arrow_c_stream__"):
        hint = "`match_batch` takes many events at once"
    elif hasattr(content, "to_dict"):  # such as a Series of pandas
        hint = "pass its to_dict()"
    else:
        hint = "pass a dict, a dataclass, a named tuple, a pydantic model, or an XML document as bytes"
    raise InvalidValueError(f"an event is an object of attributes and values, not a {kind.__name__}", hint=hint)


def _document(raw: bytes | bytearray | memoryview, limits: Limits) -> dict[str, Any]:
    from harken.events.encodings import text_within

    return {DOCUMENT[0]: text_within(bytes(raw), limits)}


def _add_each(value: Any, found: list[Any]) -> None:
    """Add a value, of an array all elements."""
    if type(value) is list:
        for element in value:
            if type(element) is list:
                _add_each(element, found)
            else:
                found.append(element)
    else:
        found.append(value)
