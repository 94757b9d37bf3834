"""Threads among which the clusters of one event are divided (Le Subscribe: clusters on several processors).

Kernels run without the interpreter's lock, so that the threads run at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError
from harken_lab.papers.kernels.equality_kernels import Probes

_Result = TypeVar("_Result")


class ClusterThreads:
    """The calling thread and `count - 1` others, each with room for its probes and its matches."""

    def __init__(self, count: int) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise CapabilityError(f"`threads` is the number of threads that search for one event, not {count!r}")
        self.count = count
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        self._rooms: list[tuple[Probes, NDArray[np.int32]]] = []

    def rooms(self, clusters: int, rows: int) -> list[tuple[Probes, NDArray[np.int32]]]:
        """For each thread, room for the probes of this many clusters, and for this many matches."""
        if not self._rooms or len(self._rooms[0][0].clusters) < clusters or len(self._rooms[0][1]) < rows:
            sizes = clusters + clusters // 2, rows + rows // 2
            self._rooms = [
                (Probes(np.empty(sizes[0], np.int32), np.empty(sizes[0], np.int64)), np.empty(sizes[1], np.int32))
                for _ in range(self.count)
            ]
        return self._rooms

    def run(self, work: Callable[[int], _Result]) -> list[_Result]:
        """The results of `work` for each thread, by its number."""
        others = [self._executor().submit(work, number) for number in range(1, self.count)]
        first = work(0)
        return [first, *(each.result() for each in others)]

    def _executor(self) -> ThreadPoolExecutor:
        # A forked process has none of its parent's threads.
        if self._pool is None or self._pool[0] != os.getpid():
            self._pool = os.getpid(), ThreadPoolExecutor(max(1, self.count - 1), "clusters")
        return self._pool[1]
