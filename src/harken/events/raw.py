"""Events as they came, for operators: attributes may hold anything, such as an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harken.events.arrow_rows import is_arrow
from harken.events.event import BYTES
from harken.events.records import content_of, is_record
from harken.schema.paths import DOCUMENT, Path

OWN = "_harken_"
"""Prefix of column names that are not attributes of the event."""


class RawEvent:
    """One event, neither checked nor converted."""

    __slots__ = ("content",)

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def seen(self, names: Sequence[str] | None) -> Mapping[str, Any]:
        """The named attributes that the event has; None: all."""
        if names is None:
            return self.content
        return {name: self.content[name] for name in names if name in self.content}

    def at(self, path: Path) -> Any:
        """The value at a path, or the list of values if it passes an array; None if there is none."""
        value: Any = self.content
        for key in path:
            if isinstance(value, list | tuple):
                value = [each[key] for each in value if isinstance(each, Mapping) and each.get(key) is not None] or None
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is None:
                return None
        return value


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
    """A row of an Arrow table, whose cells become Python objects on demand."""

    __slots__ = ("_cells", "_position", "_table")

    def __init__(self, table: Any, position: int) -> None:
        self._table = table
        self._position = position
        self._cells: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._cells:
            self._cells[name] = self._table.column(name)[self._position].as_py()
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._table.column_names if not name.startswith(OWN))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names


def content(raw: Any) -> Mapping[str, Any]:
    """The attributes of an event in any form that `Event.of` takes."""
    if isinstance(raw, Mapping):
        return raw
    if isinstance(raw, BYTES):
        return {DOCUMENT[0]: raw}
    if hasattr(raw, "attributes") and isinstance(raw.attributes, Mapping):
        attributes: Mapping[str, Any] = raw.attributes
        return attributes
    mapping = content_of(raw, None) if is_record(raw) else raw
    assert isinstance(mapping, Mapping), "validated before"
    return mapping
