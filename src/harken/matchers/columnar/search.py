"""Searching a layer: finders for several threads, and what its rows find in a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.several import Values, find_in_clusters, find_in_pools
from harken.matchers.columnar.index import Finder, Index
from harken.matchers.columnar.layer import Layer

_CLASSES = 256
_NOBODY = np.empty(0, np.int32)
_KEPT = 4
"""Finders that wait to be used again; more threads than this make theirs anew."""


class Deleted(NamedTuple):
    """The rows of a layer that are deleted. It never changes: what is deleted later makes another."""

    rows: int
    plain: NDArray[np.uint64]
    careful: NDArray[np.uint64]


class Searched:
    """A layer, how many of its rows were deleted, and finders that are free."""

    def __init__(self, layer: Layer, columns: int, stale: NDArray[np.int32] = _NOBODY) -> None:
        self.layer = layer
        self.stale = stale
        """Of the subscriptions to be verified those, ascending, that need not be if codes knew their constants."""
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

    def deleted(self) -> Deleted:
        """What is deleted now."""
        return Deleted(self.dead, self.layer.plain.dead, self.layer.careful.dead)

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
        return _among(self.layer.doubtful, numbers)

    def count_stale(self, numbers: NDArray[np.int32]) -> int:
        """How many of these, found by careful rows, are verified only because codes do not know their constants."""
        return int(np.count_nonzero(_among(self.stale, numbers))) if len(self.stale) else 0

    def find_several(self, deleted: Deleted, given: Values, place: int, out: NDArray[np.int32], end: int) -> int:
        """Append the numbers that may match an event with several values. Returns their end, or -1 without room."""
        for index, dead in ((self.layer.plain, deleted.plain), (self.layer.careful, deleted.careful)):
            if not len(index):
                continue
            if end >= 0:
                end = find_in_clusters(index.clusters, index.ids, dead, given, place, out, end)
            if end >= 0:
                admitted, words = np.empty(_CLASSES, np.bool_), np.empty(16, np.uint64)
                end = find_in_pools(index.pools, index.ids, dead, given, place, admitted, words, out, end)
        return end


def _among(known: NDArray[np.int32], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the numbers are among those that are known, which are ascending."""
    if not len(known):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    found: NDArray[np.bool_] = known[places] == numbers
    return found


def _parts(index: Index) -> int:
    return len(index.clusters.clusters) + len(index.pools.pools)
