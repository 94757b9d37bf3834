"""The predicates of some rows, each stored once, in the arrays of kernels/papers/predicates.py."""

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
    NEXT,
    NO_TABLE,
    NONE,
    OTHER,
    Predicates,
    count_satisfied,
)
from harken_lab.papers.kernels.row_table import RowTable
from harken_lab.papers.labelled_rows import grown, longer, predicates_of

INDEXES = ("lists", "table")
"""The kinds of predicate index. With either, columns that do not fit a table have lists."""


class PredicateEntries(NamedTuple):
    """Predicates of rows, one by one: intervals split as in kernels/papers/predicates.py."""

    places: NDArray[np.int64]
    """The index of the row of each, among the rows."""
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
    """Which predicates there are, and which of them hold for an event."""

    def __init__(self, index: str) -> None:
        if index not in INDEXES:
            raise CapabilityError(f"`index` is one of {', '.join(INDEXES)}, not {index!r}")
        self._has_tables = index == "table"
        self._groups = GrowingLists()
        self._out = np.empty(0, np.int32)
        self.clear()

    def clear(self) -> None:
        """Remove all predicates."""
        self._groups.clear()
        empty = np.empty(0, np.int32)
        starts, sizes = np.empty(0, np.int64), np.empty(0, np.int64)
        labels, state = np.empty(0, np.uint32), np.zeros(2, np.int64)
        self._index = Predicates(self._groups.table, starts, sizes, empty, empty, labels, empty, empty, empty, state)

    def __len__(self) -> int:
        return int(self._index.state[NEXT] - self._index.state[FREE])

    @property
    def size(self) -> int:
        """One more than the greatest number of a predicate so far."""
        return int(self._index.state[NEXT])

    @property
    def groups(self) -> int:
        """How many groups there may be: four a column."""
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
            "predicate lists": self._groups.nbytes,
            "predicate tables": index.tables.nbytes
            + index.table_starts.nbytes
            + index.table_sizes.nbytes
            + index.used.nbytes,
            "predicates": sum(each.nbytes for each in (index.labels, index.owners, index.uses, index.free)),
        }

    @property
    def tables(self) -> int:
        """How many columns have tables."""
        return int(np.count_nonzero(self._index.table_starts != NO_TABLE))

    def room(self) -> NDArray[np.int32]:
        """Room for the predicates that hold for an event."""
        if len(self._out) < self.size:
            self._out = np.empty(grown(len(self._out), self.size), np.int32)
        return self._out

    def count_satisfied(self, codes: NDArray[np.uint32]) -> int:
        """How many predicates hold for all events of a batch together."""
        found: int = count_satisfied(self.index, codes, self.room())
        return found

    def fit(self, spans: Sequence[int]) -> None:
        """Ensure lists for all columns, or tables of `spans[column]` labels where that is not 0."""
        index, count = self._index, len(spans)
        self._groups.have(count * GROUPS)
        if count > len(index.table_starts):
            size = grown(len(index.table_starts), count)
            index = index._replace(
                table_starts=longer(index.table_starts, size, NO_TABLE),
                table_sizes=longer(index.table_sizes, size, 0),
                used=longer(index.used, size * GROUPS, 0),
            )
        self._index = index
        if self._has_tables:
            wanted = np.zeros(len(index.table_sizes), np.int64)
            wanted[:count] = spans
            if (wanted != index.table_sizes).any():
                self._fit_tables(wanted)

    def grow(self, least: int) -> None:
        """Make room after a kernel found none: for at least `least` more predicates."""
        self._groups.grow()
        self._have(grown(self.capacity, self.size + least))

    def shrink(self, size: int) -> None:
        """Forget the numbers from `size` on, which are all free, as if they had never been used."""
        index = self._index
        free = index.free[: index.state[FREE]]
        kept = free[free < size]
        index.free[: len(kept)] = kept
        index.state[:] = len(kept), size

    def build(self, entries: PredicateEntries) -> NDArray[np.int64]:
        """Number these predicates, by group and label. There must be none yet."""
        keys, numbers = np.unique(entries.keys, return_inverse=True)
        self._have(len(keys))
        index = self._index
        index.labels[: len(keys)] = (keys & 0xFFFF_FFFF).astype(np.uint32)
        index.owners[: len(keys)] = keys >> 32
        index.uses[: len(keys)] = np.bincount(numbers, minlength=len(keys))
        index.state[:] = 0, len(keys)
        owners, every = index.owners[: len(keys)], np.arange(len(keys), dtype=np.int32)
        starts, sizes = index.table_starts[owners // GROUPS], index.table_sizes[owners // GROUPS]
        in_table = starts != NO_TABLE
        places = starts + owners % GROUPS * sizes + index.labels[: len(keys)]
        index.tables[places[in_table]] = every[in_table]
        index.used[:] = np.bincount(owners[in_table], minlength=len(index.used))
        self._groups.fill(len(self._groups.table.starts), owners[~in_table], every[~in_table])
        return numbers

    def _have(self, predicates: int) -> None:
        index = self._index
        if predicates > self.capacity:
            self._index = index._replace(
                labels=longer(index.labels, predicates, 0),
                owners=longer(index.owners, predicates, 0),
                uses=longer(index.uses, predicates, 0),
                free=longer(index.free, predicates, 0),
            )

    def _fit_tables(self, sizes: NDArray[np.int64]) -> None:
        """Resize the tables of columns to this many labels, 0 for none. Entries keep their labels."""
        index = self._index
        ends = np.cumsum(sizes * GROUPS)
        starts = np.where(sizes > 0, ends - sizes * GROUPS, NO_TABLE)
        tables = np.full(int(ends[-1]), NONE, np.int32)
        for column in np.flatnonzero(index.table_sizes).tolist():
            old, size = int(index.table_sizes[column]), int(sizes[column])
            # Where there are fewer labels than before, the places left out are empty.
            kept = min(old, size)
            for group in range(GROUPS if kept else 0):
                place = index.table_starts[column] + group * old
                tables[starts[column] + group * size :][:kept] = index.tables[place : place + kept]
        self._index = index._replace(table_starts=starts, table_sizes=sizes, tables=tables)
