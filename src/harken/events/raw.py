"""Events as they came: what operators are passed, which may be anything, an image as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harken.events.arrow_rows import is_arrow
from harken.events.event import BYTES
from harken.events.records import content_of, is_record
from harken.schema.paths import DOCUMENT, Path

OWN = "_harken_"
"""What the names of columns begin with that are none of the event's."""


class RawEvent:
    """One event. Nothing in it was looked at, counted or converted."""

    __slots__ = ("content",)

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def seen(self, names: Sequence[str] | None) -> Mapping[str, Any]:
        """The attributes of these names, as far as it has them; None: all."""
        if names is None:
            return self.content
        return {name: self.content[name] for name in names if name in self.content}

    def at(self, path: Path) -> Any:
        """What is at a path, a set of values as a whole; None if there is nothing."""
        found: Any = self.content
        for key in path:
            if isinstance(found, list | tuple):
                found = [each[key] for each in found if isinstance(each, Mapping) and each.get(key) is not None] or None
            else:
                found = found.get(key) if isinstance(found, Mapping) else None
            if found is None:
                return None
        return found


class RawEvents:
    """The input as it came, by position."""

    __slots__ = ("_source", "_table")

    def __init__(self, source: Any) -> None:
        self._source = source
        self._table: Any = None

    def at(self, position: int) -> RawEvent:
        if not is_arrow(self._source):
            return RawEvent(content(self._source[position]))
        if self._table is None:
            import pyarrow as pa

            self._table = self._source if isinstance(self._source, pa.Table) else pa.table(self._source)
        return RawEvent(_RowOfTable(self._table, position))


class _RowOfTable(Mapping[str, Any]):
    """A row of an Arrow table, of which only what is asked for becomes Python objects."""

    __slots__ = ("_known", "_position", "_table")

    def __init__(self, table: Any, position: int) -> None:
        self._table = table
        self._position = position
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._table.column(name)[self._position].as_py()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._table.column_names if not name.startswith(OWN))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names


def content(raw: Any) -> Mapping[str, Any]:
    """The attributes of whatever an event may come as."""
    if isinstance(raw, Mapping):
        return raw
    if isinstance(raw, BYTES):
        return {DOCUMENT[0]: raw}
    if hasattr(raw, "attributes") and isinstance(raw.attributes, Mapping):
        attributes: Mapping[str, Any] = raw.attributes
        return attributes
    found = content_of(raw, None) if is_record(raw) else raw
    assert isinstance(found, Mapping), "it was looked at before"
    return found
