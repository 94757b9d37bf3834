"""The predicates of some rows, each stored once, in the arrays of kernels/predicate_kernels.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError
from harken_lab.papers.growing import FIRST_LABEL, LAST_LABEL
from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.predicate_kernels import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    FREE,
    GROUPS,
    IN_GROUPS,
    IN_LISTS,
    NEXT,
    NO_TABLE,
    NONE,
    OTHER,
    PREDICATE_STATES,
    SHORT,
    Predicates,
    count_satisfied,
)
from harken_lab.papers.kernels.row_table import RowTable
from harken_lab.papers.labelled_rows import grown, longer, predicates_of

INDEXES = ("lists", "linked", "table")
"""The kinds of predicate index: ordered arrays, linked lists as in ToPSS, or tables. With `table`, columns whose labels
are not dense have arrays."""
VECTORS = ("numbers", "bits")
"""How the predicates that hold are handed to the second stage."""


class PredicateEntries(NamedTuple):
    """Predicates of rows, one by one: intervals split as by `predicate_kernels.split`."""

    places: NDArray[np.int64]
    """For each predicate, the index of its row among the rows."""
    columns: NDArray[np.int32]
    kinds: NDArray[np.int8]
    labels: NDArray[np.uint32]

    @property
    def keys(self) -> NDArray[np.int64]:
        """Group and label in one integer."""
        return (self.columns.astype(np.int64) * GROUPS + self.kinds) << 32 | self.labels


def entries_of(
    table: RowTable, rows: NDArray[np.int32], *, equalities: bool = True
) -> tuple[PredicateEntries, NDArray[np.int64]]:
    """The predicates of rows, with or without equalities, and how many of them must hold for each row."""
    owner, at = predicates_of(table, rows)
    low, high = table.low[at], table.high[at]
    equal, wrapped = low == high, low > high
    if not equalities:
        at, owner, low, high, wrapped = (each[~equal] for each in (at, owner, low, high, wrapped))
        equal = np.zeros(len(at), np.bool_)
    other = wrapped & (low - high == 2)
    is_both = ~equal & ~other & (wrapped | ((low > FIRST_LABEL) & (high < LAST_LABEL)))
    at_least = ~equal & ~other & (is_both | (high == LAST_LABEL))
    at_most = ~equal & ~other & (is_both | (high < LAST_LABEL))
    needed = np.bincount(owner, minlength=len(rows)) + np.bincount(owner[is_both & ~wrapped], minlength=len(rows))
    parts = [
        (EQUAL, equal, low),
        (AT_LEAST, at_least, low),
        (AT_MOST, at_most, high),
        (OTHER, other, high + np.uint32(1)),
    ]
    return PredicateEntries(
        np.concatenate([owner[chosen] for _, chosen, _ in parts]),
        np.concatenate([table.columns[at[chosen]] for _, chosen, _ in parts]),
        np.concatenate([np.full(np.count_nonzero(chosen), kind, np.int8) for kind, chosen, _ in parts]),
        np.concatenate([labels[chosen] for _, chosen, labels in parts]),
    ), needed


class PredicateIndex:
    """Finds the predicates that hold for an event. Each predicate is stored once."""

    def __init__(self, index: str, vector: str = "numbers") -> None:
        if index not in INDEXES:
            raise CapabilityError(f"`index` is one of {', '.join(INDEXES)}, not {index!r}")
        if vector not in VECTORS:
            raise CapabilityError(f"`vector` is one of {', '.join(VECTORS)}, not {vector!r}")
        self._has_tables, self._is_linked, self._has_bits = index == "table", index == "linked", vector == "bits"
        self._groups = GrowingLists()
        self._scratch = np.empty(0, np.int32)
        self.clear()

    def clear(self) -> None:
        """Remove all predicates."""
        self._groups.clear()
        empty = np.empty(0, np.int32)
        starts, sizes = np.empty(0, np.int64), np.empty(0, np.int64)
        labels, state = np.empty(0, np.uint32), np.zeros(PREDICATE_STATES, np.int64)
        self._index = Predicates(
            *(self._groups.table, starts, sizes, empty, empty, labels, empty, empty, empty, state, empty, empty),
            np.empty(0, np.uint64),
        )

    def __len__(self) -> int:
        return int(self._index.state[NEXT] - self._index.state[FREE])

    @property
    def size(self) -> int:
        """One more than the greatest number of a predicate so far."""
        return int(self._index.state[NEXT])

    @property
    def groups(self) -> int:
        """How many groups there is room for: four a column."""
        return len(self._groups.table.starts)

    @property
    def capacity(self) -> int:
        """How many predicates there is room for."""
        return len(self._index.labels)

    @property
    def index(self) -> Predicates:
        """The arrays for kernels. Invalid after the next change."""
        return self._index._replace(groups=self._groups.table)

    @property
    def memory(self) -> dict[str, int]:
        """The bytes of each structure."""
        index = self._index
        return {
            "predicate lists": self._groups.nbytes + index.heads.nbytes + index.following.nbytes,
            "predicate tables": index.tables.nbytes
            + index.table_starts.nbytes
            + index.table_sizes.nbytes
            + index.used.nbytes,
            "predicates": sum(each.nbytes for each in (index.labels, index.owners, index.uses, index.free)),
        } | ({"predicate vector": index.vector.nbytes} if self._has_bits else {})

    @property
    def tables(self) -> int:
        """The number of columns that have tables."""
        return int(np.count_nonzero(self._index.table_starts != NO_TABLE))

    def scratch(self) -> NDArray[np.int32]:
        """A scratch array for the predicates that hold for an event."""
        if len(self._scratch) < self.size:
            self._scratch = np.empty(grown(len(self._scratch), self.size), np.int32)
        return self._scratch

    def count_satisfied(self, codes: NDArray[np.uint32]) -> int:
        """Count the predicates that hold, summed over the events of a batch."""
        count: int = count_satisfied(self.index, codes, self.scratch())
        return count

    def fit(self, spans: Sequence[int]) -> None:
        """Ensure lists for all columns; in an index of tables, a table of `spans[column]` labels if that is not 0."""
        index, count = self._index, len(spans)
        self._groups.ensure(count * GROUPS)
        if count > len(index.table_starts):
            size = grown(len(index.table_starts), count)
            index = index._replace(
                table_starts=longer(index.table_starts, size, NO_TABLE),
                table_sizes=longer(index.table_sizes, size, 0),
                used=longer(index.used, size * GROUPS, 0),
                heads=longer(index.heads, size * GROUPS if self._is_linked else 0, NONE),
            )
        self._index = index
        if self._has_tables:
            sizes = np.zeros(len(index.table_sizes), np.int64)
            sizes[:count] = spans
            if (sizes != index.table_sizes).any():
                self._resize_tables(sizes)

    @property
    def has_room(self) -> bool:
        """Whether a kernel ran out of room elsewhere: in the lists of rows."""
        return bool(self._index.state[SHORT] == IN_LISTS)

    def grow(self, least: int) -> None:
        """Make room, after a kernel ran out of it, for at least `least` more predicates."""
        if self._index.state[SHORT] == IN_GROUPS:
            self._groups.grow()
        else:
            self._ensure(grown(self.capacity, self.size + least))

    def shrink(self, size: int) -> None:
        """Forget the numbers from `size` on, all of which are free."""
        index = self._index
        free = index.free[: index.state[FREE]]
        kept = free[free < size]
        index.free[: len(kept)] = kept
        index.state[[FREE, NEXT]] = len(kept), size

    def build(self, entries: PredicateEntries) -> NDArray[np.int64]:
        """Fill the empty index. Returns the number of each predicate: numbers are in the order of group and label."""
        keys, numbers = np.unique(entries.keys, return_inverse=True)
        self._ensure(len(keys))
        index = self._index
        index.labels[: len(keys)] = (keys & 0xFFFF_FFFF).astype(np.uint32)
        index.owners[: len(keys)] = keys >> 32
        index.uses[: len(keys)] = np.bincount(numbers, minlength=len(keys))
        index.state[[FREE, NEXT]] = 0, len(keys)
        owners, every = index.owners[: len(keys)], np.arange(len(keys), dtype=np.int32)
        starts, sizes = index.table_starts[owners // GROUPS], index.table_sizes[owners // GROUPS]
        in_table = starts != NO_TABLE
        places = starts + owners % GROUPS * sizes + index.labels[: len(keys)]
        index.tables[places[in_table]] = every[in_table]
        index.used[:] = np.bincount(owners[in_table], minlength=len(index.used))
        if self._is_linked:
            self._chain(owners)
        else:
            self._groups.fill(len(self._groups.table.starts), owners[~in_table], every[~in_table])
        return numbers

    def _chain(self, owners: NDArray[np.int32]) -> None:
        """Link the predicates of each group, which are consecutive."""
        index, count = self._index, len(owners)
        index.heads[:] = NONE
        index.heads[owners[::-1]] = np.arange(count - 1, -1, -1)
        index.following[:count] = np.arange(1, count + 1)
        index.following[: count - 1][owners[1:] != owners[:-1]] = NONE
        index.following[count - 1 : count] = NONE

    def _ensure(self, predicates: int) -> None:
        index = self._index
        if predicates > self.capacity:
            self._index = index._replace(
                labels=longer(index.labels, predicates, 0),
                owners=longer(index.owners, predicates, 0),
                uses=longer(index.uses, predicates, 0),
                free=longer(index.free, predicates, 0),
                following=longer(index.following, predicates if self._is_linked else 0, NONE),
                vector=np.zeros(-(-predicates // 64) if self._has_bits else 0, np.uint64),
            )

    def _resize_tables(self, sizes: NDArray[np.int64]) -> None:
        """Resize the tables of columns to this many labels, 0 for none. Entries keep their labels."""
        index = self._index
        ends = np.cumsum(sizes * GROUPS)
        starts = np.where(sizes > 0, ends - sizes * GROUPS, NO_TABLE)
        tables = np.full(int(ends[-1]), NONE, np.int32)
        for column in np.flatnonzero(index.table_sizes).tolist():
            old, size = int(index.table_sizes[column]), int(sizes[column])
            # If there are fewer labels than before, the dropped places are empty.
            kept = min(old, size)
            for group in range(GROUPS if kept else 0):
                place = index.table_starts[column] + group * old
                tables[starts[column] + group * size :][:kept] = index.tables[place : place + kept]
        self._index = index._replace(table_starts=starts, table_sizes=sizes, tables=tables)
