"""Predicates that hold are counted through a matrix with a bit for every predicate and row (ToPSS, section 3.3).

Sixty-four rows are counted at once: each bit of their counters lies in a plane of its own, and a predicate's word is
added with a carry from plane to plane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.kernels.vector import ROWS
from harken_lab.papers.counting_matrix import CountingMatrix
from harken_lab.papers.kernels.counting_kernels import WORDS_AT_A_TIME, BitCounters, count_by_bits
from harken_lab.papers.row_matcher import RowSearch

_ONE = np.uint64(1)


class CountingBits(CountingMatrix):
    """Counting with a matrix of words, in which a bit is set if the row has the predicate."""

    _bits: BitCounters | None = None
    """The counters for kernels. None after a change."""

    element = np.uint64
    rows_each = ROWS

    def _set(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        np.bitwise_or.at(self._matrix, (numbers, rows >> 6), _bit(rows))

    def _unset(self, numbers: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        np.bitwise_and.at(self._matrix, (numbers, rows >> 6), ~_bit(rows))

    def _column(self, row: int, height: int) -> NDArray[np.uint64]:
        return self._matrix[:height, row >> 6] >> np.uint64(row & 63) & _ONE

    def _insert(self, rows: NDArray[np.int32]) -> None:
        super()._insert(rows)
        self._bits = None

    def _delete(self, rows: NDArray[np.int32]) -> None:
        super()._delete(rows)
        self._bits = None

    def _memory(self) -> dict[str, int]:
        planes = sum(each.nbytes for each in self._bit_counters())
        return super()._memory() | {"planes": planes}

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        done: int = count_by_bits(
            self._index.index,
            self._matrix,
            self._bit_counters(),
            self.rows.count,
            self._counters.always,
            codes,
            first,
            self._index.scratch(),
            out,
            offsets,
            examined,
        )
        return done

    def _bit_counters(self) -> BitCounters:
        """The number of predicates that each row needs, in bit planes, and empty counters."""
        if self._bits is None:
            words = -(-self._counters.size // ROWS)
            needed = np.full(words * ROWS, self._counters.never, np.int64)
            by_slot = self._counters.needed[: len(needed)]
            needed[: len(by_slot)] = by_slot
            has_row = needed != self._counters.never
            depth = int(needed[has_row].max(initial=0)).bit_length()
            planes = [np.where(has_row, needed >> plane & 1, 0) for plane in range(depth)]
            packed = [
                np.packbits(each.astype(np.uint8), bitorder="little").view(np.uint64) for each in (*planes, has_row)
            ]
            self._bits = BitCounters(
                np.empty((depth, WORDS_AT_A_TIME), np.uint64),
                np.stack(packed),
                np.empty(WORDS_AT_A_TIME, np.uint64),
                np.arange(words * ROWS, dtype=np.int32),
            )
        return self._bits


def _bit(rows: NDArray[np.int32]) -> NDArray[np.uint64]:
    return _ONE << (rows & 63).astype(np.uint64)
