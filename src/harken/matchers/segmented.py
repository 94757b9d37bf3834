"""The lifecycle that kinds of index share: waiting subscriptions, segments of growing size, removed subscriptions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.forking import MATCHER, fork_lock
from harken.events import EventBatch
from harken.language.capabilities import Capability
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Snapshot, Trait

GROWTH = 4
"""A segment is merged with the one before it unless that is at least GROWTH times as large."""
LEARNING = (64, 1_024, 16_384)
"""Numbers of events after which a segment is rebuilt by the statistics learnt from them."""


class SegmentIndex(Protocol):
    """The index of one segment. It never changes."""

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The number of the subscription at each place of the index."""

    @property
    def place_of(self) -> dict[int, int]:
        """The place of each subscription in the index, by its number."""

    def __len__(self) -> int: ...


Record = TypeVar("Record")
Records = TypeVar("Records")
Index = TypeVar("Index", bound=SegmentIndex)


@dataclass(frozen=True, slots=True)
class Segment(Generic[Index]):
    """An index, and a flag for each of its subscriptions that is not removed."""

    index: Index
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, index: Index) -> Self:
        return cls(index, np.ones(len(index), np.bool_))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def numbers(self) -> list[int]:
        """The numbers of the subscriptions that are not removed."""
        numbers: list[int] = self.index.numbers[self.alive].tolist()
        return numbers

    def without(self, numbers: Iterable[int]) -> Segment[Index]:
        """A copy with some subscriptions removed. Matches in progress keep using the original."""
        alive = self.alive.copy()
        places = self.index.place_of
        alive[[place for number in numbers if (place := places.get(number)) is not None]] = False
        return replace(self, alive=alive)


class Segmented(ABC, Generic[Record, Records, Index]):
    """New subscriptions wait until the next match. It indexes them, together with segments that are not much larger.

    A subclass defines how subscriptions become records and records an index, and searches segments. Changes come from
    one thread at a time; other threads may match meanwhile.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    most_waiting: ClassVar[int | None] = None
    """Maximum number of waiting subscriptions, for kinds whose records take much more memory than their index."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._lock = fork_lock(MATCHER)
        self._waiting: dict[int, Record] = {}
        self._segments: tuple[Segment[Index], ...] = ()
        self._removed_count = 0
        """Number of subscriptions removed from segments since all segments were merged."""
        self.changes = 0
        """Grows with every change."""

    # Defined by a subclass

    @abstractmethod
    def record(self, entry: Entry) -> Record:
        """The record that is kept of a subscription while it waits."""

    @abstractmethod
    def written(self, waiting: Iterable[tuple[int, Record]]) -> Records:
        """Waiting records, by number, in the form from which an index is built."""

    @abstractmethod
    def records(self, segment: Segment[Index]) -> Records:
        """The records of the subscriptions of a segment that are not removed."""

    @abstractmethod
    def built(self, parts: Sequence[Records], *, is_all: bool) -> Index:
        """An index of these records. `is_all`: they are the records of all subscriptions."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All present subscriptions; waiting ones are indexed first."""

    def segments_changed(self) -> None:
        """Called after the segments were replaced."""

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        self._add({entry.number: self.record(entry) for entry in entries}, replaced)

    def _add(self, records: dict[int, Record], replaced: Collection[int] = ()) -> None:
        with self._lock:
            self.changes += 1
            self._waiting |= records
            self._remove(replaced)
            if self.most_waiting is not None and len(self._waiting) > self.most_waiting:
                self._absorb()

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(numbers)

    def merge(self) -> None:
        """Merge all subscriptions into one segment."""
        with self._lock:
            self._absorb()
            if len(self._segments) > 1 or self._removed_count:
                self._merge_all()

    def _remove(self, numbers: Iterable[int]) -> None:
        self.changes += 1
        indexed = [number for number in numbers if self._waiting.pop(number, None) is None]
        if indexed:
            self._removed_count += len(indexed)
            left = [segment.without(indexed) for segment in self._segments]
            self._set_segments(tuple(segment for segment in left if segment.alive.any()))

    def _absorb(self) -> None:
        """Index the waiting subscriptions, together with segments that are not much larger."""
        if not self._waiting:
            return
        size = len(self._waiting)
        parts = [self.written(self._waiting.items())]
        self._waiting = {}
        kept = list(self._segments)
        if self._removed_count > GROWTH * (size + sum(map(len, kept))):  # most of what segments share is unused
            self._merge_all(*parts)
            return
        while kept and len(kept[-1]) < GROWTH * size:
            size += len(kept[-1])
            parts.append(self.records(kept.pop()))
        self._set_segments((*kept, Segment.of(self.built(parts[::-1], is_all=False))))

    def _merge_all(self, *more: Records) -> None:
        self._removed_count = 0
        parts = [*map(self.records, self._segments), *more]
        index = self.built(parts or [self.written(())], is_all=True)
        self._set_segments((Segment.of(index),) if len(index) else ())

    def _set_segments(self, segments: tuple[Segment[Index], ...]) -> None:
        self._segments = segments
        self.segments_changed()

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self.snapshot().match(batch, form_of)

    # Reading

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting) + sum(map(len, self._segments))

    def now(self) -> tuple[Segment[Index], ...]:
        """The segments, after waiting subscriptions are indexed."""
        with self._lock:
            self._absorb()
            return self._segments

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""
        return [number for segment in self.now() for number in segment.numbers()]

    def shares(self, parts: int) -> list[NDArray[np.int64]]:
        """All subscriptions, divided into parts of equal size in the order of their numbers."""
        return np.array_split(np.sort(np.array(self.numbers(), np.int64)), parts)

    def favourite(self) -> None:
        """None: no attribute is known to be the key of most subscriptions."""
