"""A sample of encoded events, taken while matching, and the statistics of it, which are independent of the index."""

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
"""Maximum number of events sampled from one batch, spread over it."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """A sample of events independent of the index that took it: it can be given to an index with other constants."""

    columns: tuple[Column, ...]
    dictionaries: tuple[Dictionary, ...]
    """The constants that sampled events had, or that were the next below their values."""
    codes: NDArray[np.uint32]
    """Columns by events."""
    _places: dict[Column, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {column: place for place, column in enumerate(self.columns)})

    def __len__(self) -> int:
        """Number of sampled events."""
        return int(self.codes.shape[1])

    def codes_in(self, column: Column, dictionary: Dictionary, events: int) -> NDArray[np.uint32] | None:
        """The column in the codes of a dictionary, repeated for `events` events; None if the column is not sampled."""
        place = self._places.get(column)
        if place is None or not len(self):
            return None
        codes = _translation(column, self.dictionaries[place], dictionary)[self.codes[place]]
        return np.resize(codes, events)

    def only(self, columns: set[Column]) -> Statistics:
        """The statistics of these columns alone."""
        kept = [place for place, column in enumerate(self.columns) if column in columns]
        chosen = tuple(self.columns[place] for place in kept)
        return Statistics(chosen, tuple(self.dictionaries[place] for place in kept), self.codes[kept])

    def completed_by(self, other: Statistics) -> Statistics:
        """These statistics, with those of `other` for further columns."""
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
    """The state of a sample."""

    codes: NDArray[np.uint32]
    taken: int
    seen: int
    next: int


class Sample:
    """The codes of the last sampled events, columns by events. Sampling grows rarer with every batch."""

    def __init__(self, columns: int, events: int = _EVENTS) -> None:
        self._codes = np.zeros((columns, events), np.uint32)
        self._taken = 0
        self.seen = 0
        """Number of events seen, sampled or not."""
        self._next = 0

    @classmethod
    def of_state(cls, state: SampleState) -> Self:
        """A sample that continues from a state."""
        result = cls(0)
        result._codes, result._taken, result.seen, result._next = state
        return result

    def state(self) -> SampleState:
        """A copy of the state."""
        return SampleState(self._codes.copy(), self._taken, self.seen, self._next)

    def __len__(self) -> int:
        return min(self._taken, self._codes.shape[1])

    @property
    def codes(self) -> NDArray[np.uint32]:
        return self._codes[:, : len(self)]

    def learn(self, codes: NDArray[np.uint32]) -> None:
        """Take events of a batch if the next sampling is due."""
        self.seen += codes.shape[1]
        if self.seen >= self._next:
            self.take(codes, _AT_ONCE)
            # Sample every one of the first batches, single events ever more rarely; once full, one event in a hundred.
            is_full = self._taken >= self._codes.shape[1]
            self._next = self.seen + (100 * _AT_ONCE if is_full else self._taken // _AT_ONCE)

    def take(self, codes: NDArray[np.uint32], most: int) -> None:
        """Take at most `most` events of a batch, spread over it."""
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
        """The statistics of this sample in the codes of `dictionaries`. Columns without constants are left out."""
        kept = [place for place in range(len(self._codes)) if len(dictionaries[place])]
        smaller = [_cut(columns[place], dictionaries[place], self.codes[place]) for place in kept]
        return Statistics(
            tuple(columns[place] for place in kept),
            tuple(dictionary for dictionary, _ in smaller),
            np.array([codes for _, codes in smaller], np.uint32).reshape(len(kept), len(self)),
        )

    def replaced_by(
        self, statistics: Statistics, columns: Sequence[Column], dictionaries: Sequence[Dictionary]
    ) -> Sample:
        """A sample made from statistics, which replace the sampled events."""
        result = Sample(len(columns), self._codes.shape[1])
        result._taken, result.seen = len(statistics), self.seen
        for i, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
            result._codes[i] = result._unsampled(column, dictionary, statistics)
        return result

    def translated(
        self,
        columns: Sequence[Column],
        dictionaries: Sequence[Dictionary],
        new_columns: Sequence[Column],
        new_dictionaries: Sequence[Dictionary],
        supplied: Statistics,
    ) -> Sample:
        """The sample in the codes of other dictionaries. A value in a gap goes to the gap above the same constant.

        Columns without constants so far are taken from `supplied`.
        """
        supplied_columns = set(supplied.columns)
        place = {
            column: i
            for i, column in enumerate(columns[: len(self._codes)])
            if len(dictionaries[i]) or column not in supplied_columns
        }
        result = Sample(len(new_columns), self._codes.shape[1])
        result._taken, result.seen, result._next = self._taken, self.seen, self._next
        for i, (column, dictionary) in enumerate(zip(new_columns, new_dictionaries, strict=True)):
            old = place.get(column)
            if old is not None:
                codes = _translation(column, dictionaries[old], dictionary)
                result._codes[i] = codes[self._codes[old]]
            else:
                result._codes[i] = result._unsampled(column, dictionary, supplied)
        return result

    def _unsampled(self, column: Column, dictionary: Dictionary, supplied: Statistics) -> NDArray[np.uint32]:
        """The codes of a column that was not sampled: as supplied, or its constants in equal shares."""
        events = self._codes.shape[1]
        codes = supplied.codes_in(column, dictionary, events)
        if codes is not None:
            return codes
        if not len(dictionary):
            return np.ones(events, np.uint32)
        return (2 * (np.arange(events) * len(dictionary) // events) + 2).astype(np.uint32)


NO_STATISTICS = Statistics((), (), np.empty((0, 0), np.uint32))


def _cut(column: Column, dictionary: Dictionary, codes: NDArray[np.uint32]) -> tuple[Dictionary, NDArray[np.uint32]]:
    """A dictionary of only the constants that codes are at or in the gap behind, and the codes in it."""
    # The codes 2r + 2, the constant of rank r, and 2r + 3, the gap behind it, both need that constant.
    used = np.zeros(len(dictionary) + 1, np.bool_)
    used[codes >> 1] = True
    used[0] = False
    smaller, _ = dictionary_of(column, selected(dictionary.constants, used[1:]))
    place = np.cumsum(used).astype(np.uint32)
    return smaller, np.where(codes < 2, codes, 2 * place[codes >> 1] + (codes & 1))


def _translation(column: Column, old: Dictionary, new: Dictionary) -> NDArray[np.uint32]:
    """The code in the new dictionary for every code of the old one."""
    translated = np.zeros(2 * len(old) + 2, np.uint32)
    constants = new.encode(as_cells(column, old.constants))
    translated[2::2] = constants
    translated[1] = 1
    translated[3::2] = np.minimum(constants + 1 - (constants & 1), 2 * len(new) + 1)
    return translated
