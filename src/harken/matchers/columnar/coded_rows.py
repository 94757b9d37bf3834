"""Conjunctions row by row, for planning and building."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.codes.conjunctions import Conjunctions
from harken.kernels import rows as kernels

_SEED = 0x6861726B656E


@dataclass(frozen=True, slots=True)
class CodedRows:
    """The predicates of row i are those from starts[i] to starts[i + 1], by ascending column."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    classes: NDArray[np.uint8]
    tops: NDArray[np.int64]
    """The greatest code of each column."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def columns_of(self, row: int) -> NDArray[np.int32]:
        return self.columns[self.starts[row] : self.starts[row + 1]]


def rows_of(conjunctions: Conjunctions) -> CodedRows:
    """Transpose conjunctions from columns into rows."""
    starts = np.zeros(len(conjunctions) + 1, np.int64)
    for part in conjunctions.predicates:
        if len(part.rows):
            kernels.count_predicates(part.rows, starts)
    np.cumsum(starts, out=starts)
    total = int(starts[-1])
    columns, classes = np.empty(total, np.int32), np.empty(total, np.uint8)
    low, high = np.empty(total, np.uint32), np.empty(total, np.uint32)
    ends = starts[:-1].copy()
    for number, part in enumerate(conjunctions.predicates):
        if len(part.rows):
            kernels.place_predicates(
                part.rows, part.low, part.high, part.top, number, ends, columns, low, high, classes
            )
    tops = np.array([part.top for part in conjunctions.predicates], np.int64)
    return CodedRows(starts, columns, low, high, classes, tops)


def attribute_sets(rows: CodedRows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sets of rows on the same columns: a leader of each set, the set of every row, and the sizes of the sets."""
    seed = _SEED
    while True:
        marks = np.random.default_rng(seed).integers(1, 2**64 - 1, len(rows.tops), np.uint64)
        mixed = np.empty(len(rows), np.uint64)
        kernels.mixed_marks(rows.starts, rows.columns, marks, mixed)
        _, leaders, set_of, sizes = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
        if kernels.first_unlike(rows.starts, rows.columns, leaders, set_of) < 0:
            return leaders, set_of, sizes
        seed += 1
