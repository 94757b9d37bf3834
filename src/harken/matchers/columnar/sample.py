"""A sample of events in codes, learnt while matching."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harken.segments.columns import Column
from harken.segments.constants import as_cells
from harken.segments.dictionary import Dictionary

_EVENTS = 1_024
_AT_ONCE = 64
"""Of one batch at most so many are taken, spread over it."""


class Sample:
    """The codes of the last events that were sampled, columns by events. Sampling grows rarer with every batch."""

    def __init__(self, columns: int, events: int = _EVENTS) -> None:
        self._codes = np.zeros((columns, events), np.uint32)
        self._taken = 0
        self.seen = 0
        """Events that went by."""
        self._next = 0

    def __len__(self) -> int:
        return min(self._taken, self._codes.shape[1])

    @property
    def codes(self) -> NDArray[np.uint32]:
        return self._codes[:, : len(self)]

    def learn(self, codes: NDArray[np.uint32]) -> None:
        """Take some events of a batch, if it is time to."""
        self.seen += codes.shape[1]
        if self.seen >= self._next:
            self.take(codes, _AT_ONCE)
            # The first batches are all looked at, then one in a hundred events.
            self._next = self.seen + (0 if self._taken < self._codes.shape[1] else 100 * _AT_ONCE)

    def take(self, codes: NDArray[np.uint32], most: int) -> None:
        """Take at most so many events of a batch, spread over it."""
        chosen = codes[:, :: max(1, -(-codes.shape[1] // most))]
        if not chosen.shape[1]:
            return
        places = (self._taken + np.arange(chosen.shape[1])) % self._codes.shape[1]
        if len(chosen) > len(self._codes):
            grown = np.zeros((len(chosen), self._codes.shape[1]), np.uint32)
            grown[: len(self._codes)] = self._codes
            self._codes = grown
        self._codes[: len(chosen), places] = chosen
        self._taken += chosen.shape[1]

    def translated(
        self,
        columns: Sequence[Column],
        dictionaries: Sequence[Dictionary],
        new_columns: Sequence[Column],
        new_dictionaries: Sequence[Dictionary],
    ) -> Sample:
        """The sample in the codes of other dictionaries. What fell into a gap falls beside the same constant again."""
        place = {column: i for i, column in enumerate(columns)}
        result = Sample(len(new_columns), self._codes.shape[1])
        result._taken, result.seen, result._next = self._taken, self.seen, self._next
        for i, (column, dictionary) in enumerate(zip(new_columns, new_dictionaries, strict=True)):
            old = place.get(column)
            if old is not None and old < len(self._codes):
                codes = _translation(column, dictionaries[old], dictionary)
                result._codes[i] = codes[self._codes[old]]
        return result


def _translation(column: Column, old: Dictionary, new: Dictionary) -> NDArray[np.uint32]:
    """For every code of one dictionary the code of the other."""
    translated = np.zeros(2 * len(old) + 2, np.uint32)
    constants = new.encode(as_cells(column, old.constants))
    translated[2::2] = constants
    translated[1] = 1
    translated[3::2] = np.minimum(constants + 1 - (constants & 1), 2 * len(new) + 1)
    return translated
