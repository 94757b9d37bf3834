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
"""Types that hold an XML document."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in canonical form. Make one with `Event.of`, and do not change its attributes."""

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

        Bytes are an XML document, the only attribute of its event. With `names`, only these attributes are read, and
        the event has no others. Raises EventError, or LimitError if the event is too large or too deep.
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
        except RecursionError:  # max_event_depth is above what Python's stack allows
            raise too_deep(limits) from None

    def values(self, path: Path) -> list[Value | dict[str, Any]]:
        """All values at a path, through arrays. An object at the end of the path is a value."""
        values: list[Any] = [self.attributes]
        for key in path:
            reached: list[Any] = []
            for holder in values:
                if type(holder) is dict and key in holder:
                    _add_each(holder[key], reached)
            values = reached
        return values


def _mapping(raw: object, names: Collection[str] | None) -> Mapping[Any, Any]:
    content = content_of(raw, names) if is_record(raw) else raw
    if isinstance(content, Mapping):
        return content
    kind = type(content)
    if kind is str:
        hint = "parse JSON with `json.loads(text)`; pass an XML document as bytes"
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


def _add_each(value: Any, reached: list[Any]) -> None:
    """Add a value or, if it is an array, all its elements."""
    if type(value) is list:
        for element in value:
            if type(element) is list:
                _add_each(element, reached)
            else:
                reached.append(element)
    else:
        reached.append(value)
