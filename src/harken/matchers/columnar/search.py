"""Searching a layer: finders for several threads, and what its rows find in a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from harken.kernels.several import Values, find_in_clusters, find_in_pools
from harken.matchers.columnar.index import Finder, Index
from harken.matchers.columnar.layer import Layer

_CLASSES = 256
_KEPT = 4
"""Finders that wait to be used again; more threads than this make theirs anew."""


class Searched:
    """A layer, how many of its rows were deleted, and finders that are free."""

    def __init__(self, layer: Layer, columns: int) -> None:
        self.layer = layer
        self.columns = columns
        """The columns whose codes it knows. Columns that came later stand behind them."""
        self.dead = 0
        self.events = 0
        """The events that were searched for."""
        self.seen = [np.zeros(_parts(index), np.int64) for index in (layer.plain, layer.careful)]
        """Of plain and careful, by cluster and pool: the slots that were looked at."""
        self._free: tuple[deque[Finder], deque[Finder]] = (deque(maxlen=_KEPT), deque(maxlen=_KEPT))

    def __len__(self) -> int:
        """The rows that are left."""
        return len(self.layer) - self.dead

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Delete subscriptions. Returns how many rows they had here."""
        found = self.layer.delete(numbers)
        self.dead += found
        return found

    @contextmanager
    def finder(self, *, careful: bool) -> Iterator[Finder]:
        """A finder, for the time being, whose counts are added to `seen` in the end."""
        free = self._free[careful]
        try:
            found = free.pop()
        except IndexError:
            found = Finder(self.layer.careful if careful else self.layer.plain, self.columns)
        try:
            yield found
        finally:
            self.seen[careful] += found.seen
            found.seen[:] = 0
            free.append(found)

    def doubtful(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these, found by careful rows, have to be verified."""
        known = self.layer.doubtful
        if not len(known):
            return np.zeros(len(numbers), np.bool_)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        found: NDArray[np.bool_] = known[places] == numbers
        return found

    def find_several(self, given: Values, place: int, out: NDArray[np.int32], end: int) -> int:
        """Append the numbers that may match an event with several values. Returns their end, or -1 without room."""
        for index in (self.layer.plain, self.layer.careful):
            if end >= 0:
                end = find_in_clusters(index.clusters, index.ids, index.dead, given, place, out, end)
            if end >= 0:
                admitted, words = np.empty(_CLASSES, np.bool_), np.empty(16, np.uint64)
                end = find_in_pools(index.pools, index.ids, index.dead, given, place, admitted, words, out, end)
        return end


def _parts(index: Index) -> int:
    return len(index.clusters.clusters) + len(index.pools.pools)
