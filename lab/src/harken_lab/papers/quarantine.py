"""Rows are found by their equalities, or else counted (Le Subscribe, 3.1: nonequality quarantining)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.equality import EqualityMatcher, Share
from harken_lab.papers.kernels.equality_kernels import match_quarantined, with_tests
from harken_lab.papers.row_matcher import RowSearch


class Quarantine(EqualityMatcher):
    """If the equalities of a row hold, its other predicates are tested one by one."""

    def _find(self, search: RowSearch) -> int:
        if self._threads.count > 1:
            return self._find_in_threads(search)
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

    def _shares(self, codes: NDArray[np.uint32], event: int) -> list[Share]:
        clusters, threads = self._clusters.clusters, self._threads
        rooms = threads.rooms(len(clusters.sizes), self.rows.count)

        def search(number: int) -> Share:
            probes, out = rooms[number]
            end, candidates = with_tests(clusters, self.rows.table, codes, event, number, threads.count, probes, out, 0)
            return out[:end], candidates

        return threads.run(search)
