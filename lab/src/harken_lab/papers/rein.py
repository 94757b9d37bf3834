"""Rows that fail are marked, and the unmarked rows match (REIN: Qian et al., INFOCOM 2014).

Each attribute has a list of low bounds and a list of high bounds. An event's value fails all intervals that begin above
it, at the end of the first list, or end below it, at the start of the second. The paper keeps bounds in buckets, which
are cheap to insert into, and compares the bounds of one bucket. Here lists are sorted, so that none is compared; the
latest rows are tested one by one until there are enough of them to sort all rows again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.growing import LAST_LABEL
from harken_lab.papers.kernels.rein_kernels import BoundLists, Bounds, find_unmarked
from harken_lab.papers.labelled_rows import predicates_of
from harken_lab.papers.row_matcher import RowMatcher, RowSearch

_LATEST, _LATEST_SHARE = 256, 64
"""All rows are sorted again once more than this many, and more than 1/64 of all, are unsorted."""
_ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Rein(RowMatcher):
    """The matcher: sorted bounds by attribute, and a bit for every row."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._latest = np.empty(0, np.int32)
        self._clear()

    def _insert(self, rows: NDArray[np.int32]) -> None:
        self._latest = np.concatenate([self._latest, rows])
        if len(self._latest) > max(_LATEST, self.rows.count // _LATEST_SHARE):
            self._sort(self.rows.alive())

    def _delete(self, rows: NDArray[np.int32]) -> None:
        self._latest = np.setdiff1d(self._latest, rows, assume_unique=True)
        sorted_rows = rows[rows < len(self._lists.failed) * 64]
        bits = np.uint64(1) << (sorted_rows & 63).astype(np.uint64)
        np.bitwise_or.at(self._lists.failed, sorted_rows >> 6, bits)

    def _clear(self) -> None:
        self._sort(np.empty(0, np.int32))

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        done: int = find_unmarked(
            self._lists, self.rows.table, self._latest, self.rows.count, codes, np.empty_like(self._lists.failed),
            first, out, offsets, examined,
        )  # fmt: skip
        return done

    def _memory(self) -> dict[str, int]:
        lists = self._lists
        bounds = (*lists.low, *lists.high, *lists.wrapped, lists.wrapped_high)
        return {"bounds": sum(each.nbytes for each in bounds), "bits": lists.failed.nbytes}

    def _details(self) -> dict[str, Any]:
        return {"latest_rows": len(self._latest)}

    def _sort(self, rows: NDArray[np.int32]) -> None:
        """Build the sorted lists from the bounds of these rows."""
        table = self.rows.table
        owner, at = predicates_of(table, rows)
        owners, column, low, high = rows[owner], table.columns[at], table.low[at], table.high[at]
        width = len(self.rows.columns)
        is_wrapped = low > high
        lows = _sorted(owners, column, low, ~is_wrapped, width)
        highs = _sorted(owners, column, high, ~is_wrapped & (high != LAST_LABEL), width)
        wrapped = np.flatnonzero(is_wrapped)
        wrapped = wrapped[np.argsort(column[wrapped], kind="stable")]
        starts = np.searchsorted(column[wrapped], np.arange(width + 1))
        failed = np.full(-(-(int(rows.max(initial=-1)) + 1) // 64), _ALL_BITS)
        bits = np.uint64(1) << (rows & 63).astype(np.uint64)
        np.bitwise_and.at(failed, rows >> 6, ~bits)
        self._lists = BoundLists(lows, highs, Bounds(starts, low[wrapped], owners[wrapped]), high[wrapped], failed)
        self._latest = np.empty(0, np.int32)


def _sorted(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    labels: NDArray[np.uint32],
    wanted: NDArray[np.bool_],
    width: int,
) -> Bounds:
    """The wanted bounds, by column and label."""
    chosen = np.flatnonzero(wanted)
    order = chosen[np.lexsort((labels[chosen], columns[chosen]))]
    return Bounds(np.searchsorted(columns[order], np.arange(width + 1)), labels[order], rows[order])
