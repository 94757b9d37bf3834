"""XPath over XML documents: candidates by a rare value, decided by a program over lists of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.errors import HarkenError
from harken.events import EventBatch
from harken.events.xml import Documents, TagPaths, numbers
from harken.kernels.documents import Nodes, match_documents
from harken.kernels.frozen import frozen
from harken.language.xpath.ast import Expression
from harken.language.xpath.document_plan import DocumentPlan
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Snapshot
from harken.matchers.documents.deciding import DocumentMatches, decided
from harken.matchers.documents.index import PostedIndex, ValueFrequencies, build
from harken.matchers.documents.merging import compacted, translated
from harken.matchers.documents.program_writing import NodePrograms, joined, written
from harken.matchers.documents.room import SearchBuffers, Tally
from harken.matchers.documents.snapshot import DocumentSegment, DocumentSnapshot
from harken.matchers.documents.tags import BoundTags
from harken.matchers.documents.vocabulary import GrowingVocabulary
from harken.matchers.roles import Write
from harken.matchers.segmented import LEARNING, Segment, Segmented
from harken.schema import Kind
from harken.schema.paths import DOCUMENT, Path
from harken.versions.array_file import ArrayFile

_NO_NUMBERS = np.zeros(0, np.float64)


@dataclass(frozen=True, slots=True)
class XPathSnapshot(Snapshot):
    """The indexes of a matcher at one moment."""

    matcher: XPathMatcher
    index: DocumentSnapshot
    changes: int

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        documents = batch.documents(DOCUMENT, self.matcher.limits)
        counts, numbers, ran, failed = self.find(documents)
        events, owner = len(batch), documents.owner
        offsets, examined = np.zeros(events + 1, np.int64), np.zeros(events, np.int64)
        np.add.at(examined, owner, ran)
        errors: list[tuple[int, int, HarkenError]] = []
        if failed:
            errors = [(int(owner[at]), number, error) for at, number, error in failed]
        if len(owner) == events:  # one document per event
            offsets[:] = counts
            return MatchResult(offsets, numbers, examined, errors)
        events_of = np.repeat(owner.astype(np.int64), np.diff(counts))
        pairs = np.unique(events_of << 32 | numbers)  # an event with several documents matches once
        np.cumsum(np.bincount(pairs >> 32, minlength=events), out=offsets[1:])
        return MatchResult(offsets, (pairs & 0xFFFFFFFF).astype(np.int32), examined, errors)

    def find(self, documents: Documents, limits: Limits | None = None) -> DocumentMatches:
        """The matches of each document. The limits are those of the matcher, or others."""
        if not len(documents) or not self.index.segments:
            none = np.zeros(len(documents) + 1, np.int64)
            return DocumentMatches(none, np.empty(0, np.int32), none[1:])
        return self.matcher.search(self._learnt(documents), documents, limits)

    def _learnt(self, documents: Documents) -> DocumentSnapshot:
        """The indexes. If nothing was learnt yet and there are many documents, they are rebuilt by the first ones."""
        if len(documents) <= 2 * LEARNING[0] or self.matcher.has_learnt:
            return self.index
        self.matcher.search(self.index, documents.part(0, LEARNING[0]))
        later = self.matcher.snapshot()
        return later.index if later.changes == self.changes else self.index


class XPathMatcher(Segmented[Expression, NodePrograms, PostedIndex]):
    """Candidates by a rare value, decided by a program over lists of nodes.

    The indexes of all segments share a vocabulary.
    """

    most_waiting = 1 << 16  # expressions are many times as large as programs

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._vocabulary = GrowingVocabulary()
        self._snapshot = DocumentSnapshot.of(self._vocabulary, ())
        self._rooms: list[SearchBuffers] = []
        self._tags: BoundTags | None = None
        self._tally = Tally()
        self._seen = [0, 0]
        """Number of documents matched, and number of programs that they ran."""

    def record(self, entry: Entry) -> Expression:
        return _plan_of(entry).expression

    def written(self, waiting: Iterable[tuple[int, Expression]]) -> NodePrograms:
        return written(waiting, self._vocabulary)

    def records(self, segment: DocumentSegment) -> NodePrograms:
        whole = segment.index.programs
        return whole if segment.alive.all() else whole.taken(np.flatnonzero(segment.alive))

    def built(self, parts: Sequence[NodePrograms], *, is_all: bool) -> PostedIndex:
        """An index of these programs. If they are all, unused entries of the vocabulary are dropped."""
        programs = joined(parts)
        if is_all:
            self._learn_all()
            programs, self._vocabulary, learnt = compacted(programs, self._vocabulary, self._tally.frequencies)
            self._tally.frequencies = learnt
        return build(programs, self._vocabulary, self._tally.frequencies)

    def segments_changed(self) -> None:
        self._snapshot = DocumentSnapshot.of(self._vocabulary, self._segments, self._snapshot)

    def add_expressions(self, expressions: Mapping[int, Expression]) -> None:
        """As `add`, for expressions by number."""
        self._add(dict(expressions))

    # Matching

    def snapshot(self) -> XPathSnapshot:
        with self._lock:
            self._absorb()
            return XPathSnapshot(self, self._snapshot, self.changes)

    def find(self, documents: Documents, limits: Limits | None = None) -> DocumentMatches:
        """The matches of each document. The limits are those of the matcher, or others."""
        return self.snapshot().find(documents, limits)

    @property
    def has_learnt(self) -> bool:
        """Whether the indexes were rebuilt by learnt frequencies."""
        return self._tally.stage > 0

    def search(self, snapshot: DocumentSnapshot, documents: Documents, limits: Limits | None = None) -> DocumentMatches:
        tags = self._bound(documents.paths, snapshot.vocabulary)
        number = numbers(documents, tags.numeric) if tags.numeric.any() else _NO_NUMBERS
        nodes = Nodes(
            documents.first, documents.path, documents.parent, documents.begin, documents.end, documents.text, number
        )
        node_words = frozen(nodes)
        room = self._take_room(snapshot)
        room.fit(int(np.diff(documents.first).max()))
        count = len(documents)
        counts, ran = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
        reached = 0
        while True:
            reached = match_documents(
                *(snapshot.words, tags.words, snapshot.indexes, node_words, room.words, room.space_words),
                *(room.seen, reached, room.out, counts, ran),
            )
            if reached == count:
                break
            room.grow(int(counts[reached]))
        programs = room.out[: counts[-1]]
        if len(snapshot.has_condition):
            most_visits = (limits or self.limits).max_xpath_visits
            matches = decided(snapshot, documents, counts, programs, ran, most_visits)
        else:
            matches = DocumentMatches(counts, snapshot.numbers[programs], ran)
        self._learn(snapshot, count, room)
        self._seen[0] += count
        self._seen[1] += int(ran.sum())
        return matches

    def _learn(self, snapshot: DocumentSnapshot, documents: int, room: SearchBuffers) -> None:
        with self._lock:
            if snapshot.vocabulary is not self._vocabulary:
                return  # the counts belong to a vocabulary that was replaced
            is_time = self._tally.add(documents, room)
            self._rooms.append(room)
            if is_time:
                self._tally.stage += 1
                self._set_segments(
                    tuple(Segment.of(self.built([self.records(segment)], is_all=False)) for segment in self._segments)
                )

    def _learn_all(self) -> None:
        """Add the counts of all free rooms to the tally."""
        for room in self._rooms:
            if room.is_of(self._vocabulary):
                self._tally.take(room)

    def _take_room(self, snapshot: DocumentSnapshot) -> SearchBuffers:
        while True:
            try:
                room = self._rooms.pop()
            except IndexError:
                return SearchBuffers(snapshot)
            if room.serves(snapshot):
                return room

    def _bound(self, paths: TagPaths, vocabulary: GrowingVocabulary) -> BoundTags:
        """The tag paths in the numbers of a vocabulary."""
        tags = self._tags
        if tags is None or not tags.is_current(paths, vocabulary):
            with self._lock:
                tags = BoundTags(paths, vocabulary, self._tags)
                if vocabulary is self._vocabulary:
                    self._tags = tags
        return tags

    # Reading

    def columns(self) -> tuple[Column, ...]:
        """The one column that subscriptions test: the document."""
        return _COLUMNS

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that subscriptions test. Verification reads no further ones."""
        return {DOCUMENT}, []

    def document_paths(self) -> tuple[Path, ...]:
        """The attribute that is read as a document."""
        return (DOCUMENT,) if len(self) else ()

    def flats(self) -> list[Flat]:
        """None: rows cannot express XPath."""
        return []

    def learn(self, batch: EventBatch) -> None:
        """Take a batch as a sample of future documents."""
        documents = batch.documents(DOCUMENT, self.limits)
        snapshot = self.snapshot().index
        if len(documents) and snapshot.segments:
            self.search(snapshot, documents)

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS) -> XPathMatcher | None:
        """The saved matcher, or None if none was saved. Raises OutdatedError."""
        from harken.matchers.documents.saving import load_documents

        return load_documents(files, limits)

    def save(self, write: Write) -> None:
        """Write the whole matcher as one file."""
        from harken.matchers.documents.saving import save_index

        self.merge()
        with self._lock:
            self._learn_all()
            segments, vocabulary, learnt = self._segments, self._vocabulary, self._tally.frequencies
        if segments:
            save_index(segments[0].index, vocabulary, learnt, write)

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        """A matcher with renumbered subscriptions: `numbers` has the new number at each old one, -1 to leave it out."""
        with self._lock:
            self._absorb()
            programs = joined([*map(self.records, self._segments)] or [_NONE])
            vocabulary, learnt = self._vocabulary, self._tally.frequencies
        kept = programs.taken(np.flatnonzero(numbers[programs.numbers] >= 0))
        return self.made_of(*compacted(kept.renumbered(numbers), vocabulary, learnt))

    def united(self, others: Sequence[Self]) -> Self:
        """A matcher with the subscriptions of this one and of others. No two have the same number."""
        made = self.renumbered(np.arange(max([0, *self.numbers()]) + 1, dtype=np.int32))
        parts = [*map(made.records, made._segments)]
        for other in others:
            snapshot = other.snapshot().index
            programs = joined([*map(other.records, snapshot.segments)] or [_NONE])
            parts.append(translated(programs, snapshot.vocabulary, made._vocabulary))
        return self.made_of(joined(parts or [_NONE]), made._vocabulary, made._tally.frequencies)

    def made_of(self, programs: NodePrograms, vocabulary: GrowingVocabulary, learnt: ValueFrequencies) -> Self:
        """A matcher like this one that has these programs."""
        index = build(programs, vocabulary, learnt) if len(programs) else None
        return self.holding(index, vocabulary, learnt)

    def holding(self, index: PostedIndex | None, vocabulary: GrowingVocabulary, learnt: ValueFrequencies) -> Self:
        """A matcher like this one that has this index."""
        made = type(self)(self.limits)
        made._vocabulary, made._tally = vocabulary, Tally.of(learnt)
        made._set_segments((Segment.of(index),) if index is not None else ())
        return made

    def stats(self) -> dict[str, Any]:
        snapshot = self.snapshot().index
        vocabulary = snapshot.vocabulary
        documents, ran = self._seen
        memory = vocabulary.memory() + sum(segment.index.memory() for segment in snapshot.segments)
        return {
            "subscriptions": sum(map(len, snapshot.segments)),
            "indexes": [
                {
                    "programs": len(segment.index),
                    "always": len(segment.index.postings.always),
                    "expected_programs": round(segment.index.expected, 2),
                }
                for segment in snapshot.segments
            ],
            "linear_paths": vocabulary.paths - 1,
            "tag_paths": 0 if self._tags is None else self._tags.count,
            "values": vocabulary.values,
            "documents": documents,
            "seen_programs": round(ran / documents, 2) if documents else None,
            "memory": {"bytes": memory},
        }


_COLUMNS = (Column(DOCUMENT, Kind.STRING),)
_NONE = NodePrograms(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint32))


def _plan_of(entry: Entry) -> DocumentPlan:
    plan = entry.compiled.plan
    if not isinstance(plan, DocumentPlan):
        raise TypeError(f"a plan of the kind {plan.kind!r} is not about documents")
    return plan
