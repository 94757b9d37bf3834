"""Views of events that are stored in columns; single events are made on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from harken.events.arrow_columns import DenseColumn, column_branching, column_cells, column_counts, dense_column
from harken.events.cells import PathCells
from harken.events.event import Event
from harken.events.object_views import ObjectViews
from harken.limits import Limits
from harken.schema.paths import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.schema import Schema

_MANY = 8
"""Make all events once one in `_MANY` has been made."""


class ColumnViews(ABC):
    """The rows of tables that satisfy `are_sound`: every row is a valid event."""

    __slots__ = ("_limits", "_made", "_names", "_schema", "_size", "_tables")

    is_lazy = True

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

    def event(self, index: int) -> Event:
        made = self._made.get(index)
        return self._make(range(len(self))[index]) if made is None else made

    def part(self, rows: slice) -> ColumnViews | ObjectViews:
        chosen = range(len(self))[rows]
        if chosen.step == 1:
            return self._part(chosen.start, chosen.start + len(chosen))
        return ObjectViews(tuple(map(self.event, chosen)))

    def cells(self, path: Path) -> PathCells:
        from pyarrow import ArrowException

        try:
            return column_cells(self._tables, path)
        except ArrowException:  # Arrow lacks some functions for some types
            return ObjectViews(tuple(self)).cells(path)

    def dense(self, path: Path) -> DenseColumn | None:
        from pyarrow import ArrowException

        try:
            return dense_column(self._tables, path)
        except ArrowException:  # strings of several tables may be too many for one array
            return None

    def counts(self, path: Path) -> NDArray[np.int64]:
        from pyarrow import ArrowException

        try:
            return column_counts(self._tables, path)
        except ArrowException:  # as above
            return ObjectViews(tuple(self)).counts(path)

    def known_names(self) -> Iterable[str]:
        for table in self._tables:
            for name, column in zip(table.column_names, table.columns, strict=True):
                if column.null_count < len(column):
                    yield name

    def branching(self, prefix: Path) -> NDArray[np.bool_]:
        from pyarrow import ArrowException

        try:
            return column_branching(self._tables, prefix)
        except ArrowException:  # as above
            return ObjectViews(tuple(self)).branching(prefix)

    @abstractmethod
    def _content(self, row: int) -> dict[str, Any]:
        """One row as raw Python."""

    @abstractmethod
    def _contents(self) -> Iterable[dict[str, Any]]:
        """All rows as raw Python."""

    @abstractmethod
    def _part(self, start: int, stop: int) -> Self:
        """The views of the rows from start to stop."""

    def _make(self, row: int) -> Event:
        """Make an event and keep it: several subscriptions may be verified against it."""
        if _MANY * len(self._made) >= len(self):  # making all at once is several times faster per event
            self._made = dict(enumerate(self))
        elif row not in self._made:
            self._made[row] = self._event(self._content(row))
        return self._made[row]

    def _event(self, content: dict[str, Any]) -> Event:
        return Event.of(content, self._schema, self._limits, self._names)
