"""The rows of all subscriptions, in labels that stay: what the papers' algorithms index.

A row is one conjunction. Its number, and the room of its predicates, are reused once its subscription is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.constants import constants_of, selected
from harken.codes.encode import EncodedBatch, encode
from harken.codes.flat import Flat
from harken.events import EventBatch
from harken_lab.papers.growing import FIRST_LABEL, LAST_LABEL, GrowingDictionary, MovedLabels
from harken_lab.papers.kernels.row_table import RowTable

_Item = TypeVar("_Item", bound=np.generic)

NONE = -1
# Removed predicates are collected once there are more of them than this, and than live ones.
_FEW = 4_096


class LabelledRows:
    """Rows that are added and removed. `widest` is as in `GrowingDictionary`: labels of integers may index tables."""

    def __init__(self, widest: int = 0) -> None:
        self.columns: list[Column] = []
        self.dictionaries: list[GrowingDictionary] = []
        self.numbers = np.empty(0, np.int32)
        """The subscription of each row; -1 if there is no such row."""
        self.inexact = np.empty(0, np.bool_)
        """Rows that say less than their subscription does: events that they match must be verified."""
        self.inexact_count = 0
        """The number of inexact rows."""
        self.count = 0
        """The number of rows."""
        self.repeats = False
        """Whether some subscription has, or had, several rows."""
        self._widest = widest
        self._places: dict[Column, int] = {}
        self._column_uses = np.zeros(0, np.int64)
        self._free_places: list[int] = []
        self._free: list[int] = []
        self._first = np.empty(0, np.int32)
        self._following = np.empty(0, np.int32)
        self._table = RowTable(
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.empty(0, np.uint32),
            np.empty(0, np.uint32),
        )
        self._size = self._size_before = 0
        self._used = 0
        self._garbage = 0

    @property
    def size(self) -> int:
        """One more than the greatest row so far: the length of arrays by row."""
        return self._size

    @property
    def table(self) -> RowTable:
        """The predicates of all rows. Invalid after the next change."""
        return self._table

    @property
    def spans(self) -> list[int]:
        """For every column, the size of a table by label; 0 if its labels are not dense."""
        return [2 * len(each) + 2 if each.is_dense else 0 for each in self.dictionaries]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of rows."""
        arrays = (*self._table, self.numbers, self.inexact, self._first, self._following)
        return sum(each.nbytes for each in arrays)

    @property
    def predicates(self) -> int:
        """The number of predicates of all rows."""
        return self._used - self._garbage

    def alive(self) -> NDArray[np.int32]:
        """All rows, ascending."""
        return np.flatnonzero(self.numbers[: self._size] != NONE).astype(np.int32)

    def of(self, numbers: Iterable[int]) -> NDArray[np.int32]:
        """The rows of these subscriptions. Raises KeyError for an unknown number."""
        rows: list[int] = []
        for number in numbers:
            row = int(self._first[number]) if number < len(self._first) else NONE
            if row == NONE:
                raise KeyError(number)
            while row != NONE:
                rows.append(row)
                row = int(self._following[row])
        return np.array(rows, np.int32)

    def add(self, flat: Flat) -> tuple[NDArray[np.int32], bool]:
        """Add conjunctions. Returns their rows, and whether the labels of other rows changed."""
        count = len(flat)
        self._size_before = self._size
        rows = self._take_rows(count)
        has_moved = False
        parts: list[tuple[int, NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint32]]] = []
        for each in flat.columns:
            place = self._place(each.column)
            low, high, moved = self._labelled(self.dictionaries[place], each)
            has_moved |= moved is not None and self._move(place, moved)
            parts.append((place, each.rows, low, high))
        sizes = np.zeros(count, np.int32)
        for place, with_predicate, _, _ in parts:
            sizes[with_predicate] += 1
            self._column_uses[place] += len(with_predicate)
        starts = self._used + np.cumsum(sizes, dtype=np.int64) - sizes
        self._make_room(int(rows.max(initial=-1)) + 1, int(sizes.sum()), int(flat.numbers.max(initial=-1)) + 1)
        table = self._table
        table.starts[rows], table.sizes[rows] = starts, sizes
        self._used += int(sizes.sum())
        at = starts.copy()
        for place, with_predicate, low, high in sorted(parts, key=lambda part: part[0]):
            to = at[with_predicate]
            table.columns[to], table.low[to], table.high[to] = place, low, high
            at[with_predicate] += 1
        self.numbers[rows], self.inexact[rows] = flat.numbers, flat.inexact
        self.inexact_count += int(np.count_nonzero(flat.inexact))
        self._link(rows, flat.numbers)
        self.count += count
        return rows, has_moved

    def remove(self, rows: NDArray[np.int32]) -> None:
        """Remove rows. They must be all rows of some subscriptions."""
        self._first[self.numbers[rows]] = NONE
        self.numbers[rows] = NONE
        self._garbage += int(self._table.sizes[rows].sum())
        self.inexact_count -= int(np.count_nonzero(self.inexact[rows]))
        self._release_columns(rows)
        self._free.extend(rows.tolist())
        self.count -= len(rows)
        if self._garbage > max(_FEW, self._used // 2):
            self._collect()

    def take_back(self, rows: NDArray[np.int32]) -> None:
        """Undo the last `add`: remove its rows, and restore the size before it."""
        self.remove(rows)
        self._free = [row for row in self._free if row < self._size_before]
        self._size = self._size_before

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch of events in labels."""
        if not self._free_places:
            return encode(batch, self.columns, self.dictionaries)
        used = sorted(self._places.values())
        encoded = encode(batch, [self.columns[each] for each in used], [self.dictionaries[each] for each in used])
        codes = np.zeros((len(self.columns), encoded.codes.shape[1]), np.uint32)
        codes[used] = encoded.codes
        has_value = np.zeros(len(self.columns), np.bool_)
        has_value[used] = encoded.has_value
        counts = np.zeros((len(encoded.several), len(self.columns)), np.int64)
        counts[:, used] = np.diff(encoded.starts).reshape(len(encoded.several), len(used))
        return EncodedBatch(codes, has_value, encoded.several, np.append(0, np.cumsum(counts)), encoded.values)

    def _take_rows(self, count: int) -> NDArray[np.int32]:
        """Numbers for new rows, freed ones first."""
        reused = min(count, len(self._free))
        rows = np.empty(count, np.int32)
        if reused:
            rows[:reused] = self._free[: -reused - 1 : -1]
            del self._free[-reused:]
        rows[reused:] = np.arange(self._size, self._size + count - reused)
        self._size += count - reused
        return rows

    def _place(self, column: Column) -> int:
        """The place of a column. A new column gets a freed place, or a new one."""
        place = self._places.get(column)
        if place is None:
            if not self._free_places:
                self._free_places.append(len(self.columns))
                self.columns.append(column)
                self.dictionaries.append(GrowingDictionary(column))
                if len(self.columns) > len(self._column_uses):
                    self._column_uses = longer(self._column_uses, grown(len(self._column_uses), len(self.columns)), 0)
            place = self._places[column] = self._free_places.pop()
            self.columns[place] = column
            self.dictionaries[place] = GrowingDictionary(column, self._widest)
        return place

    def _release_columns(self, rows: NDArray[np.int32]) -> None:
        """Subtract the predicates of removed rows from the uses of their columns. A column without uses is freed."""
        _, at = predicates_of(self._table, rows)
        columns, counts = np.unique(self._table.columns[at], return_counts=True)
        self._column_uses[columns] -= counts
        for place in columns[self._column_uses[columns] == 0].tolist():
            del self._places[self.columns[place]]
            self.dictionaries[place] = GrowingDictionary(self.columns[place])
            self._free_places.append(place)

    def _labelled(
        self, dictionary: GrowingDictionary, predicates: ColumnPredicates
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], MovedLabels | None]:
        """The intervals of predicates in labels."""
        constants = constants_of(predicates.column, predicates.constants)
        is_used = np.zeros(len(constants), np.bool_)
        is_used[predicates.low[predicates.low >= 0]] = True
        is_used[predicates.high[predicates.high >= 0]] = True
        # The last place is for -1: no constant.
        labels = np.zeros(len(constants) + 1, np.uint32)
        labels[:-1][is_used], moved = dictionary.add(selected(constants, is_used))
        low = labels[predicates.low] + predicates.low_side
        low[predicates.low < 0] = FIRST_LABEL
        high = labels[predicates.high] + predicates.high_side - np.uint32(1)
        high[predicates.high < 0] = LAST_LABEL
        return low, high, moved

    def _move(self, place: int, moved: MovedLabels) -> bool:
        """Give the predicates of a column their new labels. Returns whether the column has any."""
        table = self._table
        of_column = np.flatnonzero(table.columns[: self._used] == place)
        table.low[of_column] = moved.low(table.low[of_column])
        table.high[of_column] = moved.high(table.high[of_column])
        return bool(len(of_column))

    def _link(self, rows: NDArray[np.int32], numbers: NDArray[np.int32]) -> None:
        """Index rows by the number of their subscription. The rows of one subscription are consecutive."""
        starts = np.ones(len(rows), np.bool_)
        starts[1:] = numbers[1:] != numbers[:-1]
        self._following[rows] = NONE
        inside = np.flatnonzero(~starts)
        self._following[rows[inside - 1]] = rows[inside]
        self._first[numbers[starts]] = rows[starts]
        self.repeats |= bool(len(inside))

    def _make_room(self, rows: int, predicates: int, numbers: int) -> None:
        table = self._table
        if rows > len(self.numbers):
            size = grown(len(self.numbers), rows)
            self.numbers = longer(self.numbers, size, NONE)
            self.inexact = longer(self.inexact, size, 0)
            self._following = longer(self._following, size, NONE)
            table = table._replace(starts=longer(table.starts, size, 0), sizes=longer(table.sizes, size, 0))
        if self._used + predicates > len(table.columns):
            size = grown(len(table.columns), self._used + predicates)
            table = table._replace(
                columns=longer(table.columns, size, 0),
                low=longer(table.low, size, 0),
                high=longer(table.high, size, 0),
            )
        if numbers > len(self._first):
            self._first = longer(self._first, grown(len(self._first), numbers), NONE)
        self._table = table

    def _collect(self) -> None:
        """Close the gaps between predicates, and forget constants that no predicate has."""
        table, alive = self._table, self.alive()
        sizes = table.sizes[alive].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        source = np.repeat(table.starts[alive] - starts, sizes) + np.arange(sizes.sum())
        for each in (table.columns, table.low, table.high):
            each[: len(source)] = each[source]
        table.starts[alive] = starts
        self._used, self._garbage = len(source), 0
        for place, dictionary in enumerate(self.dictionaries):
            of_column = np.flatnonzero(table.columns[: self._used] == place)
            low, high = table.low[of_column], table.high[of_column]
            used = np.union1d(low & ~np.uint32(1), high + (high & np.uint32(1)))
            dictionary.keep(np.isin(dictionary.labels, used))


def predicates_of(table: RowTable, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All predicates of some rows: for each, the index of its row among these rows, and its place in the table."""
    sizes = table.sizes[rows].astype(np.int64)
    at = np.repeat(table.starts[rows] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return np.repeat(np.arange(len(rows)), sizes), at


def grown(size: int, needed: int) -> int:
    """The size to grow an array to: at least `needed`, with spare room so that it grows rarely."""
    return max(needed, size + size // 2, 64)


def longer(array: NDArray[_Item], size: int, value: int) -> NDArray[_Item]:
    """The array extended to `size` elements (or rows of elements), the new ones filled with `value`."""
    extended = np.full((size, *array.shape[1:]), value, array.dtype)
    extended[: len(array)] = array
    return extended
