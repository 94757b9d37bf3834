"""The most selective predicate of each subscription in an interval tree, the others tested one by one (Hanson).

As Le Subscribe describes it (section 3.1, figure 6) after Hanson et al., SIGMOD 1990. Each column has a balanced tree
of intervals (interval_tree.py). An event's labels find the rows whose chosen predicate holds; the other predicates of
these rows are tested one by one. An equality is more selective than any other predicate. Of two equalities, the one on
the column with more constants is more selective; of two other predicates, the one that covers the smaller share of its
column's constants. The predicate of a row is chosen once, when the row is added.

With n intervals in a tree a search takes O(log n) steps, and one more for each interval that holds the label. A change
sets or erases O(log n) marks. A rotation moves the marks of two nodes; nodes with many marks are seldom rotated, so a
change takes O(log² n) on average, as the paper says.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.growing_lists import GrowingLists
from harken_lab.papers.kernels.interval_changes import (
    add_columns,
    choose_equalities,
    enter_rows,
    leave_rows,
    plant_rows,
)
from harken_lab.papers.kernels.interval_marks import rehash
from harken_lab.papers.kernels.interval_tree import (
    COLUMN,
    END,
    FREE_INTERVAL,
    FREE_MARK,
    FREE_NODE,
    HIGH,
    INTERVAL_FIELDS,
    INTERVALS,
    LEFT,
    LOW,
    MARK_FIELDS,
    MARKS,
    NODE_FIELDS,
    NODES,
    NONE,
    PENDING,
    SHORT_OF,
    SHORT_OF_CELLS,
    SHORT_OF_INTERVALS,
    SHORT_OF_MARKS,
    SHORT_OF_NODES,
    SHORTAGE,
    STATES,
    TOP_INTERVAL,
    IntervalTrees,
    RowPlaces,
    find_rows,
)
from harken_lab.papers.labelled_rows import LabelledRows, grown, longer, predicates_of
from harken_lab.papers.row_matcher import RowMatcher, RowSearch

_CHOICES = ("selective", "first")
# Most labels that are ranked one by one.
_FEW = 16


class Hanson(RowMatcher):
    """The matcher: one predicate of each row is in the interval tree of its column.

    `choose` says which: the most selective, or the first by column, to measure what the choice gains.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, choose: str = "selective") -> None:
        if choose not in _CHOICES:
            raise CapabilityError(f"`choose` is one of {', '.join(_CHOICES)}, not {choose!r}")
        super().__init__(limits)
        self.choose = choose
        self._clear()

    def _insert(self, rows: NDArray[np.int32]) -> None:
        self._index.add_columns(len(self.rows.columns))
        self._index.insert(self.rows, rows, self._chosen(rows))

    def _delete(self, rows: NDArray[np.int32]) -> None:
        self._index.delete(rows)

    def _clear(self) -> None:
        self._index = IntervalIndex()

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        return self._index.find(self.rows, codes, first, out, offsets, examined)

    def _memory(self) -> dict[str, int]:
        return self._index.memory()

    def _details(self) -> dict[str, Any]:
        return {"choose": self.choose} | self._index.sizes()

    def _chosen(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """The place in the row table of the predicate by which each row is found; -1 if it has none."""
        table = self.rows.table
        if self.choose == "first":
            return np.where(table.sizes[rows] > 0, table.starts[rows], NONE)
        chosen = np.empty(len(rows), np.int64)
        constants = np.array([len(each) for each in self.rows.dictionaries], np.int64)
        choose_equalities(table, rows, constants, chosen)
        others = np.flatnonzero((chosen == NONE) & (table.sizes[rows] > 0))
        if len(others):
            chosen[others] = _narrowest(self.rows, rows[others])
        return chosen


def _narrowest(rows: LabelledRows, which: NDArray[np.int32]) -> NDArray[np.int64]:
    """For each row, the place of the predicate that covers the least share of its column's constants."""
    table = rows.table
    owners, places = predicates_of(table, which)
    shares = np.empty(len(places))
    columns, low, high = table.columns[places], table.low[places], table.high[places]
    for column in np.unique(columns).tolist():
        labels = rows.dictionaries[column].labels
        at = np.flatnonzero(columns == column)
        covered = _ranks(labels, high[at], "right") - _ranks(labels, low[at], "left")
        covered[low[at] > high[at]] += len(labels)
        shares[at] = covered / max(len(labels), 1)
    # Stable, so that the first of equal shares wins.
    order = np.lexsort((shares, owners))
    return places[order[np.searchsorted(owners, np.arange(len(which)))]]


def _ranks(labels: NDArray[np.uint32], wanted: NDArray[np.uint32], side: Literal["left", "right"]) -> NDArray[np.int64]:
    """For each wanted label, how many labels are less (side `left`), or not greater (`right`)."""
    if len(wanted) > _FEW:
        return np.searchsorted(labels, wanted, side)
    # searchsorted would copy the labels, which are not contiguous.
    bisect = bisect_left if side == "left" else bisect_right
    return np.array([bisect(labels, label) for label in wanted], np.int64)


class IntervalIndex:
    """The arrays of kernels/interval_tree.py, enlarged when a kernel runs out of room."""

    def __init__(self) -> None:
        state = np.zeros(STATES, np.int64)
        state[[FREE_NODE, FREE_MARK, FREE_INTERVAL, PENDING]] = NONE
        state[[INTERVALS, TOP_INTERVAL]] = 1
        self.trees = IntervalTrees(
            roots=np.empty(0, np.int32),
            nodes=np.empty((0, NODE_FIELDS), np.int64),
            heights=np.empty(0, np.int32),
            marks=np.empty((0, MARK_FIELDS), np.int32),
            intervals=np.full((1, INTERVAL_FIELDS), NONE, np.int64),
            buckets=np.full(1, NONE, np.int32),
            state=state,
        )
        self.lists = GrowingLists()
        self.lists.ensure(1)
        self.places = RowPlaces(np.empty(0, np.int32), np.empty(0, np.int32))

    def add_columns(self, columns: int) -> None:
        """Ensure trees for this many columns."""
        done = len(self.trees.roots)
        if columns > done:
            self.trees = self.trees._replace(roots=longer(self.trees.roots, columns, NONE))
        while done < columns:
            done = add_columns(self.trees, done)
            if done < columns:
                self._make_room()

    def insert(self, rows: LabelledRows, which: NDArray[np.int32], chosen: NDArray[np.int64]) -> None:
        """Add each row to the list of the interval of its chosen predicate."""
        if rows.size > len(self.places.places):
            size = grown(len(self.places.places), rows.size)
            self.places = RowPlaces(*(longer(each, size, NONE) for each in self.places))
        done = 0
        while done < len(which):
            done = plant_rows(self.trees, rows.table, chosen, done)
            if done < len(which):
                self._make_room()
        done = 0
        while done < len(which):
            done = enter_rows(self.trees, self.lists.table, self.places, rows.table, which, chosen, done)
            if done < len(which):
                self._make_room()

    def delete(self, which: NDArray[np.int32]) -> None:
        """Remove rows from the lists."""
        done = 0
        while done <= len(which):
            done = leave_rows(self.trees, self.lists.table, self.places, which, done)
            if done <= len(which):
                self._make_room()

    def find(
        self,
        rows: LabelledRows,
        codes: NDArray[np.uint32],
        first: int,
        out: NDArray[np.int32],
        offsets: NDArray[np.int64],
        examined: NDArray[np.int64],
    ) -> int:
        """As `RowMatcher._find`."""
        done: int = find_rows(
            self.trees, self.lists.table, rows.table, rows.count, codes, first, out, offsets, examined
        )
        return done

    def memory(self) -> dict[str, int]:
        """The bytes of each structure."""
        trees = self.trees
        return {
            "nodes": trees.roots.nbytes + trees.nodes.nbytes + trees.heights.nbytes,
            "marks": trees.marks.nbytes,
            "intervals": trees.intervals.nbytes + trees.buckets.nbytes,
            "lists": self.lists.nbytes + sum(each.nbytes for each in self.places),
        }

    def sizes(self) -> dict[str, int]:
        """The numbers of nodes, marks and distinct intervals, and the greatest height of a tree."""
        trees = self.trees
        tops = trees.nodes[trees.roots, LEFT]
        return {
            "nodes": int(trees.state[NODES]) - len(trees.roots),
            "height": int(trees.heights[tops[tops != NONE]].max(initial=0)),
            "marks": int(trees.state[MARKS]) - self._ends(),
            "intervals": int(trees.state[INTERVALS]) - 1,
        }

    def _ends(self) -> int:
        """How many marks are of the ends of intervals."""
        intervals = self.trees.intervals
        alive = intervals[intervals[:, COLUMN] != NONE]
        low, high = alive[:, LOW] & ~1, (alive[:, HIGH] + 1) & ~1
        return int((low > 0).sum() + ((high < END) & (high != low)).sum())

    def _make_room(self) -> None:
        """Enlarge the arrays that a kernel ran out of."""
        trees = self.trees
        short_of, shortage = int(trees.state[SHORT_OF]), int(trees.state[SHORTAGE])
        if short_of == SHORT_OF_NODES:
            size = grown(len(trees.nodes), 0)
            self.trees = trees._replace(nodes=longer(trees.nodes, size, NONE), heights=longer(trees.heights, size, 0))
        elif short_of == SHORT_OF_MARKS:
            size = grown(len(trees.marks), int(trees.state[MARKS]) + shortage)
            self.trees = trees._replace(marks=longer(trees.marks, size, NONE))
        elif short_of == SHORT_OF_INTERVALS:
            self._make_room_for_intervals(grown(len(trees.intervals), 0))
        elif short_of == SHORT_OF_CELLS:
            self.lists.grow()

    def _make_room_for_intervals(self, size: int) -> None:
        self.trees = self.trees._replace(intervals=longer(self.trees.intervals, size, NONE))
        self.lists.ensure(size)
        if size > len(self.trees.buckets):
            self.trees = self.trees._replace(buckets=np.full(1 << size.bit_length(), NONE, np.int32))
            rehash(self.trees)
