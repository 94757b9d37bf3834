"""Which subtrees of a matching tree a row belongs to when columns are factored out (Gryphon, PODC 1999, section 5).

In each of these columns an event has one of the values of the rows' equalities, or *another* value; there is a subtree
for every combination of these. A row without a predicate on the columns is in every subtree. A row with a range on one
is in the subtrees of the values in the range, and in that of other values, where the range is tested. A value that no
row has any more is dead; subtrees of dead values stay until most values are dead.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.growing import FIRST_LABEL, LAST_LABEL
from harken_lab.papers.labelled_rows import LabelledRows, predicates_of


class Factoring:
    """The columns that are factored out, and the labels for which there are subtrees."""

    def __init__(self, rows: LabelledRows, columns: list[int]) -> None:
        self._rows = rows
        self.columns = columns
        self.labels: list[NDArray[np.uint32]] = [np.empty(0, np.uint32) for _ in columns]
        """By column, the labels that have subtrees, ascending."""
        self._counts: list[Counter[int]] = [Counter() for _ in columns]

    def new_labels(self, rows: NDArray[np.int32]) -> list[NDArray[np.uint32]]:
        """By column, the labels of these rows' equalities that have no subtrees yet."""
        return [
            np.setdiff1d(self._equalities(rows, column), labels)
            for column, labels in zip(self.columns, self.labels, strict=True)
        ]

    def count(self, rows: NDArray[np.int32], by: int) -> None:
        """Add `by` to the count of each label for every row with an equality on it."""
        for column, counts in zip(self.columns, self._counts, strict=True):
            labels, uses = np.unique(self._equalities(rows, column), return_counts=True)
            for label, times in zip(labels.tolist(), uses.tolist(), strict=True):
                counts[label] += by * times
                if not counts[label]:
                    del counts[label]

    def is_mostly_dead(self) -> bool:
        """Whether no row has most of the labels."""
        return 2 * sum(map(len, self._counts)) < sum(map(len, self.labels))

    def forget_dead(self) -> NDArray[np.int64]:
        """Forget the labels that no row has. Returns them as column << 32 | label, ascending."""
        dead: list[int] = []
        for at, (column, counts) in enumerate(zip(self.columns, self._counts, strict=True)):
            used = np.array(sorted(counts), np.uint32)
            dead += [column << 32 | label for label in np.setdiff1d(self.labels[at], used).tolist()]
            self.labels[at] = np.intersect1d(self.labels[at], used)
        return np.array(sorted(dead), np.int64)

    def count_combinations(self, rows: NDArray[np.int32], subtrees: list[NDArray[np.uint32]], place: int) -> float:
        """How many rows `combinations` would return."""
        product = np.ones(len(rows))
        for at, labels in enumerate(subtrees):
            _, inside, is_other = self._choices(rows, self.columns[at], labels, at != place)
            product *= inside + is_other
        return float(product.sum())

    def combinations(
        self, rows: NDArray[np.int32], subtrees: list[NDArray[np.uint32]], place: int
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Every row once for each subtree that it belongs to, with the subtree's label by column, 0 for other values.

        `subtrees` has the labels to consider, by column. In the column at `place`, other values are left out.
        """
        keys = np.empty((len(rows), 0), np.uint32)
        for at, labels in enumerate(subtrees):
            start, inside, is_other = self._choices(rows, self.columns[at], labels, at != place)
            counts = inside + is_other
            which = np.repeat(np.arange(len(rows)), counts)
            choice = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            candidates: NDArray[np.uint32] = labels if len(labels) else np.zeros(1, np.uint32)
            chosen = candidates[(start[which] + choice) % len(candidates)]
            chosen[choice >= inside[which]] = 0
            rows, keys = rows[which], np.column_stack([keys[which], chosen])
        return rows, keys

    def _choices(
        self, rows: NDArray[np.int32], column: int, labels: NDArray[np.uint32], with_others: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """For each row: the first label that it admits, how many (cyclically), and whether it admits other values."""
        low, high = self._intervals(rows, column)
        start = np.searchsorted(labels, low)
        stop = np.searchsorted(labels, high, side="right")
        inside = stop - start + np.where(low > high, len(labels), 0)
        return start, inside, (low != high) & with_others

    def _equalities(self, rows: NDArray[np.int32], column: int) -> NDArray[np.uint32]:
        low, high = self._intervals(rows, column)
        labels: NDArray[np.uint32] = low[low == high]
        return labels

    def _intervals(self, rows: NDArray[np.int32], column: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The interval of each row's predicate on a column; all labels if it has none."""
        low, high = np.full(len(rows), FIRST_LABEL, np.uint32), np.full(len(rows), LAST_LABEL, np.uint32)
        table = self._rows.table
        places, at = predicates_of(table, rows)
        is_here = table.columns[at] == column
        low[places[is_here]], high[places[is_here]] = table.low[at[is_here]], table.high[at[is_here]]
        return low, high
