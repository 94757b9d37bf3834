"""The default: codes, keyed clusters, bit-sliced pools, and a cost model that chooses among them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Capability, Entry, FormOf, MatchPart, MatchResult
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.costs import LAYOUT_NAMES, LAYOUTS
from harken.matchers.columnar.layer import Choices, weights
from harken.matchers.columnar.match import Match
from harken.matchers.columnar.recent import Recent
from harken.matchers.columnar.report import report
from harken.matchers.columnar.sample import NO_STATISTICS, Sample, Statistics
from harken.matchers.columnar.versions import Version, merged, middle, rows_of_base
from harken.schema.paths import Path
from harken.segments.encode import encode
from harken.segments.encode_one import encode_one
from harken.segments.flat import Flat

RECENT_ROWS = 4_096
"""Rows that are kept apart before they are indexed. An event looks through some of them, one by one."""
_SHARE_BEHIND = 4
"""The base is made anew when what is behind it is a quarter of it, or a quarter of it is deleted."""
_FEW = 16
"""As many subscriptions as this are coded one by one; more, column by column."""
_WAITING = 256
"""Subscriptions that wait to be coded or deleted until there is an event, at most."""
_ENCODED_TOGETHER = 1_024
"""Events a column that one thread encodes for all that share them, if they come as columns; of more, each its own."""


@dataclass(frozen=True, slots=True)
class State:
    """All that makes up a matcher at rest: one that is made from it goes on as the first one would."""

    version: Version
    sample: Sample
    given: Statistics
    merges: int
    options: dict[str, Any]


class Columnar:
    """An index in layers: a large base, smaller layers of what came later, and what is recent.

    Changes come from one thread at a time, matching goes on in others. What is matched is a version, which is swapped
    for another by one assignment; merging goes on in the background.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        layouts: Iterable[str] = LAYOUT_NAMES,
        recent_rows: int = RECENT_ROWS,
        background: bool = True,
    ) -> None:
        unknown = set(layouts) - set(LAYOUT_NAMES)
        if unknown or not layouts:
            raise TypeError(
                f"layouts are some of {', '.join(LAYOUT_NAMES)}, not {', '.join(sorted(unknown)) or 'none'}"
            )
        self._limits = limits
        self._choices = Choices(layouts=tuple(LAYOUTS[LAYOUT_NAMES.index(name)] for name in layouts))
        self._recent_rows = recent_rows
        self._background = background
        self._options = {"layouts": list(layouts), "recent_rows": recent_rows, "background": background}
        self._lock = threading.Lock()
        self._merging = threading.Lock()
        self._buffers = Buffers()
        self._merges = 0
        self._merger: threading.Thread | None = None
        self._failure: Exception | None = None
        self._waiting: dict[int, NormalForm] = {}
        self._leaving: list[int] = []
        """Subscriptions that are in a layer and are to be deleted: all at once, since that copies a bitmap."""
        self._gone_meanwhile: list[int] | None = None
        self._may_be_due = True
        """Whether rows came or went since it was last asked if merging is due."""
        self._sample = Sample(0)
        self._given = NO_STATISTICS
        self._version, self._sample = merged([Flat.of_forms([])], None, self._sample, self._choices)

    @classmethod
    def of_state(cls, state: State, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Self:
        """A matcher that takes over a state. Options stand in place of those of the state."""
        matcher = cls(limits, **{**state.options, **options})
        matcher._version = replace(state.version, middles=(), recents=(Recent(len(state.version.columns)),))
        matcher._sample, matcher._given, matcher._merges = state.sample, state.given, state.merges
        return matcher

    def state(self) -> State:
        """What it is made of, after merging if anything is not in the base. Changes that come later do not touch it.

        Those that come while it merges make it merge once more: let them wait.
        """
        with self._merging:
            self._tell_failure()
            while True:
                with self._lock:
                    self._absorb()
                    if self._version.is_one:
                        sample = Sample.of_state(self._sample.state())
                        return State(self._version.copied(), sample, self._given, self._merges, self._options)
                self._merge(everything=True)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with."""
        return dict(self._options)

    def rows(self) -> Flat:
        """All rows with their constants."""
        return rows_of_base(self.state().version)

    def weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The subscriptions of all rows, in the order of the index, and what share of cost and size each row has."""
        return weights(self.state().version.base.layer)

    def paths(self) -> tuple[set[Path], NDArray[np.int32]]:
        """The attributes that rows ask for, and the subscriptions that may look at others when they are verified."""
        version = self.state().version
        return {each.path for each in version.columns}, version.base.layer.doubtful

    def favourite(self) -> Path | None:
        """The attribute by which most rows are found, if that is at least half of them."""
        version = self.state().version
        found: Counter[int] = Counter()
        for planned in version.base.layer.plans:
            for group in planned.groups:
                found[group.key] += group.size
        key, rows = max(found.items(), key=lambda item: item[1], default=(-1, 0))
        return version.columns[key].path if key >= 0 and 2 * rows >= len(version.base.layer) else None

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        forms = {entry.number: entry.compiled.normal_form for entry in entries}
        if len(forms) > _WAITING:
            self.add_flat(Flat.of_forms(forms.items()), replaced)
            return
        with self._lock:
            self._waiting |= forms
            if replaced:
                self._remove(replaced)
            if len(self._waiting) > _WAITING:
                self._absorb()
        self._merge_if_due()

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for what was there before: however little it is, it is indexed."""
        flat = Flat.of_forms((entry.number, entry.compiled.normal_form) for entry in entries)
        self.add_flat(flat)
        if len(flat) <= self._recent_rows:
            self.merge()

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Add rows whose subscriptions are not here yet, in place of others. Many at once are indexed at once."""
        if len(flat) <= self._recent_rows:
            with self._lock:
                self._absorb()
                self._version = self._version.knowing([each.column for each in flat.columns])
                self._version.add(flat)
                self._remove(replaced)
                self._may_be_due = True
            self._merge_if_due()
            return
        with self._merging:
            self._merge(flat, replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(numbers)
        self._merge_if_due()

    def merge(self) -> None:
        """Make one layer of all that there is, and plan it by what was learnt of events."""
        with self._merging:
            self._merge(everything=True)

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self._ready(batch, form_of)(0, len(batch))

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """What matches the events first:last of a batch, for several threads at once.

        Threads that encode get into each other's way where that is Python, which it is for events that are, and for
        the first part of every column: then one thread does it for all.
        """
        if batch.is_lazy and len(batch) > _ENCODED_TOGETHER * len(self._version.columns):
            return lambda first, last: self.match(batch[first:last], form_of)
        return self._ready(batch, form_of)

    def _ready(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        """What matches parts of a batch, which is encoded, with the subscriptions that there are now."""
        with self._lock:
            self._tell_failure()
            self._absorb()
            version, sample = self._version, self._sample
            # What comes from now on is not seen: nor can it be together with what it comes in place of.
            rows = [len(recent) for recent in version.recents]
        encoded = None
        if len(batch) == 1 and not batch.is_lazy:
            encoded = encode_one(batch[0], version.columns, version.dictionaries)
        if encoded is None:
            encoded = encode(batch, version.columns, version.dictionaries)
        sample.learn(encoded.codes)  # not that of a version that came meanwhile: codes would mean something else there
        limits, buffers = self._limits, self._buffers

        def matched(first: int, last: int) -> MatchResult:
            part = (encoded, batch) if last - first == len(batch) else (encoded.part(first, last), batch[first:last])
            return Match(version, rows, *part, form_of, limits, buffers).result()

        return matched

    def learn(self, batch: EventBatch) -> None:
        """Take a batch for a sample of the events to come."""
        with self._lock:
            self._absorb()
            version = self._version
            codes = encode(batch, version.columns, version.dictionaries).codes
            self._sample.take(codes, codes.shape[1])

    def statistics(self) -> Statistics:
        """What was learnt of events, to be given to another matcher."""
        with self._lock:
            self._absorb()
            version = self._version
            return self._sample.statistics(version.columns, version.dictionaries).with_others(self._given)

    def give(self, statistics: Statistics) -> None:
        """Go by these statistics in place of what was learnt so far, also for attributes that are not asked for yet."""
        if not len(statistics):
            return
        with self._merging, self._lock:
            self._absorb()
            version = self._version
            self._given = statistics
            self._sample = self._sample.given(statistics, version.columns, version.dictionaries)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            self._tell_failure()
            self._absorb()
            version = self._version
        return report(version, self._sample, self._merges)

    # Inside

    def _absorb(self) -> None:
        """Delete what leaves, and code what waits. To be called with the lock."""
        if self._leaving:
            numbers, self._leaving = np.array(self._leaving, np.int32), []
            for searched in self._version.layers:
                searched.delete(numbers)
        waiting, self._waiting = self._waiting, {}
        if len(waiting) <= _FEW:
            waiting = {number: form for number, form in waiting.items() if not self._version.add_form(number, form)}
        if waiting:
            flat = Flat.of_forms(waiting.items())
            self._version = self._version.knowing([each.column for each in flat.columns])
            self._version.add(flat)
        self._may_be_due = True

    def _tell_failure(self) -> None:
        """Raise what the last merge failed by, once. Who changes subscriptions is not told: his change is made."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _remove(self, numbers: Iterable[int]) -> None:
        """Let go of subscriptions. To be called with the lock."""
        for number in numbers:
            if self._waiting.pop(number, None) is not None:
                continue
            if self._gone_meanwhile is not None:
                self._gone_meanwhile.append(number)
            if not any(recent.remove(number) for recent in self._version.recents):
                self._leaving.append(number)
        if len(self._leaving) > _WAITING:
            self._absorb()

    def _merge_if_due(self) -> None:
        if not self._may_be_due:
            return
        self._may_be_due = False
        if not self._is_due():
            return
        if not self._merging.acquire(blocking=False):
            self._may_be_due = True
            return
        if not self._background:
            self._merge_behind()
            return
        self._merger = threading.Thread(target=self._merge_behind, name="harken-merge", daemon=True)
        self._merger.start()

    def _is_due(self) -> bool:
        version = self._version
        return len(version.recents[-1]) >= self._recent_rows or _is_hollow(version)

    def _merge_behind(self) -> None:
        try:
            while self._is_due():
                self._merge()
        except Exception as error:  # told to whoever asks next
            self._failure = error
        finally:
            self._merging.release()

    def _merge(self, more: Flat | None = None, replaced: Collection[int] = (), everything: bool = False) -> None:
        """Index what is recent, and more in place of others. To be called with the merging lock."""
        with self._lock:
            self._absorb()
            before = self._version
            if more is not None:
                before = before.knowing([each.column for each in more.columns])
            self._version = before.opened()
            self._gone_meanwhile = []
        try:
            flats = [recent.flat() for recent in before.recents if len(recent)]
            if more is not None:
                flats.append(more)
            added = sum(map(len, flats))
            small = [each for each in before.middles if len(each.searched) <= _SHARE_BEHIND * added]
            behind = sum(len(each.searched) for each in before.middles) + added
            if everything or behind * _SHARE_BEHIND >= len(before.base) or _is_hollow(before):
                flats = [rows_of_base(before), *(each.alive() for each in before.middles), *flats]
                after, sample = merged(flats, before, self._sample, self._choices, self._given)
            else:
                built = middle([*(each.alive() for each in small), *flats], before, self._sample, self._choices)
                after, sample = replace(before, middles=(*(m for m in before.middles if m not in small), built)), None
            with self._lock:
                self._publish(after, sample, len(before.recents))
                self._remove(replaced)
        finally:
            self._gone_meanwhile = None

    def _publish(self, after: Version, sample: Sample | None, merged_recents: int) -> None:
        """Put a version in place of the present one, and add what changed meanwhile. To be called with the lock."""
        now = self._version
        gone = np.array(self._gone_meanwhile or [], np.int32)
        later = now.recents[merged_recents:]
        if sample is None:  # the codes are the same
            after = replace(after, columns=now.columns, dictionaries=now.dictionaries, recents=later)
        else:
            self._sample = sample
            kept = [recent.flat() for recent in later if len(recent)]
            for flat in kept:
                after = after.knowing([each.column for each in flat.columns])
                after.add(flat)
        for searched in after.layers:
            searched.delete(gone)
        self._version = after
        self._may_be_due = True
        self._failure = None
        self._merges += 1


def _is_hollow(version: Version) -> bool:
    """Whether so much of the base was deleted that it should be made anew."""
    return version.base.dead * _SHARE_BEHIND > len(version.base.layer) > 0
