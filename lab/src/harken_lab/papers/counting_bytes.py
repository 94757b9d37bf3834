"""Predicates that hold are counted through a matrix with a byte for every predicate and row (ToPSS, section 3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.counting_matrix import CountingMatrix
from harken_lab.papers.kernels.counting_kernels import count_by_bytes
from harken_lab.papers.row_matcher import RowSearch


class CountingBytes(CountingMatrix):
    """Counting with a matrix of bytes, 1 if the row has the predicate. Those of predicates that hold are added up."""

    element = np.uint8
    rows_each = 1

    def _set(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        self._matrix[numbers, rows] = 1

    def _unset(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        self._matrix[numbers, rows] = 0

    def _column(self, row: int, height: int) -> NDArray[np.uint8]:
        return self._matrix[:height, row]

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        done: int = count_by_bytes(
            self._index.index,
            self._matrix,
            self._counters.arrays,
            self.rows.count,
            self._counters.size,
            self._counters.always,
            codes,
            first,
            self._index.scratch(),
            out,
            offsets,
            examined,
        )
        return done
