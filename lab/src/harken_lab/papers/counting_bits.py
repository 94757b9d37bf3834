"""Predicates that hold are counted through a matrix with a bit for every predicate and row (ToPSS, section 3.3).

Sixty-four rows are counted at once: a counter's bits lie in as many planes, and a predicate's word is added to them
with a carry from plane to plane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.kernels.vector import ROWS
from harken_lab.papers.counting_matrix import CountingMatrix
from harken_lab.papers.kernels.counting_kernels import WORDS_AT_A_TIME, Bits, count_by_bits
from harken_lab.papers.row_matcher import RowSearch

_ONE = np.uint64(1)


class CountingBits(CountingMatrix):
    """A bit is set where the row has the predicate."""

    _bits: Bits | None = None
    """The counters for kernels; None after a change."""

    element = np.uint64
    rows_each = ROWS

    def _set(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        np.bitwise_or.at(self._matrix, (numbers, rows >> 6), _bit(rows))

    def _unset(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        np.bitwise_and.at(self._matrix, (numbers, rows >> 6), ~_bit(rows))

    def _insert(self, rows: NDArray[np.int32]) -> None:
        super()._insert(rows)
        self._bits = None

    def _delete(self, rows: NDArray[np.int32]) -> None:
        super()._delete(rows)
        self._bits = None

    def _memory(self) -> dict[str, int]:
        bits = self._planes()
        planes = sum(each.nbytes for each in bits)
        return super()._memory() | {"planes": planes}

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        found: int = count_by_bits(
            self._index.index,
            self._matrix,
            self._planes(),
            self.rows.count,
            self._needs.always,
            codes,
            first,
            self._index.room(),
            out,
            offsets,
            examined,
        )
        return found

    def _planes(self) -> Bits:
        """What every row needs, in bit planes."""
        if self._bits is None:
            words = -(-self._needs.size // ROWS)
            needed = np.full(words * ROWS, self._needs.never, np.int64)
            known = self._needs.needed[: len(needed)]
            needed[: len(known)] = known
            is_there = needed != self._needs.never
            depth = int(needed[is_there].max(initial=0)).bit_length()
            wanted = [np.where(is_there, needed >> plane & 1, 0) for plane in range(depth)]
            packed = [
                np.packbits(each.astype(np.uint8), bitorder="little").view(np.uint64) for each in (*wanted, is_there)
            ]
            self._bits = Bits(
                np.empty((depth, WORDS_AT_A_TIME), np.uint64),
                np.stack(packed),
                np.empty(WORDS_AT_A_TIME, np.uint64),
                np.arange(words * ROWS, dtype=np.int32),
            )
        return self._bits


def _bit(rows: NDArray[np.int32]) -> NDArray[np.uint64]:
    return _ONE << (rows & 63).astype(np.uint64)
