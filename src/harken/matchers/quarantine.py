"""Rows are found by their equalities; those without any are counted (Le Subscribe, 3.1: nonequality quarantining)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.kernels.equality import match_quarantined
from harken.matchers.equality import EqualityMatcher


class Quarantine(EqualityMatcher):
    """The other predicates of a row whose equalities hold are tested one by one."""

    def _find(
        self,
        codes: NDArray[np.uint32],
        first: int,
        out: NDArray[np.int32],
        offsets: NDArray[np.int64],
        examined: NDArray[np.int64],
    ) -> int:
        clusters, loose, space = self._clusters.clusters, self._loose.counted, self._loose.space()
        found: int = match_quarantined(
            clusters, self.rows.table, loose, self.rows.count, codes, first, space, out, offsets, examined
        )
        return found
