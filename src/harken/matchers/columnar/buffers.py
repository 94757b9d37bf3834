"""Buffers for answers, reused when their answers are no longer referenced.

If many subscriptions match, allocating memory for every answer costs as much as matching.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.forking import PART, fork_lock
from harken.matchers.columnar.columnar_settings import DEFAULT_SETTINGS, ColumnarSettings


class _Buffer:
    __slots__ = ("_ours", "elements", "turn")

    def __init__(self, size: int) -> None:
        self.elements = np.empty(size, np.int32)
        self._ours = sys.getrefcount(self.elements)
        self.turn = 0

    def is_free(self) -> bool:
        """Whether neither the array nor a view of it is referenced: a view references its base."""
        return sys.getrefcount(self.elements) == self._ours


class Buffers:
    """Buffers that become free by themselves when they are no longer referenced."""

    def __init__(self, settings: ColumnarSettings = DEFAULT_SETTINGS) -> None:
        self._settings = settings
        self._lock = fork_lock(PART)
        self._kept: list[_Buffer] = []
        """In the order in which they were last taken."""
        self._turn = 0

    def take(self, size: int, hoped: int = 0) -> NDArray[np.int32]:
        """An array of at least `size` elements, or of `hoped` if a free buffer has as many."""
        with self._lock:
            self._turn += 1
            wanted = max(size, hoped)
            most = self._settings.roomy * max(wanted, self._settings.least_buffer)
            fitting = [buffer for buffer in self._kept if wanted <= len(buffer.elements) <= most and buffer.is_free()]
            if fitting:
                taken = min(fitting, key=lambda each: len(each.elements))
                self._kept.remove(taken)
            else:
                taken = _Buffer(max(self._settings.least_buffer, size + size // 4))
            taken.turn = self._turn
            self._kept.append(taken)
            self._drop_unused()
            return taken.elements

    def enlarge(self, buffer: NDArray[np.int32], used: int, size: int, hoped: int) -> NDArray[np.int32]:
        """A larger buffer with the first `used` elements of `buffer`.

        If any element was used, the old buffer is dropped: it would be too small again.
        """
        larger = self.take(size, hoped)
        larger[:used] = buffer[:used]
        if used:
            with self._lock:
                self._kept = [kept for kept in self._kept if kept.elements is not buffer]
        return larger

    def answer(self, buffer: NDArray[np.int32], size: int) -> NDArray[np.int32]:
        """The first elements of a buffer, as a copy if the buffer is much larger."""
        is_large = len(buffer) > self._settings.roomy * max(size, self._settings.least_buffer)
        return buffer[:size].copy() if is_large else buffer[:size]

    def _drop_unused(self) -> None:
        """Drop buffers beyond the limit and buffers not used for long. References to them stay valid."""
        most_kept = self._settings.most_kept_ids
        room, has_large = most_kept, False
        kept: list[_Buffer] = []
        for buffer in reversed(self._kept):
            size = len(buffer.elements)
            is_large = size > most_kept
            if buffer.turn > self._turn - self._settings.kept_turns and (not has_large if is_large else size <= room):
                kept.append(buffer)
                has_large, room = has_large or is_large, room - (0 if is_large else size)
        self._kept = kept[::-1]
