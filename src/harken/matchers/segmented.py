"""One lifecycle for kinds of index: what waits, segments that grow by a factor, and what has left."""

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
"""A segment is merged with the one before it, unless that is so many times as large."""
LEARNING = (64, 1_024, 16_384)
"""After so many events a segment is laid out by what they taught."""


class SegmentIndex(Protocol):
    """Subscriptions as a kind finds them. It does not change."""

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The number of the subscription at each place."""

    @property
    def place_of(self) -> dict[int, int]:
        """The place of each subscription, by its number."""

    def __len__(self) -> int: ...


Record = TypeVar("Record")
Records = TypeVar("Records")
Index = TypeVar("Index", bound=SegmentIndex)


@dataclass(frozen=True, slots=True)
class Segment(Generic[Index]):
    """An index, and which of its subscriptions are still there."""

    index: Index
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, index: Index) -> Self:
        return cls(index, np.ones(len(index), np.bool_))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def numbers(self) -> list[int]:
        """The numbers of those that are there."""
        found: list[int] = self.index.numbers[self.alive].tolist()
        return found

    def without(self, numbers: Iterable[int]) -> Segment[Index]:
        """The same without some. A match that began before goes on with all."""
        alive = self.alive.copy()
        places = self.index.place_of
        alive[[place for number in numbers if (place := places.get(number)) is not None]] = False
        return replace(self, alive=alive)


class Segmented(ABC, Generic[Record, Records, Index]):
    """What waits is indexed when somebody matches, together with segments that are not much larger.

    A kind says how subscriptions become records and records an index, and searches segments. Changes come from one
    thread at a time, matching goes on in others.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    most_waiting: ClassVar[int | None] = None
    """Subscriptions that may wait, where they are much larger than in an index."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._lock = fork_lock(MATCHER)
        self._waiting: dict[int, Record] = {}
        self._segments: tuple[Segment[Index], ...] = ()
        self._gone = 0
        """Subscriptions that left segments since all were merged."""
        self.changes = 0
        """How many times subscriptions came or left."""

    # What a kind says

    @abstractmethod
    def record(self, entry: Entry) -> Record:
        """What waits of a subscription."""

    @abstractmethod
    def written(self, waiting: Iterable[tuple[int, Record]]) -> Records:
        """Records of subscriptions, by number, as an index is made of them."""

    @abstractmethod
    def records(self, segment: Segment[Index]) -> Records:
        """The records of those in a segment that are still there."""

    @abstractmethod
    def built(self, parts: Sequence[Records], *, is_all: bool) -> Index:
        """An index of several records; of all that there are, or of some."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """What it holds now, with all that has come."""

    def held(self) -> None:
        """The segments are others from now on."""

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
        """Make one segment of all that there is."""
        with self._lock:
            self._absorb()
            if len(self._segments) > 1 or self._gone:
                self._merge_all()

    def _remove(self, numbers: Iterable[int]) -> None:
        self.changes += 1
        gone = [number for number in numbers if self._waiting.pop(number, None) is None]
        if gone:
            self._gone += len(gone)
            left = [segment.without(gone) for segment in self._segments]
            self._hold(tuple(segment for segment in left if segment.alive.any()))

    def _absorb(self) -> None:
        """Index what is waiting, together with what is not much larger."""
        if not self._waiting:
            return
        size = len(self._waiting)
        parts = [self.written(self._waiting.items())]
        self._waiting = {}
        kept = list(self._segments)
        if self._gone > GROWTH * (size + sum(map(len, kept))):  # few are left of what segments share
            self._merge_all(*parts)
            return
        while kept and len(kept[-1]) < GROWTH * size:
            size += len(kept[-1])
            parts.append(self.records(kept.pop()))
        self._hold((*kept, Segment.of(self.built(parts[::-1], is_all=False))))

    def _merge_all(self, *more: Records) -> None:
        self._gone = 0
        parts = [*map(self.records, self._segments), *more]
        index = self.built(parts or [self.written(())], is_all=True)
        self._hold((Segment.of(index),) if len(index) else ())

    def _hold(self, segments: tuple[Segment[Index], ...]) -> None:
        self._segments = segments
        self.held()

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self.snapshot().match(batch, form_of)

    # What it holds

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting) + sum(map(len, self._segments))

    def now(self) -> tuple[Segment[Index], ...]:
        """The segments, with all that has come."""
        with self._lock:
            self._absorb()
            return self._segments

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""
        return [number for segment in self.now() for number in segment.numbers()]

    def favourite(self) -> None:
        """No attribute is told to be the one by which most are found."""
