"""Programs posted under the values and keys by which documents find them, chosen by frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.caching import cached_property
from harken.kernels.documents import Postings, cover_programs, enter_keys
from harken.matchers.documents.program_writing import NodePrograms
from harken.matchers.documents.vocabulary import GrowingVocabulary

_ALWAYS = np.int64(1 << 40)
"""The key of programs that no value or key covers: every document runs them."""
_USUAL = 0.01
"""Prior share of documents that have a value."""
_LEAST_KEY = 0.2
"""Prior share of documents that have a node of some name."""


@dataclass(frozen=True, slots=True)
class ValueFrequencies:
    """Number of documents that had each value and each key of a vocabulary."""

    documents: int
    values: NDArray[np.int64]
    keys: NDArray[np.int64]

    def costs(self, vocabulary: GrowingVocabulary, uses: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The expected share of documents that have each value and each key.

        `uses` counts the subscriptions that name a value: a value named by many is taken to be frequent.
        """
        total = self.documents + 1.0
        guess = _USUAL * (1.0 + uses / max(1.0, float(uses.max(initial=0))))
        values = (_padded(self.values, vocabulary.values) + guess) / total
        keys = (_padded(self.keys, vocabulary.key_count) + _LEAST_KEY) / total
        keys[0] = 1.0
        return values, keys


NOTHING_LEARNT = ValueFrequencies(0, np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class PostedIndex:
    """Programs of subscriptions, posted under values and keys."""

    programs: NodePrograms
    postings: Postings
    expected: float
    """Expected number of programs that a document runs."""

    def __len__(self) -> int:
        return len(self.programs)

    @property
    def numbers(self) -> NDArray[np.int32]:
        return self.programs.numbers

    @property
    def place_of(self) -> dict[int, int]:
        """The program of each subscription."""
        return self._place_of

    @cached_property
    def _place_of(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(self.programs.numbers.tolist())}

    @cached_property
    def has_condition(self) -> NDArray[np.bool_]:
        """By program, whether it is only a cover."""
        return np.isin(self.programs.numbers, list(self.programs.conditions))

    def memory(self) -> int:
        """Bytes of the arrays."""
        sizes = (array.nbytes for array in self.postings if isinstance(array, np.ndarray))
        return sum(sizes) + self.programs.numbers.nbytes


def build(
    programs: NodePrograms, vocabulary: GrowingVocabulary, learnt: ValueFrequencies = NOTHING_LEARNT
) -> PostedIndex:
    """The index of programs, which are reordered by their postings."""
    words = len(programs.code)
    keys, owners, second = np.empty(words, np.int64), np.empty(words, np.int32), np.empty(words, np.int32)
    longest = int(np.diff(programs.starts).max(initial=0))
    chance = np.empty(len(programs))
    uses = _uses(programs, vocabulary)
    pairs = cover_programs(
        *(programs.starts, programs.code, vocabulary.arrays.path_key, *learnt.costs(vocabulary, uses)),
        *(_ALWAYS, keys, owners, second, chance, np.empty(longest + 1, np.int64)),
    )
    keys, owners, second = keys[:pairs], owners[:pairs], second[:pairs]
    is_always = keys == _ALWAYS
    order = np.argsort(keys, kind="stable")
    # Programs lie in memory in the order of their postings.
    kept, first = np.unique(owners[order], return_index=True)
    moved = kept[np.argsort(first, kind="stable")].astype(np.int64)
    place_of = np.empty(len(programs), np.int32)
    place_of[moved] = np.arange(len(moved))
    programs = programs.taken(moved)
    always = place_of[owners[is_always]]
    order = order[~is_always[order]]
    posted, counts = np.unique(keys[order], return_counts=True)
    size = 1 << max(4, (2 * len(posted)).bit_length())
    slots = np.zeros((size, 4), np.int32)
    enter_keys(posted, np.cumsum(counts), slots)
    postings = Postings(
        base=0,
        alive=np.ones(len(programs), np.bool_),
        starts=programs.starts,
        code=programs.code,
        slots=slots,
        program=place_of[owners[order]],
        second=second[order],
        always=always,
    )
    return PostedIndex(programs, postings, float(chance.sum()))


def _uses(programs: NodePrograms, vocabulary: GrowingVocabulary) -> NDArray[np.int64]:
    """The number of times that programs name each value."""
    from harken.kernels.documents import count_values

    uses = np.zeros(vocabulary.values, np.int64)
    count_values(programs.code, uses)
    return uses


def _padded(counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    padded = np.zeros(size)
    padded[: len(counts)] = counts[:size]
    return padded
