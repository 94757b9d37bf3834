"""The numbers of a matcher's subscriptions, at one byte a number: their rows are in the database alone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray


class NumberSet:
    """A set of small numbers."""

    def __init__(self) -> None:
        self._marks = np.zeros(64, np.bool_)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, numbers: Collection[int]) -> None:
        """Add numbers."""
        if not numbers:
            return
        size = max(numbers) + 1
        if size > len(self._marks):
            marks = np.zeros(max(size, 2 * len(self._marks)), np.bool_)
            marks[: len(self._marks)] = self._marks
            self._marks = marks
        self._mark(numbers, is_in=True)

    def remove(self, numbers: Collection[int]) -> None:
        """Remove numbers."""
        if numbers:
            self._mark(numbers, is_in=False)

    def _mark(self, numbers: Collection[int], *, is_in: bool) -> None:
        places = np.unique(np.fromiter(numbers, np.int64, len(numbers)))
        changed = int(np.count_nonzero(self._marks[places] != is_in))
        self._marks[places] = is_in
        self._count += changed if is_in else -changed

    def numbers(self) -> NDArray[np.int64]:
        """All numbers, ascending."""
        return np.flatnonzero(self._marks)
