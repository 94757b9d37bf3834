"""Predicates that hold are counted through a matrix with a byte for every predicate and row (ToPSS, section 3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.counting_matrix import CountingMatrix
from harken_lab.papers.kernels.counting_kernels import count_by_bytes
from harken_lab.papers.row_matcher import RowSearch


class CountingBytes(CountingMatrix):
    """A byte is 1 where the row has the predicate: the bytes of all predicates that hold are added up."""

    element = np.uint8
    rows_each = 1

    def _set(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        self._matrix[numbers, rows] = 1

    def _unset(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        self._matrix[numbers, rows] = 0

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        found: int = count_by_bytes(
            self._index.index,
            self._matrix,
            self._needs.counters,
            self.rows.count,
            self._needs.size,
            self._needs.always,
            codes,
            first,
            self._index.room(),
            out,
            offsets,
            examined,
        )
        return found
