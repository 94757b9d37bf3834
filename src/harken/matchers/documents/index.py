"""Programs with the values and keys by which documents find them, chosen by how many documents have each."""

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
"""The key of a program that nothing rare covers."""
_USUAL = 0.01
"""The share of documents that have a value, as long as nothing is known of it."""
_LEAST_KEY = 0.2
"""The share of documents that have a node of some name, likewise."""


@dataclass(frozen=True, slots=True)
class ValueFrequencies:
    """How many documents had each value and each key of a vocabulary."""

    documents: int
    values: NDArray[np.int64]
    keys: NDArray[np.int64]

    def costs(self, vocabulary: GrowingVocabulary, uses: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The share of documents that is expected to have each value and each key.

        `uses` counts the subscriptions that name a value: what many ask for, many documents have.
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
    """Programs of subscriptions, found by values and keys."""

    programs: NodePrograms
    postings: Postings
    expected: float
    """Programs that a document is expected to run."""

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

    def memory(self) -> int:
        """Bytes of the arrays."""
        held = (each.nbytes for each in self.postings if isinstance(each, np.ndarray))
        return sum(held) + self.programs.numbers.nbytes


def build(
    programs: NodePrograms, vocabulary: GrowingVocabulary, learnt: ValueFrequencies = NOTHING_LEARNT
) -> PostedIndex:
    """The index of programs. They are put into the order in which documents find them."""
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
    # Programs lie in memory as postings lead to them.
    kept, first = np.unique(owners[order], return_index=True)
    moved = kept[np.argsort(first, kind="stable")].astype(np.int64)
    place_of = np.empty(len(programs), np.int32)
    place_of[moved] = np.arange(len(moved))
    programs = programs.taken(moved)
    always = place_of[owners[is_always]]
    order = order[~is_always[order]]
    known, counts = np.unique(keys[order], return_counts=True)
    size = 1 << max(4, (2 * len(known)).bit_length())
    slots = np.zeros((size, 4), np.int32)
    enter_keys(known, np.cumsum(counts), slots)
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
    """How often each value is named."""
    from harken.kernels.documents import count_values

    uses = np.zeros(vocabulary.values, np.int64)
    count_values(programs.code, uses)
    return uses


def _padded(counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    found = np.zeros(size)
    found[: len(counts)] = counts[:size]
    return found
