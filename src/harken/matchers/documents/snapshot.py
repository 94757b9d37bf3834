"""What a match by XPath sees from beginning to end: indexes, which of their programs are alive, and a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN
from harken.kernels.documents import Postings, Vocabulary
from harken.kernels.frozen import frozen
from harken.matchers.documents.index import PostedIndex
from harken.matchers.documents.vocabulary import GrowingVocabulary
from harken.matchers.segmented import Segment

_NO_NUMBERS = np.empty(0, np.int32)


DocumentSegment = Segment[PostedIndex]


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """What a match sees from its beginning to its end."""

    vocabulary: GrowingVocabulary
    segments: tuple[DocumentSegment, ...]
    numbers: NDArray[np.int32]
    """Of all programs, those of one index behind those of another."""
    arrays: Vocabulary
    postings: tuple[Postings, ...]
    """Kept, because what follows only knows where they lie."""
    words: Any
    indexes: Any
    """The vocabulary and the indexes as a kernel takes them."""
    values: int
    keys: int

    @classmethod
    def of(
        cls,
        vocabulary: GrowingVocabulary,
        segments: tuple[DocumentSegment, ...],
        before: DocumentSnapshot | None = None,
    ) -> DocumentSnapshot:
        held: list[Postings] = []
        base = 0
        for segment in segments:
            held.append(segment.index.postings._replace(base=base, alive=segment.alive))
            base += len(segment.index)
        if before is not None and before.indexed() == [id(each.index) for each in segments]:
            numbers = before.numbers  # only what is alive has changed
        else:
            numbers = np.concatenate([_NO_NUMBERS, *(each.index.programs.numbers for each in segments)])
        arrays = vocabulary.arrays
        indexes = [frozen(each) for each in held]
        together = indexes if IS_PLAIN or not held else np.stack(indexes)
        counts = vocabulary.values, vocabulary.key_count
        return cls(vocabulary, segments, numbers, arrays, tuple(held), frozen(arrays), together, *counts)

    def indexed(self) -> list[int]:
        """Which indexes there are."""
        return [id(segment.index) for segment in self.segments]
