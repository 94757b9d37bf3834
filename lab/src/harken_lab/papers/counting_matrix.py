"""Shared by the two layouts with a matrix (ToPSS, 3.3): predicates by rows.

The matrix needs no lists, and no search when a subscription is removed, but a cell for every pair of predicate and row:
a subscription for which it would exceed `max_matrix_bytes` is rejected.

A row is removed by the predicates that the row table has for it or, as in the paper, by the matrix alone: its column
says which predicates it has.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError, LimitError
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.counting import Counting, RowCounters, most_predicates
from harken_lab.papers.kernels.counting_kernels import insert_numbers, release_numbers, release_uses
from harken_lab.papers.labelled_rows import grown
from harken_lab.papers.row_matcher import UNLIMITED
from harken_lab.papers.row_predicates import PredicateIndex, entries_of

DELETIONS = ("rows", "matrix")
"""Where the predicates of a row that is removed are read: from the row table, or from the matrix."""


class CountingMatrix(Counting):
    """Counting with a matrix of bytes or of words."""

    element: ClassVar[type[np.unsignedinteger[Any]]]
    """The type of an element of the matrix."""
    rows_each: ClassVar[int]
    """Rows per element."""

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, index: str = "lists", vector: str = "numbers", deletion: str = "rows"
    ) -> None:
        if deletion not in DELETIONS:
            raise CapabilityError(f"`deletion` is one of {', '.join(DELETIONS)}, not {deletion!r}")
        super().__init__(limits, index)
        self._index = PredicateIndex(index, vector)
        self._is_by_column = deletion == "matrix"
        self._counters = RowCounters()
        self._clear_matrix()

    @abstractmethod
    def _set(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        """Set the cells of pairs of a predicate and a row that has it."""

    @abstractmethod
    def _unset(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        """Clear the cells of pairs of a predicate and a row."""

    @abstractmethod
    def _column(self, row: int, height: int) -> NDArray[np.unsignedinteger[Any]]:
        """The column of a row, down to a height: by predicate, 1 if the row has it, else 0."""

    @property
    def _predicates(self) -> PredicateIndex:
        return self._index

    def _insert(self, rows: NDArray[np.int32]) -> None:
        self._index.fit(self.rows.spans)
        before = self._index.size if len(self._index) else 0
        if before:
            numbers, owners, needed = self._numbered(rows)
        else:
            entries, needed = entries_of(self.rows.table, rows)
            numbers, owners = self._index.build(entries).astype(np.int32), rows[entries.places]
        try:
            self._make_room(self._index.size, self.rows.size)
        except LimitError:
            self._release(rows)
            self._index.shrink(before)
            raise
        self._set(numbers, owners)
        self._counters.set(rows, rows, needed)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        self._unset(*(self._release_by_columns(rows) if self._is_by_column else self._release(rows)))
        self._counters.clear(rows)

    def _clear(self) -> None:
        self._index.clear()
        self._counters = RowCounters()
        self._clear_matrix()

    def _memory(self) -> dict[str, int]:
        return self._index.memory | {"matrix": self._matrix.nbytes, "counters": self._counters.nbytes}

    def _numbered(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Number the predicates of rows. Returns the numbers, the row of each, and how many must hold for each row."""
        table, index = self.rows.table, self._index
        ends, must_hold = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        numbers = np.empty(most_predicates(rows, table), np.int32)
        row_numbers = np.empty(2 * int(table.sizes[rows].sum()), np.int32)
        done = 0
        while True:
            done = insert_numbers(index.index, table, rows, done, must_hold, numbers, ends, row_numbers)
            if done == len(rows):
                break
            index.grow(len(numbers))
        return row_numbers[: ends[-1]], np.repeat(rows, np.diff(ends, prepend=0)), must_hold

    def _release(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Release the predicates of rows. Returns their numbers, and the row of each."""
        table = self.rows.table
        row_numbers = np.empty(2 * int(table.sizes[rows].sum()), np.int32)
        ends = np.zeros(len(rows), np.int64)
        release_numbers(
            self._index.index, table, rows, np.empty(most_predicates(rows, table), np.int32), ends, row_numbers
        )
        return row_numbers[: ends[-1]], np.repeat(rows, np.diff(ends, prepend=0))

    def _release_by_columns(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """As `_release`, with the predicates that the columns of the rows have."""
        height = min(self._index.size, len(self._matrix))
        numbers = [np.flatnonzero(self._column(row, height)).astype(np.int32) for row in rows.tolist()]
        released = np.concatenate([np.empty(0, np.int32), *numbers])
        release_uses(self._index.index, released)
        return released, np.repeat(rows, [len(each) for each in numbers])

    def _clear_matrix(self) -> None:
        self._matrix = np.zeros((0, 0), self.element)

    def _make_room(self, predicates: int, rows: int) -> None:
        """Make the matrix at least this large. Raises LimitError if it may not be."""
        (height, width), columns = self._matrix.shape, -(-rows // self.rows_each)
        if predicates <= height and columns <= width:
            return
        limit, item = self.limits.max_matrix_bytes, self._matrix.itemsize
        size = predicates * columns * item
        if size > limit:
            raise LimitError(
                f"a matrix of {predicates:,} predicates and {rows:,} rows takes {size:,} bytes,"
                f" more than `max_matrix_bytes`, which is {limit:,}",
                limit="max_matrix_bytes",
                hint="counting_lists and columnar need no matrix",
            )
        # Spare cells, as far as the limit allows, so that the matrix grows rarely.
        taller = grown(height, predicates) if predicates > height else height
        wider = grown(width, columns) if columns > width else width
        if taller * wider * item > limit or limit == UNLIMITED:
            taller, wider = predicates, columns
        matrix = np.zeros((taller, wider), self.element)
        # If the matrix shrinks, the dropped cells are empty.
        kept = min(height, taller), min(width, wider)
        matrix[: kept[0], : kept[1]] = self._matrix[: kept[0], : kept[1]]
        self._matrix = matrix
