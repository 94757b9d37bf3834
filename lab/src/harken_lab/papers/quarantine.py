"""Rows are found by their equalities, or else counted (Le Subscribe, 3.1: nonequality quarantining)."""

from __future__ import annotations

from harken_lab.papers.equality import EqualityMatcher
from harken_lab.papers.kernels.equality_kernels import match_quarantined
from harken_lab.papers.row_matcher import RowSearch


class Quarantine(EqualityMatcher):
    """If the equalities of a row hold, its other predicates are tested one by one."""

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        done: int = match_quarantined(
            self._clusters.clusters,
            self.rows.table,
            self._loose.counted,
            self.rows.count,
            codes,
            first,
            self._loose.scratch(),
            self._clusters.probes(),
            out,
            offsets,
            examined,
        )
        return done
