"""Shared by the counting algorithms: predicates, each stored once, and a counter for every row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode import EncodedBatch
from harken.kernels.vector import ROWS
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.counting_kernels import (
    CountedRows,
    Counters,
    CountingScratch,
    delete_from_lists,
    insert_into_lists,
)
from harken_lab.papers.kernels.row_table import RowTable
from harken_lab.papers.labelled_rows import grown, longer
from harken_lab.papers.row_matcher import RowMatcher
from harken_lab.papers.row_predicates import PredicateIndex, entries_of


class RowCounters:
    """A slot for every row, with its counter and the number of its predicates that must hold.

    Rows that need no predicate are listed in `always`, unless the caller finds them in another way.
    """

    def __init__(self, *, lists_always: bool = True) -> None:
        self.needed = np.full(ROWS, 255, np.uint8)
        """By slot, padded by 64: how many predicates must hold; `never` if there is no row, or it needs none."""
        self.size = 0
        """One more than the greatest slot so far."""
        self._rows = np.zeros(ROWS, np.int32)
        self._counts = np.zeros(ROWS, np.uint8)
        self._none = np.empty(0, np.int32)
        self._place_of: dict[int, int] = {}
        self._lists_always = lists_always

    @property
    def always(self) -> NDArray[np.int32]:
        """The rows that need no predicate."""
        return self._none[: len(self._place_of)]

    @property
    def nbytes(self) -> int:
        return self.needed.nbytes + self._counts.nbytes + self._rows.nbytes + self._none.nbytes

    @property
    def arrays(self) -> Counters:
        """The arrays for kernels."""
        return Counters(self._counts, self.needed, self._rows)

    @property
    def never(self) -> int:
        """A count that no row reaches."""
        return int(np.iinfo(self.needed.dtype).max)

    def set(self, slots: NDArray[np.int32], rows: NDArray[np.int32], needed: NDArray[np.int64]) -> None:
        """Put rows into slots, each with the number of its predicates that must hold."""
        self.size = max(self.size, int(slots.max(initial=-1)) + 1)
        self._ensure(self.size + ROWS, int(needed.max(initial=0)))
        self._rows[slots] = rows
        self.needed[slots] = np.where(needed > 0, needed, self.never)
        for row in rows[needed == 0].tolist() if self._lists_always else ():
            place = self._place_of[row] = len(self._place_of)
            if place == len(self._none):
                self._none = longer(self._none, grown(place, place + 1), 0)
            self._none[place] = row

    def clear(self, slots: NDArray[np.int32]) -> None:
        """Empty these slots: they never match again until a row is put into them."""
        needs_none = self.needed[slots] == self.never
        self.needed[slots] = self.never
        for row in self._rows[slots[needs_none]].tolist() if self._lists_always else ():
            place, last = self._place_of.pop(row), len(self._place_of)
            if place != last:
                moved = int(self._none[last])
                self._none[place] = moved
                self._place_of[moved] = place

    def _ensure(self, size: int, most: int) -> None:
        """Make the arrays at least this long, and wide enough for this many predicates."""
        if size > len(self.needed):
            size = grown(len(self.needed), size)
            self.needed = longer(self.needed, size, self.never)
            self._rows = longer(self._rows, size, 0)
            self._counts = np.zeros(size, self.needed.dtype)
        if most >= self.never:
            wider = np.min_scalar_type(most + 1)
            is_never = self.needed == self.never
            self.needed = self.needed.astype(wider)
            self.needed[is_never] = np.iinfo(wider).max
            self._counts = np.zeros(len(self.needed), wider)


class CountedLists:
    """Counts rows through the lists of their predicates: all predicates, or all but the equalities.

    The rows may be a subset of all rows. Each has a slot here; freed slots are reused.
    """

    def __init__(self, index: str, *, equalities: bool = True, vector: str = "numbers", step: int = 0) -> None:
        """`vector` is as in `PredicateIndex`, `step` as in `GrowingLists`: with it, rows are added one by one."""
        self.predicates = PredicateIndex(index, vector)
        self.lists = GrowingLists(step)
        self._equalities = equalities
        self._is_one_by_one = step > 0
        self._packed = np.empty(0, np.bool_)
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self.predicates.clear()
        self.lists.clear()
        # If equalities are not counted, the caller finds rows without other predicates by their equalities.
        self.counters = RowCounters(lists_always=self._equalities)
        self.slots = np.empty(0, np.int32)
        """By row, its slot, if it is counted here."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return self.counters.size - len(self._free)

    @property
    def counted(self) -> CountedRows:
        """The arrays for kernels."""
        counters = self.counters
        return CountedRows(
            self.predicates.index, self.lists.table, self._packed, counters.arrays, counters.always, counters.size
        )

    @property
    def memory(self) -> dict[str, int]:
        """The bytes of each structure."""
        counters = self.counters.nbytes + self.slots.nbytes
        return self.predicates.memory | {"lists": self.lists.nbytes, "counters": counters}

    def scratch(self) -> CountingScratch:
        """Scratch arrays for kernels."""
        return CountingScratch(self.predicates.scratch(), np.empty(2 * self.predicates.size + 2, np.int64))

    def insert(self, rows: NDArray[np.int32], table: RowTable, spans: Sequence[int]) -> None:
        """Add rows of a table: in bulk if there are none yet, else one by one. See `PredicateIndex.fit` for `spans`."""
        self.predicates.fit(spans)
        if self.predicates.groups > len(self._packed):
            self._packed = longer(self._packed, self.predicates.groups, 1)
        is_first = len(self) == 0 and not self._is_one_by_one
        slots = self._assign_slots(rows)
        needed = self._build(rows, slots, table) if is_first else self._insert(rows, slots, table)
        self.counters.set(slots, rows, needed)

    def delete(self, rows: NDArray[np.int32], table: RowTable) -> None:
        """Remove rows, which are still in the table."""
        slots = self.slots[rows]
        numbers = np.empty(most_predicates(rows, table), np.int32)
        delete_from_lists(
            self.predicates.index, self.lists.table, self._packed, table, rows, slots, self._equalities, numbers
        )
        self.counters.clear(slots)
        self._free.extend(slots.tolist())

    def _assign_slots(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Assign a slot to each row, freed ones first."""
        freed = self._free[: -len(rows) - 1 : -1]
        del self._free[len(self._free) - len(freed) :]
        new = np.arange(self.counters.size, self.counters.size + len(rows) - len(freed), dtype=np.int32)
        slots = np.append(np.array(freed, np.int32), new)
        size = int(rows.max(initial=-1)) + 1
        if size > len(self.slots):
            self.slots = longer(self.slots, grown(len(self.slots), size), 0)
        self.slots[rows] = slots
        return slots

    def _build(self, rows: NDArray[np.int32], slots: NDArray[np.int32], table: RowTable) -> NDArray[np.int64]:
        entries, needed = entries_of(table, rows, equalities=self._equalities)
        numbers = self.predicates.build(entries)
        self.lists.fill(self.predicates.capacity, numbers, slots[entries.places])
        self._packed[:] = True
        return needed

    def _insert(self, rows: NDArray[np.int32], slots: NDArray[np.int32], table: RowTable) -> NDArray[np.int64]:
        predicates, lists, packed = self.predicates, self.lists, self._packed
        needed = np.zeros(len(rows), np.int64)
        numbers = np.empty(most_predicates(rows, table), np.int32)
        done = 0
        while True:
            lists.ensure(predicates.capacity)
            done = insert_into_lists(
                predicates.index, lists.table, packed, table, rows, slots, done, self._equalities, needed, numbers
            )
            if done == len(rows):
                return needed
            if predicates.has_room:
                lists.grow()
            else:
                predicates.grow(len(numbers))


class Counting(RowMatcher):
    """A matcher that counts the predicates of a row that hold. `index` is the kind of predicate index.

    `vector` is how the predicates that hold are handed over: as numbers, or as bits.
    """

    bulk_share: int = 4

    def __init__(self, limits: Limits = DEFAULT_LIMITS, index: str = "lists") -> None:
        super().__init__(limits, widest=limits.max_table_values if index == "table" else 0)

    @property
    @abstractmethod
    def _predicates(self) -> PredicateIndex:
        """The predicates of all rows."""

    def satisfied(self, encoded: EncodedBatch) -> int:
        """Count the predicates that hold, summed over the events of a batch: the first stage alone."""
        return self._predicates.count_satisfied(encoded.codes)

    def _details(self) -> dict[str, Any]:
        return {"distinct_predicates": len(self._predicates), "tables": self._predicates.tables}


def most_predicates(rows: NDArray[np.int32], table: RowTable) -> int:
    """An upper bound on the predicates of each of these rows: an interval is two at most."""
    return 2 * int(table.sizes[rows].max(initial=0))
