"""A snapshot of the index of documents: segments, flags of live programs, and a vocabulary."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN
from harken.kernels.documents import Postings, Vocabulary
from harken.kernels.frozen import frozen
from harken.matchers.documents.index import PostedIndex
from harken.matchers.documents.node_conditions import NodeCondition
from harken.matchers.documents.vocabulary import GrowingVocabulary
from harken.matchers.segmented import Segment

_NO_NUMBERS = np.empty(0, np.int32)
_NO_FLAGS = np.empty(0, np.bool_)


DocumentSegment = Segment[PostedIndex]


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """What a match sees from its beginning to its end, also as words for a kernel."""

    vocabulary: GrowingVocabulary
    segments: tuple[DocumentSegment, ...]
    numbers: NDArray[np.int32]
    """The subscription numbers of all programs, segment by segment."""
    arrays: Vocabulary
    postings: tuple[Postings, ...]
    """Kept because the words below only point to their arrays."""
    words: Any
    indexes: Any
    """The vocabulary and the indexes as a kernel takes them."""
    values: int
    keys: int
    has_condition: NDArray[np.bool_]
    """By program, whether it is only a cover; empty if none is."""

    @classmethod
    def of(
        cls,
        vocabulary: GrowingVocabulary,
        segments: tuple[DocumentSegment, ...],
        before: DocumentSnapshot | None = None,
    ) -> DocumentSnapshot:
        postings: list[Postings] = []
        base = 0
        for segment in segments:
            postings.append(segment.index.postings._replace(base=base, alive=segment.alive))
            base += len(segment.index)
        if before is not None and before.indexed() == [id(each.index) for each in segments]:
            numbers = before.numbers  # only the flags of live programs have changed
            has_condition = before.has_condition
        else:
            numbers = np.concatenate([_NO_NUMBERS, *(each.index.programs.numbers for each in segments)])
            has_some = any(each.index.programs.conditions for each in segments)
            has_condition = np.concatenate([each.index.has_condition for each in segments]) if has_some else _NO_FLAGS
        arrays = vocabulary.arrays
        indexes = [frozen(each) for each in postings]
        together = indexes if IS_PLAIN or not postings else np.stack(indexes)
        counts = vocabulary.values, vocabulary.key_count
        return cls(
            *(vocabulary, segments, numbers, arrays, tuple(postings), frozen(arrays), together, *counts),
            has_condition,
        )

    def indexed(self) -> list[int]:
        """The identities of the indexes."""
        return [id(segment.index) for segment in self.segments]

    def condition(self, program: int) -> NodeCondition:
        """The condition of a program that is only a cover."""
        place = bisect_right(self.postings, program, key=attrgetter("base")) - 1
        return self.segments[place].index.programs.conditions[int(self.numbers[program])]
