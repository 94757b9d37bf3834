"""Rows are found by their equalities, and counted by the rest (Le Subscribe, 3.1: the equality-preferred approach)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.counting import CountedLists
from harken_lab.papers.equality import EqualityMatcher
from harken_lab.papers.kernels.equality_kernels import match_preferred
from harken_lab.papers.row_matcher import RowSearch


class EqualityPreferred(EqualityMatcher):
    """All equalities of a row are one look-up. Its other predicates are counted, for all rows that have them."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._partial = CountedLists("lists", equalities=False)

    def _insert(self, rows: NDArray[np.int32]) -> None:
        super()._insert(rows)
        self._partial.insert(self._parted(rows)[0], self.rows.table, self.rows.spans)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        super()._delete(rows)
        self._partial.delete(self._parted(rows)[0], self.rows.table)

    def _clear(self) -> None:
        super()._clear()
        self._partial.clear()

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        larger = max(self._partial, self._loose, key=lambda each: each.predicates.size)
        found: int = match_preferred(
            self._clusters.clusters,
            self.rows.table,
            self._partial.counted,
            self._partial.slots,
            self._loose.counted,
            self.rows.count,
            codes,
            first,
            larger.space(),
            self._clusters.probes(),
            out,
            offsets,
            examined,
        )
        return found

    def _memory(self) -> dict[str, int]:
        partial = {f"{name}, of rows with equalities": size for name, size in self._partial.memory.items()}
        return super()._memory() | partial
