"""Events that are known by their columns, each made only when somebody asks for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from harken.events.arrow_columns import DenseColumn, column_cells, dense_column
from harken.events.cells import PathCells, cells_of
from harken.events.event import Event
from harken.limits import Limits
from harken.schema.paths import Path

if TYPE_CHECKING:
    from harken.schema import Schema

_MANY = 8
"""Once so much of all rows, an eighth, was asked for, the others are made too."""


class LazyEvents(Sequence[Event]):
    """The rows of tables of which `are_sound` holds, so that none of them can fail when it becomes an event."""

    __slots__ = ("_limits", "_made", "_names", "_schema", "_size", "_tables")

    def __init__(
        self, tables: Sequence[Any], schema: Schema | None, limits: Limits, names: frozenset[str] | None = None
    ) -> None:
        self._tables = tables
        self._schema = schema
        self._limits = limits
        self._names = names
        self._size: int = sum(table.num_rows for table in tables)
        self._made: dict[int, Event] = {}

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Event]:
        return map(self._event, self._contents())

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            rows = range(len(self))[index]
            if rows.step == 1:
                return self._part(rows.start, rows.start + len(rows))
            return tuple(self[row] for row in rows)
        event = self._made.get(index)
        return self._make(range(len(self))[index]) if event is None else event

    def cells(self, path: Path) -> PathCells:
        """What `event.values(path)` gives for every event, as arrays."""
        from pyarrow import ArrowException

        try:
            return column_cells(self._tables, path)
        except ArrowException:  # it has not every function for every type
            return cells_of(tuple(self), path)

    def dense(self, path: Path) -> DenseColumn | None:
        """The values at a path as they lie in memory, where every event has at most one, of the same kind."""
        return dense_column(self._tables, path)

    @abstractmethod
    def _content(self, row: int) -> dict[str, Any]:
        """One row as raw Python."""

    @abstractmethod
    def _contents(self) -> Iterable[dict[str, Any]]:
        """All rows as raw Python."""

    @abstractmethod
    def _part(self, start: int, stop: int) -> Self:
        """The rows from start to stop."""

    def _make(self, row: int) -> Event:
        """A row is asked for because a subscription may match, and then others may: they find it made."""
        if _MANY * len(self._made) >= len(self):  # one among many is made in a fraction of the time
            self._made = dict(enumerate(self))
        elif row not in self._made:
            self._made[row] = self._event(self._content(row))
        return self._made[row]

    def _event(self, content: dict[str, Any]) -> Event:
        return Event.of(content, self._schema, self._limits, self._names)
