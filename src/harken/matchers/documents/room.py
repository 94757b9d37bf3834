"""The work space of one thread that searches documents by XPath, and the tally of what documents contain."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.kernels.documents import HITS, DocumentRoom, NodeRoom
from harken.kernels.frozen import frozen
from harken.matchers.documents.index import NOTHING_LEARNT, ValueFrequencies
from harken.matchers.documents.snapshot import DocumentSnapshot
from harken.matchers.documents.vocabulary import GrowingVocabulary
from harken.matchers.segmented import LEARNING

_LEAST_ROOM = 1_024
_DEPTH = 4_096
"""Maximum number of lists on a stack. The limit on nesting is far lower."""
_SLACK = 5
"""Size of a room in quarters of what is needed now, so that it need not be remade for every new subscription."""


class SearchBuffers:
    """The work space of one thread that searches by a vocabulary. Reused while it is large enough."""

    def __init__(self, snapshot: DocumentSnapshot) -> None:
        self._vocabulary = snapshot.vocabulary
        values, keys = _SLACK * snapshot.values // 4, _SLACK * snapshot.keys // 4
        self.arrays = DocumentRoom(
            stamp=np.zeros(2, np.int32),
            values=np.zeros((values, 4), np.int32),
            key_stamp=np.zeros(keys, np.int32),
            key_head=np.zeros(keys, np.int32),
            key_hits=np.zeros(keys, np.int64),
            met_values=np.zeros(values, np.int32),
            met_keys=np.zeros(keys, np.int32),
        )
        self.words = frozen(self.arrays)
        self.counted = 0
        """Number of documents whose values are counted here and not yet added to the tally."""
        self.seen = np.zeros(_SLACK * len(snapshot.numbers) // 4, np.int32)
        self.out = np.empty(max(_LEAST_ROOM, len(snapshot.numbers) // 64), np.int64)
        self._resize(_LEAST_ROOM, _LEAST_ROOM)

    def is_of(self, vocabulary: GrowingVocabulary) -> bool:
        return self._vocabulary is vocabulary

    def serves(self, snapshot: DocumentSnapshot) -> bool:
        """Whether it is large enough for a snapshot, and of the same vocabulary."""
        arrays = self.arrays
        return (
            self.is_of(snapshot.vocabulary)
            and len(arrays.values) >= snapshot.values
            and len(arrays.key_stamp) >= snapshot.keys
            and len(self.seen) >= len(snapshot.numbers)
        )

    def fit(self, nodes: int) -> None:
        """Make room for documents with this many nodes."""
        if nodes > len(self.space.mark):
            self._resize(max(nodes, 2 * len(self.space.mark)), max(nodes, len(self.space.stack)))

    def grow(self, kept: int) -> None:
        """Double the room for matches, keeping the first `kept`, and the room for lists."""
        self.out = np.concatenate([self.out[:kept], np.empty(2 * len(self.out), np.int64)])
        self._resize(len(self.space.mark), 2 * len(self.space.stack))

    def _resize(self, nodes: int, stack: int) -> None:
        self.space = NodeRoom(
            chain=np.zeros((6, nodes), np.int32),
            probes=np.zeros((6 * nodes, 4), np.int64),
            mark=np.zeros(nodes, np.int32),
            stack=np.zeros(stack, np.int32),
            ends=np.zeros(_DEPTH, np.int64),
        )
        self.space_words = frozen(self.space)


@dataclass(slots=True)
class Tally:
    """Frequencies of values and keys in documents. Not locked: threads may lose updates."""

    frequencies: ValueFrequencies = NOTHING_LEARNT
    stage: int = 0

    @classmethod
    def of(cls, learnt: ValueFrequencies) -> Tally:
        return cls(learnt, bisect_right(LEARNING, learnt.documents))

    def add(self, documents: int, room: SearchBuffers) -> bool:
        """Count documents searched in a room. Returns whether the indexes are to be rebuilt."""
        room.counted += documents
        # Single documents are added many at a time, because adding goes through the counts of all values.
        if room.counted >= LEARNING[0]:
            self.take(room)
        return self.stage < len(LEARNING) and self.frequencies.documents >= LEARNING[self.stage]

    def take(self, room: SearchBuffers) -> None:
        """Add the counts of a room, and reset them."""
        before, arrays = self.frequencies, room.arrays
        if self.stage < len(LEARNING):
            values, keys = _sum(before.values, arrays.values[:, HITS]), _sum(before.keys, arrays.key_hits)
            self.frequencies = ValueFrequencies(before.documents + room.counted, values, keys)
            arrays.values[:, HITS], arrays.key_hits[:] = 0, 0
        room.counted = 0


def _sum(left: NDArray[np.int64], right: NDArray[Any]) -> NDArray[np.int64]:
    """The sum of two arrays of counts. The shorter one is padded with zeros."""
    total = np.zeros(max(len(left), len(right)), np.int64)
    total[: len(left)] += left
    total[: len(right)] += right
    return total
