"""Which subtrees of a matching tree a row belongs to when columns are factored out (Gryphon, PODC 1999, section 5).

There is a subtree for every combination of the values that rows ask for in these columns, or of *others*. A row that
does not care is in every one of them; a row that has a range there is in those of the values in it, and is tested in
that of the others. A value that no row asks for any more keeps its subtrees until such values are the most.
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
        self.known: list[NDArray[np.uint32]] = [np.empty(0, np.uint32) for _ in columns]
        """The labels that have subtrees, ascending, by column."""
        self._counts: list[Counter[int]] = [Counter() for _ in columns]

    def new_labels(self, rows: NDArray[np.int32]) -> list[NDArray[np.uint32]]:
        """By column, the labels that rows ask for and that have no subtrees yet."""
        return [
            np.setdiff1d(self._equalities(rows, column), known)
            for column, known in zip(self.columns, self.known, strict=True)
        ]

    def count(self, rows: NDArray[np.int32], by: int) -> None:
        """Count the labels of rows up or down by `by`."""
        for column, counts in zip(self.columns, self._counts, strict=True):
            labels, several = np.unique(self._equalities(rows, column), return_counts=True)
            for label, times in zip(labels.tolist(), several.tolist(), strict=True):
                counts[label] += by * times
                if not counts[label]:
                    del counts[label]

    def is_mostly_dead(self) -> bool:
        """Whether most of the labels are asked for by no row."""
        return 2 * sum(map(len, self._counts)) < sum(map(len, self.known))

    def forget_dead(self) -> NDArray[np.int64]:
        """Forget the labels that no row asks for. Returns them as column << 32 | label, ascending."""
        dead: list[int] = []
        for at, (column, counts) in enumerate(zip(self.columns, self._counts, strict=True)):
            asked = np.array(sorted(counts), np.uint32)
            dead += [column << 32 | label for label in np.setdiff1d(self.known[at], asked).tolist()]
            self.known[at] = np.intersect1d(self.known[at], asked)
        return np.array(sorted(dead), np.int64)

    def several(self, rows: NDArray[np.int32], known: list[NDArray[np.uint32]], place: int) -> float:
        """How many subtrees the rows would enter together. See `combinations`."""
        product = np.ones(len(rows))
        for at, labels in enumerate(known):
            _, inside, is_other = self._choices(rows, self.columns[at], labels, at != place)
            product *= inside + is_other
        return float(product.sum())

    def combinations(
        self, rows: NDArray[np.int32], known: list[NDArray[np.uint32]], place: int
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Every row once per subtree it belongs to, and for each a label per column: a known one, or 0 for all others.

        The column at `place` has no subtree for the others.
        """
        keys = np.empty((len(rows), 0), np.uint32)
        for at, labels in enumerate(known):
            start, inside, is_other = self._choices(rows, self.columns[at], labels, at != place)
            several = inside + is_other
            which = np.repeat(np.arange(len(rows)), several)
            choice = np.arange(len(which)) - np.repeat(np.cumsum(several) - several, several)
            some: NDArray[np.uint32] = labels if len(labels) else np.zeros(1, np.uint32)
            taken = some[(start[which] + choice) % len(some)]
            taken[choice >= inside[which]] = 0
            rows, keys = rows[which], np.column_stack([keys[which], taken])
        return rows, keys

    def _choices(
        self, rows: NDArray[np.int32], column: int, labels: NDArray[np.uint32], with_others: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """For each row: the first label that it admits, how many (cyclically), and whether it admits others too."""
        low, high = self._intervals(rows, column)
        start = np.searchsorted(labels, low)
        stop = np.searchsorted(labels, high, side="right")
        inside = stop - start + np.where(low > high, len(labels), 0)
        return start, inside, (low != high) & with_others

    def _equalities(self, rows: NDArray[np.int32], column: int) -> NDArray[np.uint32]:
        low, high = self._intervals(rows, column)
        found: NDArray[np.uint32] = low[low == high]
        return found

    def _intervals(self, rows: NDArray[np.int32], column: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The interval that rows ask for in a column; all labels if they ask for none."""
        low, high = np.full(len(rows), FIRST_LABEL, np.uint32), np.full(len(rows), LAST_LABEL, np.uint32)
        table = self._rows.table
        places, at = predicates_of(table, rows)
        is_here = table.columns[at] == column
        low[places[is_here]], high[places[is_here]] = table.low[at[is_here]], table.high[at[is_here]]
        return low, high
