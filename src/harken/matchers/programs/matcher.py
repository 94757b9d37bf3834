"""Subscriptions with patterns or many alternatives: candidates by covers, decided by programs over codes and bits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.encode import encode
from harken.codes.encode_one import codes_of_one, value_at
from harken.codes.flat import Flat
from harken.errors import HarkenError
from harken.events import Event, EventBatch
from harken.events.utf8 import utf8_of
from harken.kernels.frozen import frozen
from harken.kernels.programs import ProgramRoom, match_programs
from harken.language.compiled import ProgramPlan
from harken.language.trees import Tree
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchPart, MatchResult, OneMatch, Snapshot
from harken.matchers.candidates import Candidates, join, settle
from harken.matchers.programs.index import CoveredIndex, LearntFrequencies, build
from harken.matchers.programs.program_trees import Trees, gathered, joined, rows_of
from harken.matchers.roles import Write
from harken.matchers.segmented import LEARNING, Segment, Segmented
from harken.matchers.verify import is_match
from harken.schema import Kind
from harken.schema.derived import sources_of
from harken.schema.paths import Path
from harken.versions.array_file import ArrayFile

_EVERY = 16
"""Of events matched one by one, every nth is counted in the statistics."""
_MOST_STAMPS = 1 << 30
_LEAST_ROOM = 1_024
_USUAL_TEXT = 40
"""Assumed bytes of a text, until texts were measured."""
_NO_PLACES = np.full(1, -1, np.int32)
_NO_CODES = np.zeros((0, 1), np.uint32)
_NO_STARTS, _NO_VALUES = np.zeros(1, np.int64), np.empty(0, np.uint32)
_NO_REGEXES = np.zeros(2, np.int64), np.empty(0, np.int32)


class _SingleEvent:
    """Reused arrays for an event that is matched alone."""

    __slots__ = ("at", "begins", "ends", "examined", "offsets", "spans")

    def __init__(self, texts: int) -> None:
        self.begins, self.ends = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        self.at = np.zeros((texts, 2), np.int64)
        self.at[:, 0] = np.arange(texts)
        self.spans = self.at[:, 1]
        """The end of the texts of each column, as a view of `at`: its place + 1, or its place if it has no text."""
        self.offsets, self.examined = np.zeros(2, np.int64), np.zeros(1, np.int64)


class _Room:
    """The work space of one thread that searches an index."""

    __slots__ = ("_used", "arrays", "doubts", "out", "single", "words")

    def __init__(self, index: CoveredIndex) -> None:
        patterns, programs = len(index.trees.patterns), len(index)
        self.arrays = ProgramRoom(
            stamp=np.zeros(2, np.int32),
            fitting=np.zeros(patterns, np.int32),
            tried=np.zeros(patterns, np.int32),
            found=np.zeros(programs, np.int32),
            fitted=np.zeros(patterns, np.int32),
            waiting=np.zeros(programs, np.int32),
            hits=np.zeros(patterns, np.int64),
        )
        self.words = frozen(self.arrays)
        size = max(_LEAST_ROOM, programs)
        self.out, self.doubts = np.empty(size, np.int32), np.empty(size, np.bool_)
        self.single = _SingleEvent(len(index.texts))
        self._used = 0

    def use(self, stamps: int) -> None:
        """Reserve stamps for a search. Resets the stamped arrays when stamps run out."""
        self._used += stamps
        if self._used > _MOST_STAMPS:
            for array in (self.arrays.stamp, self.arrays.fitting, self.arrays.tried, self.arrays.found):
                array[:] = 0
            self._used = stamps

    def grow(self, kept: int) -> None:
        """Double the room for matches, keeping the first `kept`."""
        self.out = np.concatenate([self.out[:kept], np.empty(2 * len(self.out), np.int32)])
        self.doubts = np.concatenate([self.doubts[:kept], np.empty(2 * len(self.doubts), np.bool_)])


@dataclass(slots=True)
class _Tally:
    """Statistics of the events that searched an index. Not locked: threads may lose updates."""

    codes: NDArray[np.int64]
    hits: NDArray[np.int64]
    events: int = 0
    """Number of events, including those before the index was saved."""
    stage: int = 0
    timed: int = 0
    """Number of timed events: those of large batches. The next fields are sums over them."""
    examined: int = 0
    text: int = 0
    """Bytes of text."""
    seconds: float = 0.0

    @classmethod
    def of(cls, index: CoveredIndex) -> _Tally:
        learnt = index.learnt
        if learnt is not None:
            return cls(
                learnt.codes.copy(), learnt.hits.copy(), learnt.events, stage=bisect_right(LEARNING, learnt.events)
            )
        keys = int(index.kernel.programs.first_key[-1])
        return cls(np.zeros(keys, np.int64), np.zeros(len(index.trees.patterns), np.int64))

    def add(self, index: CoveredIndex, codes: NDArray[np.uint32], room: _Room) -> bool:
        """Count the codes and patterns of a batch. Returns whether the index is to be rebuilt."""
        before = self.events
        self.events += codes.shape[1]
        if self.stage == len(LEARNING):
            return False
        if codes.shape[1] > 1 or before % _EVERY == 0:  # a sample of single events is enough
            keys = (codes + index.kernel.programs.first_key[:-1, None]).ravel()
            times = 1 if codes.shape[1] > 1 else _EVERY
            self.codes += times * np.bincount(keys, minlength=len(self.codes))
            self.hits += room.arrays.hits
            room.arrays.hits[:] = 0
        return self.events >= LEARNING[self.stage]

    def time(self, events: int, examined: int, text: int, seconds: float) -> None:
        """Add the measured costs of a batch, unless it is small."""
        if events < LEARNING[0]:
            return
        self.timed += events
        self.examined += examined
        self.text += text
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class LearningIndex:
    """An index with its statistics and its free work spaces."""

    index: CoveredIndex
    tally: _Tally
    rooms: list[_Room] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, trees: Trees, learnt: LearntFrequencies | None = None) -> LearningIndex:
        index = build(trees, learnt)
        return cls(index, _Tally.of(index))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def numbers(self) -> NDArray[np.int32]:
        return self.index.trees.numbers

    @property
    def place_of(self) -> dict[int, int]:
        return self.index.place_of

    def rebuilt(self) -> LearningIndex:
        """The same trees in an index rebuilt by the learnt frequencies."""
        tally = self.tally
        next_tally = _Tally(tally.codes, tally.hits, tally.events, tally.stage + 1)
        return LearningIndex(build(self.index.trees, self.learnt()), next_tally)

    def learnt(self) -> LearntFrequencies:
        """The frequencies learnt so far."""
        return LearntFrequencies(self.tally.events, self.tally.codes.copy(), self.tally.hits.copy())

    def take_room(self, stamps: int) -> _Room:
        try:
            room = self.rooms.pop()
        except IndexError:
            room = _Room(self.index)
        room.use(stamps)
        return room


_Segment = Segment[LearningIndex]


@dataclass(frozen=True, slots=True)
class ProgramSnapshot(Snapshot):
    """The segments of a matcher at one moment."""

    matcher: ProgramMatcher
    segments: tuple[_Segment, ...]
    changes: int

    @property
    def is_quick(self) -> bool:
        """Whether no program tests a document."""
        return not any(segment.index.index.xpaths for segment in self.segments)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        if len(batch) == 1 and not batch.is_lazy:
            match = self.match_one(batch[0], form_of)
            if match is not None:
                return match.result()
        return self._match(batch, form_of)

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        matcher, numbers, candidates = self.matcher, list[int](), 0
        errors: list[tuple[int, int, HarkenError]] = []
        for segment in self.segments:
            result = matcher.search_one(segment, event)
            if result is None:
                return None
            examined, found_numbers, doubts = result
            candidates += examined
            for number, is_doubtful in zip(found_numbers, doubts, strict=True):
                try:
                    if not is_doubtful or is_match(form_of(number), event, matcher.limits):
                        numbers.append(number)
                except HarkenError as error:
                    errors.append((0, number, error))
        return OneMatch(numbers, candidates, errors)

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        return lambda first, last: self._match(batch[first:last], form_of)

    def _match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        if not self.segments:
            return MatchResult.empty(len(batch))
        parts, examined = [], np.zeros(len(batch), np.int64)
        for segment in self._learnt(batch):
            part, programs_run = self.matcher.search(segment, batch)
            parts.append(part)
            examined += programs_run
        result = settle(join(parts), batch, form_of, self.matcher.limits, repeats=False)
        result.candidates = examined
        return result

    def _learnt(self, batch: EventBatch) -> tuple[_Segment, ...]:
        """The segments. If nothing was learnt yet and the batch is large, they are rebuilt by its first events."""
        if len(batch) <= 2 * LEARNING[0] or all(segment.index.tally.stage for segment in self.segments):
            return self.segments
        self.matcher.learn(batch[: LEARNING[0]])
        later = self.matcher.snapshot()
        return later.segments if later.changes == self.changes else self.segments


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of a batch, by column."""

    data: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    at: NDArray[np.int64]
    """The first text of each event, by column and event."""


class ProgramMatcher(Segmented[Tree, Trees, LearningIndex]):
    """Indexes of programs, each several times as large as the next."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._columns: tuple[Column, ...] = ()

    def record(self, entry: Entry) -> Tree:
        return tree_of(entry)

    def written(self, waiting: Iterable[tuple[int, Tree]]) -> Trees:
        return gathered(waiting)

    def records(self, segment: _Segment) -> Trees:
        return segment.index.index.trees.only(segment.alive)

    def built(self, parts: Sequence[Trees], *, is_all: bool) -> LearningIndex:
        whole = joined(parts)
        return LearningIndex.of(whole.used() if is_all or len(parts) > 1 else whole)

    # Matching

    def snapshot(self) -> ProgramSnapshot:
        with self._lock:
            self._absorb()
            return ProgramSnapshot(self, self._segments, self.changes)

    def search(self, segment: _Segment, batch: EventBatch) -> tuple[Candidates, NDArray[np.int64]]:
        """The candidates of a batch in a segment, and the number of programs that each event ran."""
        started = thread_time()
        index = segment.index.index
        encoded = encode(batch, index.columns, index.dictionaries, index.named, (*index.texts, *index.trees.sets))
        texts = _texts_of(batch, index.texts)
        place_of = np.full(len(batch), -1, np.int32)
        place_of[encoded.several] = np.arange(len(encoded.several))
        *regexes, failed = _decided_elsewhere(index, texts, batch, self.limits)
        offsets, examined = np.zeros(len(batch) + 1, np.int64), np.zeros(len(batch), np.int64)
        room = segment.index.take_room(2 * len(texts.begins) + 2 * len(batch))
        codes = encoded.codes
        reached = 0
        while True:
            reached = match_programs(
                *(index.words, room.words, segment.alive, codes, place_of, encoded.starts, encoded.values),
                *(texts.data, texts.begins, texts.ends, texts.at, *regexes, reached),
                *(room.out, room.doubts, offsets, examined),
            )
            if reached == len(batch):
                break
            room.grow(int(offsets[reached]))
        count = int(offsets[-1])
        candidates = Candidates(offsets, index.trees.numbers[room.out[:count]], room.doubts[:count].copy())
        segment.index.tally.time(len(batch), int(examined.sum()), len(texts.data), thread_time() - started)
        self._learn(segment, codes, room)
        segment.index.rooms.append(room)
        unsure = sorted(failed.union(_unsure(batch, index.texts)))
        return (_with_all(candidates, index.trees.numbers[segment.alive], unsure) if unsure else candidates), examined

    def search_one(self, segment: _Segment, event: Event) -> tuple[int, list[int], list[bool]] | None:
        """The number of programs run, and the candidates with doubts. None if the event needs a batch of one."""
        index = segment.index.index
        if index.xpaths:
            return None
        codes: NDArray[np.uint32] | None = _NO_CODES
        if index.columns:
            codes = codes_of_one(event, index.columns, index.dictionaries, index.named)
        if codes is None:
            return None
        parts: list[bytes] = []
        begins: list[int] = []
        ends: list[int] = []
        spans: list[int] = []
        end = 0
        for place, path in enumerate(index.texts):
            value = value_at(event.attributes, path)
            if type(value) is list:
                return None
            begins.append(end)
            spans.append(place)
            if type(value) is str:
                parts.append(value.encode())
                end += len(parts[-1])
                spans[-1] += 1
            ends.append(end)
        # A bytearray is writable, like the arrays of batches: else the kernel would be compiled for another type.
        data = np.frombuffer(bytearray(b"".join(parts)), np.uint8)
        room = segment.index.take_room(len(spans) + 1)
        single = room.single
        single.begins[:], single.ends[:], single.spans[:] = begins, ends, spans
        regexes = _NO_REGEXES
        if index.regexes:
            regexes = _by_event(*_fitting_regexes(index, _Texts(data, single.begins, single.ends, single.at), 1), 1)
        match_programs(
            *(index.words, room.words, segment.alive, codes, _NO_PLACES, _NO_STARTS, _NO_VALUES),
            *(data, single.begins, single.ends, single.at, *regexes, 0),
            *(room.out, room.doubts, single.offsets, single.examined),
        )
        count, examined = int(single.offsets[1]), int(single.examined[0])
        programs = room.out[:count]
        numbers = index.trees.numbers[programs].tolist() if count else []
        doubts = room.doubts[:count].tolist() if count else []
        self._learn(segment, codes, room)
        segment.index.rooms.append(room)
        return examined, numbers, doubts

    def _learn(self, segment: _Segment, codes: NDArray[np.uint32], room: _Room) -> None:
        learning = segment.index
        if not learning.tally.add(learning.index, codes, room):
            return
        with self._lock:
            if any(other is segment for other in self._segments):
                rebuilt = replace(segment, index=learning.rebuilt())
                self._set_segments(tuple(rebuilt if other is segment else other for other in self._segments))

    # Reading

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions test: the same tuple as long as they are the same."""
        columns: dict[Column, None] = {}
        for index in self._indexes():
            columns.update(dict.fromkeys(index.columns))
            columns.update((Column(path, Kind.STRING), None) for path in index.texts)
        if tuple(columns) != self._columns:
            self._columns = tuple(columns)
        return self._columns

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that programs test, and the subscriptions whose verification may read further attributes."""
        verified: list[int] = []
        for segment in self.now():
            index = segment.index.index
            verified += index.trees.numbers[index.looks_beyond & segment.alive].tolist()
        return {source for column in self.columns() for source in sources_of(column.path)}, verified

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that are read as XML documents."""
        paths = (path for index in self._indexes() for path in index.xpaths.paths())
        return tuple(dict.fromkeys(paths))

    def flats(self) -> list[Flat]:
        """The predicates of subscriptions as rows, which may be weaker than the subscriptions."""
        return [rows_of(self.records(segment)) for segment in self.now()]

    def trees(self) -> Trees:
        """The trees of all subscriptions."""
        parts = [self.records(segment) for segment in self.now()]
        return joined(parts).used() if parts else gathered(())

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS) -> ProgramMatcher | None:
        """The saved matcher, or None if none was saved. Raises OutdatedError."""
        from harken.matchers.programs.saving import load_programs

        return load_programs(files, limits)

    def save(self, write: Write) -> None:
        """Write the whole matcher as one file."""
        from harken.matchers.programs.saving import save_trees

        self.merge()
        with self._lock:
            segments = self._segments
        if segments:
            save_trees(segments[0].index.index.trees, segments[0].index.learnt(), write)

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        """A matcher with renumbered subscriptions: `numbers` has the new number at each old one, -1 to leave it out."""
        trees = self.trees()
        return self.made_of(trees.only(numbers[trees.numbers] >= 0).used(), numbers)

    def united(self, others: Sequence[Self]) -> Self:
        """A matcher with the subscriptions of this one and of others. No two have the same number."""
        return self.made_of(joined([self.trees(), *(other.trees() for other in others)]).used())

    def learn(self, batch: EventBatch) -> None:
        """Take a batch as a sample of future events."""
        for segment in self.now():
            if len(batch):
                self.search(segment, batch)

    def made_of(
        self, trees: Trees, numbers: NDArray[np.int32] | None = None, learnt: LearntFrequencies | None = None
    ) -> Self:
        """A matcher with the limits of this one and these trees. `numbers` has the new number at each old one."""
        made = type(self)(self.limits)
        if len(trees):
            renumbered = trees if numbers is None else replace(trees, numbers=numbers[trees.numbers].astype(np.int32))
            made._set_segments((Segment.of(LearningIndex.of(renumbered, learnt)),))
        return made

    def _indexes(self) -> list[CoveredIndex]:
        return [segment.index.index for segment in self.now()]

    def stats(self) -> dict[str, Any]:
        segments = self.now()
        return {
            "subscriptions": sum(map(len, segments)),
            "indexes": [_described(segment) for segment in segments],
            "memory": {"bytes": sum(segment.index.index.memory() for segment in segments)},
        }


def _described(segment: _Segment) -> dict[str, Any]:
    index, tally = segment.index.index, segment.index.tally
    described: dict[str, Any] = {
        "programs": len(index),
        "patterns": len(index.trees.patterns),
        "always": len(index.kernel.programs.always),
        "events": tally.events,
        "expected_programs": round(index.expected, 2),
        "seen_programs": None,
        "expected_ns": round(index.expected_ns(_USUAL_TEXT * len(index.texts))),
        "seen_ns": None,
    }
    if tally.timed:
        described["seen_programs"] = round(tally.examined / tally.timed, 2)
        described["expected_ns"] = round(index.expected_ns(tally.text / tally.timed))
        described["seen_ns"] = round(tally.seconds / tally.timed * 1e9)
    return described


def tree_of(entry: Entry) -> Tree:
    """The tree of a subscription that is planned for programs."""
    plan = entry.compiled.plan
    if not isinstance(plan, ProgramPlan):
        raise TypeError(f"a plan of the kind {plan.kind!r} has no tree")
    return plan.tree


def _unsure(batch: EventBatch, texts: tuple[Path, ...]) -> list[int]:
    """The events with too many bindings to derive a text: it may have any value."""
    rows = [batch.cells(path).open_rows for path in texts]
    return [int(event) for each in rows if each is not None for event in each]


def _with_all(candidates: Candidates, numbers: NDArray[np.int32], events: list[int]) -> Candidates:
    """The candidates, with all numbers, doubtful, for these events."""
    doubtful = candidates.doubtful if candidates.doubtful is not None else np.zeros(len(candidates.numbers), np.bool_)
    counts = np.diff(candidates.offsets)
    parts, doubts = [], []
    for event, count in enumerate(counts.tolist()):
        if event in events:
            counts[event] = len(numbers)
            parts.append(numbers)
            doubts.append(np.ones(len(numbers), np.bool_))
        else:
            first = int(candidates.offsets[event])
            parts.append(candidates.numbers[first : first + count])
            doubts.append(doubtful[first : first + count])
    return Candidates(np.concatenate([[0], np.cumsum(counts)]), np.concatenate(parts), np.concatenate(doubts))


def _texts_of(batch: EventBatch, paths: tuple[Path, ...]) -> _Texts:
    """The texts at these paths, concatenated."""
    parts: list[NDArray[np.uint8]] = []
    begins: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []
    at = np.zeros((len(paths), len(batch) + 1), np.int64)
    texts = length = 0
    for column, path in enumerate(paths):
        cells = next((each for each in batch.cells(path).cells if each.kind is Kind.STRING), None)
        if cells is None or not len(cells.rows):
            at[column] = texts
            continue
        data, offsets = utf8_of(cells.values)
        first, last = int(offsets[0]), int(offsets[-1])
        parts.append(data[first:last])
        moved = offsets.astype(np.int64) + (length - first)
        begins.append(moved[:-1])
        ends.append(moved[1:])
        at[column] = texts + np.searchsorted(cells.rows, np.arange(len(batch) + 1))
        texts += len(cells.rows)
        length += last - first
    none = np.empty(0, np.int64)
    data = np.concatenate(parts) if len(parts) > 1 else parts[0].copy() if parts else np.empty(0, np.uint8)
    return _Texts(data, np.concatenate([none, *begins]), np.concatenate([none, *ends]), at)


def _decided_elsewhere(
    index: CoveredIndex, texts: _Texts, batch: EventBatch, limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.int32], set[int]]:
    """The start of each event's regular expressions and XPaths, those that match it, and events with undecided ones."""
    events, fitting = _fitting_regexes(index, texts, len(batch))
    unsure: set[int] = set()
    if index.xpaths:
        xpath_events, xpaths, unsure = index.xpaths.fitting(batch, limits)
        events, fitting = np.concatenate([events, xpath_events]), np.concatenate([fitting, xpaths])
    return *_by_event(events, fitting, len(batch)), unsure


def _fitting_regexes(index: CoveredIndex, texts: _Texts, events: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs of an event and a regular expression that matches its text."""
    rows: list[int] = []
    fitting: list[int] = []
    data = texts.data.tobytes() if index.regexes else b""
    patterns_of: dict[tuple[int, bytes], list[int]] = {}
    for column in index.regexes.columns():
        at = texts.at[column]
        first, last = int(at[0]), int(at[-1])
        begins, ends = texts.begins[first:last].tolist(), texts.ends[first:last].tolist()
        owners = np.repeat(np.arange(events), np.diff(at)).tolist()
        for event, begin, end in zip(owners, begins, ends, strict=True):
            key = column, data[begin:end]
            patterns = patterns_of.get(key)
            if patterns is None:
                patterns = patterns_of[key] = index.regexes.fitting(*key)
            for pattern in patterns:
                rows.append(event)
                fitting.append(pattern)
    return np.array(rows, np.int64), np.array(fitting, np.int32)


def _by_event(
    owner: NDArray[np.int64], fitting: NDArray[np.int32], events: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The start of each event's patterns, and the patterns in the order of events."""
    starts = np.zeros(events + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=events), out=starts[1:])
    return starts, fitting[np.argsort(owner, kind="stable")]
