"""XPath over XML documents: found through a rare value, decided by a program over lists of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.events import EventBatch
from harken.events.xml import Documents, TagPaths, numbers
from harken.kernels.documents import Nodes, match_documents
from harken.kernels.frozen import frozen
from harken.language.capabilities import Capability
from harken.language.xpath.ast import Expression
from harken.language.xpath.document_plan import DocumentPlan
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.documents.index import PostedIndex, ValueFrequencies, build
from harken.matchers.documents.merging import compacted, translated
from harken.matchers.documents.program_writing import NodePrograms, joined, written
from harken.matchers.documents.room import LEARNING, SearchBuffers, Tally
from harken.matchers.documents.snapshot import DocumentSnapshot, Segment
from harken.matchers.documents.tags import BoundTags
from harken.matchers.documents.vocabulary import GrowingVocabulary
from harken.matchers.roles import Write
from harken.schema import Kind
from harken.schema.paths import DOCUMENT, Path
from harken.versions.array_file import ArrayFile

_GROWTH = 4
"""An index is merged with the one before it, unless that is so many times as large."""
_NO_NUMBERS = np.zeros(0, np.float64)
_MOST_WAITING = 1 << 16
"""Subscriptions that wait as expressions, which are many times as large as programs."""


class XPathMatcher:
    """Found through a rare value, decided by a program over lists of nodes.

    Indexes of programs, each several times as large as the next: a change touches the small ones.
    Changes come from one thread at a time, matching goes on in others.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._lock = fork_lock(MATCHER)
        self._waiting: dict[int, Expression] = {}
        """Subscriptions that are not in an index yet."""
        self._vocabulary = GrowingVocabulary()
        self._snapshot = DocumentSnapshot.of(self._vocabulary, ())
        self._rooms: list[SearchBuffers] = []
        self._tags: BoundTags | None = None
        self._tally = Tally()
        self._gone = 0
        """Subscriptions that left since the vocabulary was made."""
        self._seen = [0, 0]
        """Documents that were matched, and programs that these ran."""

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting) + sum(map(len, self._snapshot.segments))

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        self.add_expressions({entry.number: _plan_of(entry).expression for entry in entries}, replaced)

    def add_expressions(self, expressions: Mapping[int, Expression], replaced: Collection[int] = ()) -> None:
        """The same, of expressions by number."""
        with self._lock:
            self._waiting |= expressions
            self._remove(replaced)
            if len(self._waiting) > _MOST_WAITING:
                self._absorb()

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(numbers)

    def merge(self) -> None:
        """Make one index of all that there is, and forget what no subscription says any more."""
        with self._lock:
            self._absorb()
            if len(self._snapshot.segments) > 1 or self._gone:
                self._compact(self._snapshot.segments)

    def _compact(self, segments: Sequence[Segment], *more: NodePrograms) -> None:
        """Make one index of several and of further programs, in a vocabulary that says no more than they do."""
        self._learn_all()
        programs = joined([_NONE, *(segment.programs() for segment in segments), *more])
        programs, self._vocabulary, learnt = compacted(programs, self._vocabulary, self._tally.frequencies)
        self._tally.frequencies = learnt
        self._gone = 0
        self._hold((Segment.of(build(programs, self._vocabulary, learnt)),) if len(programs) else ())

    def _remove(self, numbers: Iterable[int]) -> None:
        gone = [number for number in numbers if self._waiting.pop(number, None) is None]
        if not gone:
            return
        self._gone += len(gone)
        left = []
        for segment in self._snapshot.segments:
            places = [place for number in gone if (place := segment.index.place_of.get(number)) is not None]
            alive = segment.alive.copy()  # whoever matches now goes on with the one that they have
            alive[places] = False
            if alive.any():
                left.append(replace(segment, alive=alive))
        self._hold(tuple(left))

    def _absorb(self) -> None:
        """Index what is waiting, together with what is not much larger."""
        if not self._waiting:
            return
        parts = [written(self._waiting.items(), self._vocabulary)]
        self._waiting = {}
        kept = list(self._snapshot.segments)
        size = len(parts[0])
        if self._gone > _GROWTH * (size + sum(map(len, kept))):  # nobody says most of the vocabulary any more
            self._compact(kept, parts[0])
            return
        while kept and len(kept[-1]) < _GROWTH * size:
            parts.append(kept.pop().programs())
            size += len(parts[-1])
        whole = joined(parts[::-1])
        self._hold((*kept, Segment.of(build(whole, self._vocabulary, self._tally.frequencies))))

    def _hold(self, segments: tuple[Segment, ...]) -> None:
        self._snapshot = DocumentSnapshot.of(self._vocabulary, segments, self._snapshot)

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        documents = batch.documents(DOCUMENT, self._limits)
        counts, found, ran = self.find(documents)
        events, owner = len(batch), documents.owner
        offsets, examined = np.zeros(events + 1, np.int64), np.zeros(events, np.int64)
        np.add.at(examined, owner, ran)
        if len(owner) == events:  # a document an event
            offsets[:] = counts
            return MatchResult(offsets, found, examined)
        events_of = np.repeat(owner.astype(np.int64), np.diff(counts))
        pairs = np.unique(events_of << 32 | found)  # an event with several documents matches once
        np.cumsum(np.bincount(pairs >> 32, minlength=events), out=offsets[1:])
        return MatchResult(offsets, (pairs & 0xFFFFFFFF).astype(np.int32), examined)

    def find(self, documents: Documents) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Offsets and numbers of what each document matches, and how many programs it ran."""
        snapshot = self._now()
        if len(documents) > 2 * LEARNING[0] and self._tally.stage == 0 and snapshot.segments:
            self._search(snapshot, documents.part(0, LEARNING[0]))
            snapshot = self._now()
        if not len(documents) or not snapshot.segments:
            none = np.zeros(len(documents) + 1, np.int64)
            return none, np.empty(0, np.int32), none[1:]
        return self._search(snapshot, documents)

    def _search(
        self, snapshot: DocumentSnapshot, documents: Documents
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
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
        found = snapshot.numbers[room.out[: counts[-1]]]
        self._learn(snapshot, count, room)
        self._seen[0] += count
        self._seen[1] += int(ran.sum())
        return counts, found, ran

    def _learn(self, snapshot: DocumentSnapshot, documents: int, room: SearchBuffers) -> None:
        with self._lock:
            if snapshot.vocabulary is not self._vocabulary:
                return  # what was counted is in numbers that are gone
            is_time = self._tally.add(documents, room)
            self._rooms.append(room)
            if is_time:
                self._tally.stage += 1
                learnt = self._tally.frequencies
                segments = self._snapshot.segments
                self._hold(tuple(Segment.of(build(each.programs(), self._vocabulary, learnt)) for each in segments))

    def _learn_all(self) -> None:
        """Learn what rooms that nobody uses have counted."""
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
        """The tag paths in the names of a vocabulary."""
        tags = self._tags
        if tags is None or not tags.is_current(paths, vocabulary):
            with self._lock:
                tags = BoundTags(paths, vocabulary, self._tags)
                if vocabulary is self._vocabulary:
                    self._tags = tags
        return tags

    def _now(self) -> DocumentSnapshot:
        with self._lock:
            self._absorb()
            return self._snapshot

    # What it holds

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions ask for: the document."""
        return _COLUMNS

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that subscriptions ask for; none looks at others."""
        return {DOCUMENT}, []

    def document_paths(self) -> tuple[Path, ...]:
        """The attribute that is read as a document."""
        return (DOCUMENT,) if len(self) else ()

    def flats(self) -> list[Flat]:
        """Nothing: what they ask of a document no row can say."""
        return []

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""
        return [number for segment in self._now().segments for number in segment.programs().numbers.tolist()]

    def learn(self, batch: EventBatch) -> None:
        """Take a batch for a sample of the documents to come."""
        documents = batch.documents(DOCUMENT, self._limits)
        snapshot = self._now()
        if len(documents) and snapshot.segments:
            self._search(snapshot, documents)

    def favourite(self) -> None:
        """No attribute is told to be the one by which most are found."""

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS) -> XPathMatcher | None:
        """The matcher that was saved, or None if none was. Raises OutdatedError."""
        from harken.matchers.documents.saving import load_documents

        return load_documents(files, limits)

    def save(self, write: Write) -> None:
        """Write all that it is made of, as one file."""
        from harken.matchers.documents.saving import save_index

        self.merge()
        with self._lock:
            self._learn_all()
            segments, vocabulary, learnt = self._snapshot.segments, self._vocabulary, self._tally.frequencies
        if segments:
            save_index(segments[0].index, vocabulary, learnt, write)

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        """A matcher with the subscriptions whose new numbers are given, by the old ones; -1 leaves one out."""
        with self._lock:
            self._absorb()
            programs = joined([segment.programs() for segment in self._snapshot.segments] or [_NONE])
            vocabulary, learnt = self._vocabulary, self._tally.frequencies
        kept = programs.taken(np.flatnonzero(numbers[programs.numbers] >= 0))
        return self.made_of(
            *compacted(replace(kept, numbers=numbers[kept.numbers].astype(np.int32)), vocabulary, learnt)
        )

    def united(self, others: Sequence[Self]) -> Self:
        """A matcher with the subscriptions of this one and of others, whose numbers are different."""
        made = self.renumbered(np.arange(max([0, *self.numbers()]) + 1, dtype=np.int32))
        parts = [segment.programs() for segment in made._snapshot.segments]
        for other in others:
            snapshot = other._now()
            own = joined([segment.programs() for segment in snapshot.segments] or [_NONE])
            parts.append(translated(own, snapshot.vocabulary, made._vocabulary))
        return self.made_of(joined(parts or [_NONE]), made._vocabulary, made._tally.frequencies)

    def made_of(self, programs: NodePrograms, vocabulary: GrowingVocabulary, learnt: ValueFrequencies) -> Self:
        """A matcher like this one that has these programs."""
        index = build(programs, vocabulary, learnt) if len(programs) else None
        return self.holding(index, vocabulary, learnt)

    def holding(self, index: PostedIndex | None, vocabulary: GrowingVocabulary, learnt: ValueFrequencies) -> Self:
        """A matcher like this one that has this index."""
        made = type(self)(self._limits)
        made._vocabulary, made._tally = vocabulary, Tally.of(learnt)
        made._hold((Segment.of(index),) if index is not None else ())
        return made

    def stats(self) -> dict[str, Any]:
        snapshot = self._now()
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
            "tag_paths": 0 if self._tags is None else self._tags.known,
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
