"""The numbers by which matchers know subscriptions: small, and reused once no reader can ask for the old one."""

from __future__ import annotations

from collections import deque

from harken.concurrency.forking import FINALIZER, fork_rlock


class Numbering:
    """Gives out numbers. A number that is given back is reused once all readings that began before are over."""

    def __init__(self, fresh: int = 0, free: list[int] | None = None) -> None:
        self._fresh = fresh
        """Numbers below this are taken, free or resting; the others were never used."""
        self._free = free or []
        self._resting: deque[tuple[int, int]] = deque()
        """(moment at which it was given back, number)"""
        self._moment = 0
        self._readings: dict[int, int] = {}
        """Number of open readings by the moment at which they began."""
        # Reentrant: the garbage collector ends the reading of a result, and may run inside these methods.
        self._lock = fork_rlock(FINALIZER)

    @property
    def size(self) -> int:
        """All numbers are below this."""
        return self._fresh

    @property
    def free(self) -> list[int]:
        """The numbers that no subscription has, resting ones included."""
        with self._lock:
            return [*self._free, *(number for _, number in self._resting)]

    def take(self, count: int) -> list[int]:
        """Take `count` numbers."""
        with self._lock:
            self._wake()
            recycled = self._free[max(0, len(self._free) - count) :]
            del self._free[len(self._free) - len(recycled) :]
            first, self._fresh = self._fresh, self._fresh + count - len(recycled)
            return [*recycled, *range(first, self._fresh)]

    def take_row(self, count: int) -> int:
        """Take `count` consecutive numbers that were never used. Returns the first."""
        with self._lock:
            first, self._fresh = self._fresh, self._fresh + count
            return first

    def give_back(self, number: int) -> None:
        with self._lock:
            self._resting.append((self._moment, number))
            self._moment += 1

    def begin(self) -> int:
        """Begin a reading: the numbers that it finds are not reused until it ends. Returns its moment."""
        with self._lock:
            self._readings[self._moment] = self._readings.get(self._moment, 0) + 1
            return self._moment

    def end(self, moment: int) -> None:
        """End a reading that began at this moment."""
        with self._lock:
            remaining = self._readings.pop(moment) - 1
            if remaining:
                self._readings[moment] = remaining

    def _wake(self) -> None:
        earliest = min(self._readings, default=self._moment)
        while self._resting and self._resting[0][0] < earliest:
            self._free.append(self._resting.popleft()[1])
