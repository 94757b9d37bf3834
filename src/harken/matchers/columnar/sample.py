"""A sample of events in codes, learnt while matching, and what it tells by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.constants import as_cells, selected
from harken.codes.dictionary import Dictionary, dictionary_of

_EVENTS = 1_024
_AT_ONCE = 64
"""Of one batch at most so many are taken, spread over it."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What was learnt of events, apart from the index that learnt it: it can be given to one with other constants."""

    columns: tuple[Column, ...]
    dictionaries: tuple[Dictionary, ...]
    """The constants that events had, or came next to."""
    codes: NDArray[np.uint32]
    """Columns by events."""
    _places: dict[Column, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {column: place for place, column in enumerate(self.columns)})

    def __len__(self) -> int:
        """How many events it tells of."""
        return int(self.codes.shape[1])

    def codes_in(self, column: Column, dictionary: Dictionary, events: int) -> NDArray[np.uint32] | None:
        """The column in the codes of a dictionary, for so many events; None if nothing is known of it."""
        place = self._places.get(column)
        if place is None or not len(self):
            return None
        codes = _translation(column, self.dictionaries[place], dictionary)[self.codes[place]]
        return np.resize(codes, events)

    def only(self, columns: set[Column]) -> Statistics:
        """What it tells of these columns."""
        kept = [place for place, column in enumerate(self.columns) if column in columns]
        chosen = tuple(self.columns[place] for place in kept)
        return Statistics(chosen, tuple(self.dictionaries[place] for place in kept), self.codes[kept])

    def with_others(self, other: Statistics) -> Statistics:
        """The same, and what the other tells of columns that this one does not know."""
        more = other.only(set(other.columns) - set(self.columns))
        if not len(other) or not more.columns:
            return self
        events = len(self) or len(other)
        return Statistics(
            (*self.columns, *more.columns),
            (*self.dictionaries, *more.dictionaries),
            np.concatenate([np.resize(row, (1, events)) for row in (*self.codes, *more.codes)]),
        )


class SampleState(NamedTuple):
    """What a sample is made of."""

    codes: NDArray[np.uint32]
    taken: int
    seen: int
    next: int


class Sample:
    """The codes of the last events that were sampled, columns by events. Sampling grows rarer with every batch."""

    def __init__(self, columns: int, events: int = _EVENTS) -> None:
        self._codes = np.zeros((columns, events), np.uint32)
        self._taken = 0
        self.seen = 0
        """Events that went by."""
        self._next = 0

    @classmethod
    def of_state(cls, state: SampleState) -> Self:
        """A sample that goes on from there."""
        result = cls(0)
        result._codes, result._taken, result.seen, result._next = state
        return result

    def state(self) -> SampleState:
        """All that it is made of, as it is now."""
        return SampleState(self._codes.copy(), self._taken, self.seen, self._next)

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
            # The first batches are all looked at, single events ever more rarely, then one in a hundred events.
            is_full = self._taken >= self._codes.shape[1]
            self._next = self.seen + (100 * _AT_ONCE if is_full else self._taken // _AT_ONCE)

    def take(self, codes: NDArray[np.uint32], most: int) -> None:
        """Take at most so many events of a batch, spread over it."""
        if not codes.shape[1]:
            return
        chosen = codes[:, :: max(1, -(-codes.shape[1] // most))]
        places = (self._taken + np.arange(chosen.shape[1])) % self._codes.shape[1]
        if len(chosen) > len(self._codes):
            grown = np.zeros((len(chosen), self._codes.shape[1]), np.uint32)
            grown[: len(self._codes)] = self._codes
            self._codes = grown
        self._codes[: len(chosen), places] = chosen
        self._taken += chosen.shape[1]

    def statistics(self, columns: Sequence[Column], dictionaries: Sequence[Dictionary]) -> Statistics:
        """What it tells by value; it is in the codes of these dictionaries. Columns without constants are left out."""
        kept = [place for place in range(len(self._codes)) if len(dictionaries[place])]
        smaller = [_cut(columns[place], dictionaries[place], self.codes[place]) for place in kept]
        return Statistics(
            tuple(columns[place] for place in kept),
            tuple(dictionary for dictionary, _ in smaller),
            np.array([codes for _, codes in smaller], np.uint32).reshape(len(kept), len(self)),
        )

    def given(self, statistics: Statistics, columns: Sequence[Column], dictionaries: Sequence[Dictionary]) -> Sample:
        """A sample that goes by statistics in place of what was learnt."""
        result = Sample(len(columns), self._codes.shape[1])
        result._taken, result.seen = len(statistics), self.seen
        for i, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
            result._codes[i] = result._without_looking(column, dictionary, statistics)
        return result

    def translated(
        self,
        columns: Sequence[Column],
        dictionaries: Sequence[Dictionary],
        new_columns: Sequence[Column],
        new_dictionaries: Sequence[Dictionary],
        given: Statistics,
    ) -> Sample:
        """The sample in the codes of other dictionaries. What fell into a gap falls beside the same constant again.

        Of columns that had no constants, what was given is believed.
        """
        believed = set(given.columns)
        place = {
            column: i
            for i, column in enumerate(columns[: len(self._codes)])
            if len(dictionaries[i]) or column not in believed
        }
        result = Sample(len(new_columns), self._codes.shape[1])
        result._taken, result.seen, result._next = self._taken, self.seen, self._next
        for i, (column, dictionary) in enumerate(zip(new_columns, new_dictionaries, strict=True)):
            old = place.get(column)
            if old is not None:
                codes = _translation(column, dictionaries[old], dictionary)
                result._codes[i] = codes[self._codes[old]]
            else:
                result._codes[i] = result._without_looking(column, dictionary, given)
        return result

    def _without_looking(self, column: Column, dictionary: Dictionary, given: Statistics) -> NDArray[np.uint32]:
        """The codes of a column that no event was asked about: as given, or any of its constants, one like another."""
        events = self._codes.shape[1]
        found = given.codes_in(column, dictionary, events)
        if found is not None:
            return found
        if not len(dictionary):
            return np.ones(events, np.uint32)
        return (2 * (np.arange(events) * len(dictionary) // events) + 2).astype(np.uint32)


NO_STATISTICS = Statistics((), (), np.empty((0, 0), np.uint32))


def _cut(column: Column, dictionary: Dictionary, codes: NDArray[np.uint32]) -> tuple[Dictionary, NDArray[np.uint32]]:
    """A dictionary of those constants alone that codes are at or behind, and the codes in it."""
    # Both 2r + 2, the constant of rank r, and 2r + 3, the gap behind it, are told by that constant.
    used = np.zeros(len(dictionary) + 1, np.bool_)
    used[codes >> 1] = True
    used[0] = False
    smaller, _ = dictionary_of(column, selected(dictionary.constants, used[1:]))
    place = np.cumsum(used).astype(np.uint32)
    return smaller, np.where(codes < 2, codes, 2 * place[codes >> 1] + (codes & 1))


def _translation(column: Column, old: Dictionary, new: Dictionary) -> NDArray[np.uint32]:
    """For every code of one dictionary the code of the other."""
    translated = np.zeros(2 * len(old) + 2, np.uint32)
    constants = new.encode(as_cells(column, old.constants))
    translated[2::2] = constants
    translated[1] = 1
    translated[3::2] = np.minimum(constants + 1 - (constants & 1), 2 * len(new) + 1)
    return translated
