"""Searching a layer: finders for several threads, and what its rows find in a batch."""

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
_NOBODY = np.empty(0, np.int32)


class LayerDeletions(NamedTuple):
    """The rows of a layer that are deleted. What is deleted later makes another."""

    plain: Deletions
    careful: Deletions


class Searched:
    """A layer, how many of its rows were deleted, and finders that are free."""

    def __init__(
        self,
        layer: Layer,
        columns: int,
        stale: NDArray[np.int32] = _NOBODY,
        settings: ColumnarSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.layer = layer
        self.settings = settings
        self.stale = stale
        """Of the subscriptions to be verified those, ascending, that need not be if codes knew their constants."""
        self.columns = columns
        """The columns whose codes it knows. Columns that came later stand behind them."""
        self.dead = 0
        self.events = 0
        """The events that were searched for."""
        self._seen = [np.zeros(index.parts(), np.int64) for index in (layer.plain, layer.careful)]
        """What finders that are gone have seen."""
        self._free: tuple[deque[Finder], deque[Finder]] = (deque(), deque())

    def __len__(self) -> int:
        """The rows that are left."""
        return len(self.layer) - self.dead

    @property
    def seen(self) -> list[NDArray[np.int64]]:
        """Of plain and careful, by cluster, pool and sieve: the slots that were looked at, by finders that are done."""
        return [
            sum((each.seen for each in list(free)), seen) for seen, free in zip(self._seen, self._free, strict=True)
        ]

    @seen.setter
    def seen(self, seen: list[NDArray[np.int64]]) -> None:
        self._seen = seen

    def delete(self, numbers: NDArray[np.int32]) -> int:
        """Delete subscriptions. Returns how many rows they had here."""
        found = self.layer.delete(numbers)
        self.dead += found
        return found

    def deleted(self) -> LayerDeletions:
        """What is deleted now."""
        return LayerDeletions(self.layer.plain.deletions(), self.layer.careful.deletions())

    @contextmanager
    def finder(self, *, careful: bool) -> Iterator[Finder]:
        """A finder, for the time being."""
        found = self.take_finder(careful=careful)
        try:
            yield found
        finally:
            self.give_back(found, careful=careful)

    def take_finder(self, *, careful: bool) -> Finder:
        """A finder that nobody else uses until it is given back."""
        try:
            return self._free[careful].pop()
        except IndexError:
            return Finder(self.layer.careful if careful else self.layer.plain, self.columns, self.settings)

    def give_back(self, finder: Finder, *, careful: bool) -> None:
        """Have a finder used again, or let it go if there are enough."""
        free = self._free[careful]
        if len(free) < self.settings.finders_kept:
            free.append(finder)
        else:
            self._seen[careful] = self._seen[careful] + finder.seen

    def doubtful(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these, found by careful rows, have to be verified."""
        return _among(self.layer.doubtful, numbers)

    def count_stale(self, numbers: NDArray[np.int32]) -> int:
        """How many of these, found by careful rows, are verified only because codes do not know their constants."""
        return int(np.count_nonzero(_among(self.stale, numbers))) if len(self.stale) else 0

    def find_several(
        self, deleted: LayerDeletions, event_codes: EventCodes, place: int, out: NDArray[np.int32], end: int
    ) -> int:
        """Append the numbers that may match an event with several values. Returns their end, or -1 without room."""
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


def _among(known: NDArray[np.int32], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the numbers are among those that are known, which are ascending."""
    if not len(known):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    found: NDArray[np.bool_] = known[places] == numbers
    return found
