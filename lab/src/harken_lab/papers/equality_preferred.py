"""Rows are found by their equalities; their other predicates are counted (Le Subscribe, 3.1: equality-preferred)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.counting import CountedLists
from harken_lab.papers.equality import EqualityMatcher, Share
from harken_lab.papers.kernels.equality_kernels import count_others, forget_counts, match_preferred, with_counts
from harken_lab.papers.row_matcher import RowSearch


class EqualityPreferred(EqualityMatcher):
    """All equalities of a row are one look-up. Other predicates are counted, whether or not the equalities hold."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, threads: int = 1) -> None:
        super().__init__(limits, threads)
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
        if self._threads.count > 1:
            return self._find_in_threads(search)
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

    def _shares(self, codes: NDArray[np.uint32], event: int) -> list[Share]:
        clusters, threads, partial = self._clusters.clusters, self._threads, self._partial.counted
        rooms, scratch = threads.rooms(len(clusters.sizes), self.rows.count), self._partial.scratch()
        used, increments = count_others(partial, codes, event, scratch)

        def search(number: int) -> Share:
            probes, out = rooms[number]
            end, candidates = with_counts(
                *(clusters, self.rows.table, self._partial.slots, partial.counters),
                *(codes, event, number, threads.count, probes, out, 0),
            )
            return out[:end], candidates

        shares = threads.run(search)
        forget_counts(partial, scratch, used, increments)
        return [*shares, (np.empty(0, np.int32), int(increments))]

    def _memory(self) -> dict[str, int]:
        partial = {f"{name}, of rows with equalities": size for name, size in self._partial.memory.items()}
        return super()._memory() | partial
