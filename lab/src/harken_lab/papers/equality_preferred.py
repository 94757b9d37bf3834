"""Rows are found by their equalities; their other predicates are counted (Le Subscribe, 3.1: equality-preferred)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.counting import CountedLists
from harken_lab.papers.equality import EqualityMatcher
from harken_lab.papers.kernels.equality_kernels import match_preferred
from harken_lab.papers.row_matcher import RowSearch


class EqualityPreferred(EqualityMatcher):
    """All equalities of a row are one look-up. Other predicates are counted, whether or not the equalities hold."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._partial = CountedLists("lists", equalities=False)
        """The rows with an equality: counts their other predicates."""

    def _insert(self, rows: NDArray[np.int32]) -> None:
        super()._insert(rows)
        self._partial.insert(self._split(rows)[0], self.rows.table, self.rows.spans)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        super()._delete(rows)
        self._partial.delete(self._split(rows)[0], self.rows.table)

    def _clear(self) -> None:
        super()._clear()
        self._partial.clear()

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        larger = max(self._partial, self._loose, key=lambda each: each.predicates.size)
        done: int = match_preferred(
            self._clusters.clusters,
            self.rows.table,
            self._partial.counted,
            self._partial.slots,
            self._loose.counted,
            self.rows.count,
            codes,
            first,
            larger.scratch(),
            self._clusters.probes(),
            out,
            offsets,
            examined,
        )
        return done

    def _memory(self) -> dict[str, int]:
        partial = {f"{name}, of rows with equalities": size for name, size in self._partial.memory.items()}
        return super()._memory() | partial
