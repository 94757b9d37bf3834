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
        found: int = match_quarantined(
            self._clusters.clusters,
            self.rows.table,
            self._loose.counted,
            self.rows.count,
            codes,
            first,
            self._loose.space(),
            self._clusters.probes(),
            out,
            offsets,
            examined,
        )
        return found
