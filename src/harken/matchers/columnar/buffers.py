"""Memory for answers, which is used again when nobody looks at them any more.

Fresh memory for every answer costs as much as all of matching where many subscriptions match.
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
        """Whether nobody refers to it, nor to a view of it: a view refers to what it is a view of."""
        return sys.getrefcount(self.elements) == self._ours


class Buffers:
    """Buffers that are taken, and come back by themselves."""

    def __init__(self, settings: ColumnarSettings = DEFAULT_SETTINGS) -> None:
        self._settings = settings
        self._lock = fork_lock(PART)
        self._kept: list[_Buffer] = []
        """Those that were taken last stand last."""
        self._turn = 0

    def take(self, size: int, hoped: int = 0) -> NDArray[np.int32]:
        """At least so many elements, or those that are hoped for if they are kept, while somebody refers to them."""
        with self._lock:
            self._turn += 1
            wanted = max(size, hoped)
            most = self._settings.roomy * max(wanted, self._settings.least_buffer)
            fitting = [each for each in self._kept if wanted <= len(each.elements) <= most and each.is_free()]
            if fitting:
                taken = min(fitting, key=lambda each: len(each.elements))
                self._kept.remove(taken)
            else:
                taken = _Buffer(max(self._settings.least_buffer, size + size // 4))
            taken.turn = self._turn
            self._kept.append(taken)
            self._give_up()
            return taken.elements

    def enlarge(self, buffer: NDArray[np.int32], used: int, size: int, hoped: int) -> NDArray[np.int32]:
        """What a buffer has in its first elements in a larger one, taken in place of it.

        One in which there was anything will be too small again, and is given up.
        """
        larger = self.take(size, hoped)
        larger[:used] = buffer[:used]
        if used:
            with self._lock:
                self._kept = [each for each in self._kept if each.elements is not buffer]
        return larger

    def answer(self, buffer: NDArray[np.int32], size: int) -> NDArray[np.int32]:
        """The first elements of a buffer, by themselves where it is much too large for them."""
        is_large = len(buffer) > self._settings.roomy * max(size, self._settings.least_buffer)
        return buffer[:size].copy() if is_large else buffer[:size]

    def _give_up(self) -> None:
        """Forget what is too much, or was not wanted for long. Who looks at it keeps it."""
        most_kept = self._settings.most_kept_ids
        room, has_large = most_kept, False
        kept: list[_Buffer] = []
        for each in reversed(self._kept):
            size = len(each.elements)
            is_large = size > most_kept
            if each.turn > self._turn - self._settings.kept_turns and (not has_large if is_large else size <= room):
                kept.append(each)
                has_large, room = has_large or is_large, room - (0 if is_large else size)
        self._kept = kept[::-1]
