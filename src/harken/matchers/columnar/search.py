"""Searching a layer: a pool of finders for several threads, deletions, and counts for the report."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.several import EventCodes, find_in_clusters, find_in_pools
from harken.kernels.sieve import find_in_sieve
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings
from harken.matchers.columnar.deletions import Deletions
from harken.matchers.columnar.index import Finder
from harken.matchers.columnar.layer import Layer

_CLASSES = 256
_NO_NUMBERS = np.empty(0, np.int32)


class LayerDeletions(NamedTuple):
    """The deleted rows of a layer at one moment. Later deletions make another object."""

    plain: Deletions
    careful: Deletions


class SearchableLayer:
    """A layer, the number of its deleted rows, and free finders."""

    def __init__(
        self,
        layer: Layer,
        columns: int,
        stale: NDArray[np.int32] = _NO_NUMBERS,
        settings: ColumnarSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.layer = layer
        self.settings = settings
        self.stale = stale
        """The stale subscriptions, ascending: verified only because the base does not know their constants."""
        self.columns = columns
        """Number of columns that its rows are coded in. Later columns follow them."""
        self.dead = 0
        self.events = 0
        """Number of events searched for."""
        self._seen = [np.zeros(index.parts(), np.int64) for index in (layer.plain, layer.careful)]
        """Slots examined by discarded finders."""
        self._free: tuple[deque[Finder], deque[Finder]] = (deque(), deque())

    def __len__(self) -> int:
        """Number of rows that are not deleted."""
        return len(self.layer) - self.dead

    @property
    def seen(self) -> list[NDArray[np.int64]]:
        """Slots examined of plain and careful rows, by cluster, pool and sieve. Finders in use are not counted."""
        return [
            sum((finder.seen for finder in list(free)), seen) for seen, free in zip(self._seen, self._free, strict=True)
        ]

    @seen.setter
    def seen(self, seen: list[NDArray[np.int64]]) -> None:
        self._seen = seen

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Delete subscriptions. Returns the number of their rows in this layer."""
        count = self.layer.delete(numbers)
        self.dead += count
        return count

    def deleted(self) -> LayerDeletions:
        """The present deletions."""
        return LayerDeletions(self.layer.plain.deletions(), self.layer.careful.deletions())

    @contextmanager
    def finder(self, *, careful: bool) -> Iterator[Finder]:
        """Borrow a finder."""
        finder = self.take_finder(careful=careful)
        try:
            yield finder
        finally:
            self.give_back(finder, careful=careful)

    def take_finder(self, *, careful: bool) -> Finder:
        """A finder for the sole use of the caller, until `give_back`."""
        try:
            return self._free[careful].pop()
        except IndexError:
            return Finder(self.layer.careful if careful else self.layer.plain, self.columns, self.settings)

    def give_back(self, finder: Finder, *, careful: bool) -> None:
        """Keep a finder for reuse, or discard it if enough are kept."""
        free = self._free[careful]
        if len(free) < self.settings.finders_kept:
            free.append(finder)
        else:
            self._seen[careful] = self._seen[careful] + finder.seen

    def doubtful(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these candidates of careful rows have to be verified."""
        return _among(self.layer.doubtful, numbers)

    def count_stale(self, numbers: NDArray[np.int32]) -> int:
        """The number of stale ones among these candidates of careful rows."""
        return int(np.count_nonzero(_among(self.stale, numbers))) if len(self.stale) else 0

    def find_several(
        self, deleted: LayerDeletions, event_codes: EventCodes, place: int, out: NDArray[np.int32], end: int
    ) -> int:
        """Append the candidates of an event with several values. Returns their end, or -1 if `out` is too small."""
        for index, deletions in ((self.layer.plain, deleted.plain), (self.layer.careful, deleted.careful)):
            if not len(index):
                continue
            dead = deletions.bitmap
            if end >= 0:
                end = find_in_clusters(index.clusters, index.ids, dead, event_codes, place, out, end)
            if end >= 0:
                admitted, words = np.empty(_CLASSES, np.bool_), np.empty(16, np.uint64)
                end = find_in_pools(index.pools, index.ids, dead, event_codes, place, admitted, words, out, end)
            if end >= 0:
                buckets = np.empty(self.columns, np.uint64)
                end = find_in_sieve(index.sieve, index.ids, dead, event_codes, place, buckets, words, out, end)
        return end


def _among(members: NDArray[np.int32], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the numbers are members. `members` is ascending."""
    if not len(members):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(members, numbers), len(members) - 1)
    is_member: NDArray[np.bool_] = members[places] == numbers
    return is_member
