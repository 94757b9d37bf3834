"""The numbers by which matchers know subscriptions: small, given out again, but never while somebody may still ask."""

from __future__ import annotations

from collections import deque

from harken.concurrency.forking import FINALIZER, fork_rlock


class Numbering:
    """Gives out numbers. One that comes back is given out again once all readings that had begun before are over."""

    def __init__(self, fresh: int = 0, free: list[int] | None = None) -> None:
        self._fresh = fresh
        """Every number below this is taken, free or resting."""
        self._free = free or []
        self._resting: deque[tuple[int, int]] = deque()
        """(moment at which it came back, number)"""
        self._moment = 0
        self._readings: dict[int, int] = {}
        """How many readings began at each moment and are not over."""
        # Reentrant: a result that is collected ends its reading wherever the collector happens to run.
        self._lock = fork_rlock(FINALIZER)

    @property
    def size(self) -> int:
        """All numbers are below this."""
        return self._fresh

    @property
    def free(self) -> list[int]:
        """The numbers that nobody has, also those that are resting."""
        with self._lock:
            return [*self._free, *(number for _, number in self._resting)]

    def take(self, count: int) -> list[int]:
        """So many numbers."""
        with self._lock:
            self._wake()
            recycled = self._free[max(0, len(self._free) - count) :]
            del self._free[len(self._free) - len(recycled) :]
            first, self._fresh = self._fresh, self._fresh + count - len(recycled)
            return [*recycled, *range(first, self._fresh)]

    def take_row(self, count: int) -> int:
        """So many numbers in a row, none of them used before. Returns the first."""
        with self._lock:
            first, self._fresh = self._fresh, self._fresh + count
            return first

    def give_back(self, number: int) -> None:
        with self._lock:
            self._resting.append((self._moment, number))
            self._moment += 1

    def begin(self) -> int:
        """A reading begins: what it finds keeps its number until it ends."""
        with self._lock:
            self._readings[self._moment] = self._readings.get(self._moment, 0) + 1
            return self._moment

    def end(self, moment: int) -> None:
        """The reading that began at this moment is over."""
        with self._lock:
            left = self._readings.pop(moment) - 1
            if left:
                self._readings[moment] = left

    def _wake(self) -> None:
        earliest = min(self._readings, default=self._moment)
        while self._resting and self._resting[0][0] < earliest:
            self._free.append(self._resting.popleft()[1])
