"""XPath expressions as programs that run only for candidates, which another index has found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harken.events.xml import Documents, numbers
from harken.kernels.compile import IS_PLAIN
from harken.kernels.documents import Nodes, Postings, match_documents
from harken.kernels.frozen import frozen
from harken.matchers.documents.deciding import DocumentMatches, decided
from harken.matchers.documents.index import NOTHING_LEARNT, PostedIndex
from harken.matchers.documents.matcher import XPathMatcher
from harken.matchers.documents.merging import compacted
from harken.matchers.documents.program_writing import NodePrograms, joined
from harken.matchers.documents.snapshot import DocumentSnapshot

_NO_PLACES, _NO_NUMBERS = np.empty(0, np.int32), np.zeros(0, np.float64)


class CandidatePrograms(XPathMatcher):
    """The programs and the vocabulary of `xpath`, without its index."""

    def built(self, parts: Sequence[NodePrograms], *, is_all: bool) -> PostedIndex:
        programs = joined(parts)
        if is_all:
            programs, self._vocabulary, _ = compacted(programs, self._vocabulary, NOTHING_LEARNT)
        slots = np.zeros((16, 4), np.int32)
        postings = Postings(
            *(0, np.ones(len(programs), np.bool_), programs.starts, programs.code, slots),
            *(_NO_PLACES, _NO_PLACES, _NO_PLACES),
        )
        return PostedIndex(programs, postings, 0.0)

    def accepted(
        self, documents: Documents, offsets: NDArray[np.int64], candidates: NDArray[np.int32]
    ) -> DocumentMatches:
        """The candidates of each document that are true of it."""
        snapshot = self.snapshot().index
        tags = self._bound(documents.paths, snapshot.vocabulary)
        values = numbers(documents, tags.numeric) if tags.numeric.any() else _NO_NUMBERS
        room = self._take_room(snapshot)
        room.fit(int(np.diff(documents.first).max(initial=0)))
        places = _places_of(snapshot, int(candidates.max(initial=0)))
        counts, parts = np.zeros(len(documents) + 1, np.int64), [np.empty(0, np.int64)]
        ran, one = np.zeros(1, np.int64), np.zeros(2, np.int64)
        for document in range(len(documents)):
            chosen = candidates[offsets[document] : offsets[document + 1]]
            if not len(chosen):
                continue
            first = documents.first[document : document + 2]
            nodes = Nodes(
                first, *(documents.path, documents.parent, documents.begin, documents.end, documents.text), values
            )
            postings = [each._replace(always=_present(of_number[chosen])) for each, of_number in places]
            words = [frozen(each) for each in postings]
            indexes, batch = words if IS_PLAIN else np.stack(words), frozen(nodes)
            while not match_documents(
                *(snapshot.words, tags.words, indexes, batch, room.words, room.space_words),
                *(room.seen, 0, room.out, one, ran),
            ):
                room.grow(0)
            counts[document + 1] = one[1]
            parts.append(room.out[: one[1]].copy())
        self._rooms.append(room)
        ends, programs = np.cumsum(counts), np.concatenate(parts)
        if len(snapshot.has_condition):
            return decided(snapshot, documents, ends, programs, np.diff(offsets), self.limits.max_xpath_visits)
        return DocumentMatches(ends, snapshot.numbers[programs], np.diff(offsets))


def _places_of(snapshot: DocumentSnapshot, most: int) -> list[tuple[Postings, NDArray[np.int32]]]:
    """For each segment, its postings, and the program of each subscription that it has; -1 of others."""
    places = []
    for postings, segment in zip(snapshot.postings, snapshot.segments, strict=True):
        of_number = np.full(max(most, int(segment.index.numbers.max(initial=0))) + 1, -1, np.int32)
        alive = np.flatnonzero(segment.alive)
        of_number[segment.index.numbers[alive]] = alive
        places.append((postings, of_number))
    return places


def _present(places: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.sort(places[places >= 0])
