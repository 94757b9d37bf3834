"""Deletions from an index: rows are first marked, then compacted once enough events have come for that to pay.

With marked rows, events that copy long runs of ids take up to four times as long: every slot is looked up in a bitmap.
Compacting copies the ids of all rows, about a millisecond per million: too slow for every deletion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.clusters import LIST_START, NONE, REST_COUNT, Clusters
from harken.kernels.deletes import COMPACT, MARKED, NONE_DELETED, Deleted, take_out
from harken.kernels.frozen import frozen
from harken.kernels.pool import Pools
from harken.kernels.vector import ROWS

_NO_COUNTS = np.empty(0, np.int32)


class Deletions:
    """The deleted slots of an index at one moment. Later deletions make another object."""

    def __init__(
        self, clusters: Clusters, pools: Pools, ids: NDArray[np.int32], rows: int, bitmap: NDArray[np.uint64]
    ) -> None:
        self.bitmap = bitmap
        self._ids, self._rows = ids, rows
        self._clustered = pools.first_slot
        """Number of slots of clusters. Those of pools are not compacted: the bitmap is quick enough."""
        self._events = 0
        self._kept = [self._marked()]
        """Keeps the arrays of frozen words alive: threads may still use the first ones."""
        self._frozen = frozen(self._kept[0])
        copied = (clusters.clusters[:, REST_COUNT] == 0) & (clusters.clusters[:, LIST_START] == NONE)
        self._may_compact = bool(copied.any()) and self._kept[0].state == MARKED

    def frozen_for(self, events: int, rows_an_event: int) -> Any:
        """The deletions as words for a kernel. Compacts after one event, including these, per `rows_an_event` rows."""
        if self._may_compact:
            self._events += events
            if self._events * rows_an_event >= self._rows:
                self._compact()
        return self._frozen

    def _marked(self) -> Deleted:
        state = MARKED if self.bitmap.any() else NONE_DELETED
        return Deleted(state, self.bitmap, _NO_COUNTS, self._ids)

    def _compact(self) -> None:
        before, live = _taken_out(self._ids, self.bitmap, self._clustered)
        self._kept.append(Deleted(COMPACT, self.bitmap, before, live))
        self._frozen = frozen(self._kept[-1])
        self._may_compact = False


def _taken_out(
    ids: NDArray[np.int32], dead: NDArray[np.uint64], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The number of deleted slots before each word of the bitmap, and the remaining ids, padded."""
    before, live = np.empty(len(dead), np.int32), np.empty(size + ROWS, np.int32)
    count = take_out(ids, dead, size, before, live)
    return before, live[: count + ROWS]
