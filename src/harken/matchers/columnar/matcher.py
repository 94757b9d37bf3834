"""The default: codes, keyed clusters, bit-sliced pools, and a cost model that chooses among them."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.encode import EncodedBatch, encode
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.errors import CapabilityError
from harken.events import EventBatch, validate
from harken.language.capabilities import Capability
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.columnar.batch_match import Match
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.columnar_settings import ColumnarSettings
from harken.matchers.columnar.costs import LAYOUT_NAMES, LAYOUTS
from harken.matchers.columnar.index_report import BatchCosts, report
from harken.matchers.columnar.layer import weights
from harken.matchers.columnar.recent import Recent
from harken.matchers.columnar.sample import NO_STATISTICS, Sample, Statistics
from harken.matchers.columnar.versions import ColumnarSnapshot, Version, merged, middle, rows_of_base
from harken.matchers.columnar.view import ColumnarView
from harken.matchers.roles import Write
from harken.schema.derived import sources_of
from harken.schema.paths import Path
from harken.versions.array_file import ArrayFile

RECENT_ROWS = 4_096
"""Rows that are kept apart before they are indexed. An event looks through some of them, one by one."""
SMALL_ROWS = 1_024
"""As few rows as this are not indexed where the chains of recent rows, whose constants all are known, are as quick."""


@dataclass(frozen=True, slots=True)
class ColumnarState:
    """All that makes up a matcher at rest: one that is made from it goes on as the first one would."""

    version: Version
    sample: Sample
    supplied: Statistics
    merges: int
    options: dict[str, Any]


class Columnar:
    """An index in layers: a large base, smaller layers of what came later, and what is recent.

    Changes come from one thread at a time, matching goes on in others. What is matched is a version, which is swapped
    for another by one assignment; merging goes on in the background.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset(Trait)

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        layouts: Iterable[str] = LAYOUT_NAMES,
        recent_rows: int = RECENT_ROWS,
        background: bool = True,
        small_rows: int = SMALL_ROWS,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        unknown = set(layouts) - set(LAYOUT_NAMES)
        if unknown or not layouts:
            raise CapabilityError(
                f"layouts are some of {', '.join(LAYOUT_NAMES)}, not {', '.join(sorted(unknown)) or 'none'}"
            )
        self.limits = limits
        chosen = tuple(LAYOUTS[LAYOUT_NAMES.index(name)] for name in layouts)
        self.settings = replace(ColumnarSettings(**(settings or {})), layouts=chosen)
        self._recent_rows = recent_rows
        self._background = background
        self._small_rows = min(small_rows, recent_rows - 1)  # else merging would never come to an end
        self._options: dict[str, Any] = {
            "layouts": list(layouts),
            "recent_rows": recent_rows,
            "background": background,
            "small_rows": small_rows,
        }
        if settings:
            self._options["settings"] = dict(settings)
        self._lock = fork_lock(MATCHER)
        self._merging = threading.Lock()
        self.buffers = Buffers(self.settings)
        self._merges = 0
        self._merger: threading.Thread | None = None
        self._failure: Exception | None = None
        self._waiting: dict[int, NormalForm] = {}
        self._leaving: list[int] = []
        """Subscriptions that are in a layer and are to be deleted: all at once, since that copies a bitmap."""
        self._gone_meanwhile: list[int] | None = None
        self._may_be_due = True
        """Whether rows came or went since it was last asked if merging is due."""
        self._last_snapshot: ColumnarSnapshot | None = None
        self._view: ColumnarView | None = None
        """What the last match saw, for the next one if nothing has changed."""
        self._changes = 0
        """How many times something came or left."""
        self._moment = 0
        """How many times something left. What a match sees is told by the moment at which it began."""
        self._stale = 0
        """Verifications since the last merge that would have been spared if codes knew all constants."""
        self.spent = BatchCosts()
        self._sample = Sample(0)
        self._supplied = NO_STATISTICS
        self._version, self._sample = merged([Flat.of_forms([])], None, self._sample, self.settings)
        _living.add(self)

    @classmethod
    def of_state(cls, state: ColumnarState, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Self:
        """A matcher that takes over a state. Options stand in place of those of the state."""
        matcher = cls(limits, **{**state.options, **options})
        matcher._version = replace(state.version, middles=(), recents=(Recent(len(state.version.columns)),))
        matcher._version.base.settings = matcher.settings
        matcher._sample, matcher._supplied = state.sample, state.supplied
        if 0 < len(state.version.base) <= matcher._small_rows:
            matcher.merge()
        matcher._merges = state.merges
        return matcher

    def state(self) -> ColumnarState:
        """What it is made of, with all rows in the base. Changes that come later do not touch it.

        Those that come while it merges make it merge once more: let them wait.
        """
        with self._merging:
            self._tell_failure()
            while True:
                with self._lock:
                    self._absorb()
                    version, sample = self._version, Sample.of_state(self._sample.state())
                    if not version.is_one and len(version) <= self._small_rows:
                        flats = [*version.indexed(), *(each.flat() for each in version.recents)]
                        version, sample = merged(flats, version, sample, self.settings, self._supplied)
                    if version.is_one:
                        return ColumnarState(version.copied(), sample, self._supplied, self._merges, self._options)
                self._merge(everything=True)

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS, **options: Any) -> Columnar | None:
        """The matcher that was saved, or None if none was, with its options if none are given. Raises OutdatedError."""
        from harken.matchers.columnar.saving import load_matcher

        return load_matcher(files, limits, **options)

    def save(self, write: Write) -> None:
        """Write all that it is made of, as one file. Matching goes on meanwhile; changes wait, as for `state`."""
        from harken.matchers.columnar.saving import save_state

        save_state(self.state(), write)

    def made_of(self, rows: Flat) -> Self:
        """A matcher like this one, with its options and what it learnt, that has these rows."""
        made = type(self)(self.limits, **self._options)
        made.give(self.statistics())
        made.add_flat(rows)
        made.merge()
        return made

    def rows(self) -> Flat:
        """All rows with their constants."""
        return rows_of_base(self.state().version)

    def weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The subscriptions of all rows, in the order of the index, and what share of cost and size each row has."""
        return weights(self.state().version.base.layer)

    def columns(self) -> tuple[Column, ...]:
        """The columns that rows ask for, and perhaps some that only rows asked for that are gone.

        It is the same tuple until there are other columns.
        """
        with self._lock:
            self._absorb()
            return self._version.columns

    def flats(self) -> list[Flat]:
        """All rows with their constants, layer by layer. Nothing is merged for it."""
        with self._lock:
            self._absorb()
            version = self._version
            recent = [each.flat() for each in version.recents if len(each)]
        return [*version.indexed(), *recent]

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that rows ask for, and the subscriptions that may look at others when they are verified."""
        version = self.state().version
        paths = {source for each in version.columns for source in sources_of(each.path)}
        return paths, version.base.layer.doubtful.tolist()

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
        if len(forms) > self.settings.most_waiting:
            self.add_flat(Flat.of_forms(forms.items()), replaced)
            return
        with self._lock:
            self._changes += 1
            self._waiting |= forms
            if replaced:
                self._remove(replaced)
            if len(self._waiting) > self.settings.most_waiting:
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
                self._changes += 1
                self._absorb()
                self._version = self._version.knowing([each.column for each in flat.columns])
                self._version.add(flat)
                if replaced:
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
        return self.snapshot().match(batch, form_of)

    def snapshot(self) -> ColumnarView:
        with self._lock:
            snapshot, sample = self._snapshot()
            view = self._view
            if view is None or view.snapshot is not snapshot or view.sample is not sample:
                view = self._view = ColumnarView(self, snapshot, sample, self._changes)
            return view

    def index_stale(self, version: Version, stale: int) -> bool:
        """Index all rows once that costs no more than the verifications that it would have spared.

        Returns whether that is done. A large index is merged in the background, unless this match alone is worth it.
        """
        self._stale += stale  # threads may lose a little of it: it need not be exact
        worth = self.settings.fixed_worth + len(version)
        if self._stale < worth:
            return False
        if len(version) > self.settings.merged_at_once and stale < worth and self._background:
            self._merge_in_background(self._merge_all)
            return False
        with self._merging:
            if self._version.base is version.base:  # nobody else has merged it meanwhile
                self._merge(everything=True)
        return True

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch in the codes of this matcher, until its rows change."""
        with self._lock:
            version = self._snapshot()[0].version
        return encode(batch, version.columns, version.dictionaries)

    def find(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Match events that `encode` encoded, where all rows are exact: offsets, and numbers in a reused buffer."""
        with self._lock:
            snapshot, _ = self._snapshot()
        base, events = snapshot.version.base, encoded.codes.shape[1]
        if snapshot.version.is_one and not base.dead and not len(base.layer.careful) and not len(encoded.several):
            offsets = np.zeros(events + 1, np.int64)
            with base.finder(careful=False) as finder:
                return offsets, finder.find(encoded, np.zeros(events, np.bool_), offsets, self.buffers)[0]
        match = Match(snapshot, encoded, _NO_EVENTS, self.buffers)
        match.find()
        found = match.result(_never_verified, self.limits)
        return found.offsets, found.numbers

    def numbers_of(self, found: NDArray[np.int32]) -> NDArray[np.int32]:
        """The subscriptions of what `find` found, which it gives at once."""
        return found

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
            return self._sample.statistics(version.columns, version.dictionaries).with_others(self._supplied)

    def give(self, statistics: Statistics) -> None:
        """Go by these statistics in place of what was learnt so far, also for attributes that are not asked for yet."""
        if not len(statistics):
            return
        with self._merging, self._lock:
            self._absorb()
            version = self._version
            self._supplied = statistics
            self._sample = self._sample.given(statistics, version.columns, version.dictionaries)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            self._tell_failure()
            self._absorb()
            version = self._version
        return report(version, self._sample, self._merges, self.spent)

    # Inside

    def _snapshot(self) -> tuple[ColumnarSnapshot, Sample]:
        """What there is now, and the sample in its codes. To be called with the lock."""
        if self._failure is not None:
            self._tell_failure()
        if self._waiting or self._leaving:
            self._absorb()
        last = self._last_snapshot
        if last is None or not last.is_of(self._version, self._moment):
            last = self._last_snapshot = self._version.snapshot(self._moment)
        return last, self._sample

    def _absorb(self) -> None:
        """Delete what leaves, and code what waits. To be called with the lock."""
        self._last_snapshot = None
        if self._leaving:
            numbers, self._leaving = np.array(self._leaving, np.int32), []
            for searched in self._version.layers:
                searched.delete(numbers)
        waiting, self._waiting = self._waiting, {}
        if len(waiting) <= self.settings.few_waiting:
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
        self._changes += 1
        self._moment += 1
        for number in numbers:
            if self._waiting.pop(number, None) is not None:
                continue
            if self._gone_meanwhile is not None:
                self._gone_meanwhile.append(number)
            if not any(recent.remove(number, self._moment) for recent in self._version.recents):
                self._leaving.append(number)
        if len(self._leaving) > self.settings.most_waiting:
            self._absorb()

    def _merge_if_due(self) -> None:
        if not self._may_be_due:
            return
        self._may_be_due = False
        if self._is_due():
            self._may_be_due = not self._merge_in_background(self._merge_due)

    def _merge_in_background(self, merge: Callable[[], None]) -> bool:
        """Start a merge, unless one is going on. Returns whether it was started."""
        if not self._merging.acquire(blocking=False):
            return False
        if self._background:
            self._merger = threading.Thread(target=self._merge_behind, args=[merge], name="harken-merge", daemon=True)
            self._merger.start()
        else:
            self._merge_behind(merge)
        return True

    def _is_due(self) -> bool:
        version = self._version
        return len(version.recents[-1]) >= self._recent_rows or self._is_hollow(version)

    def _is_hollow(self, version: Version) -> bool:
        """Whether so much of the base was deleted that it should be built anew."""
        return version.base.dead * self.settings.share_behind > len(version.base.layer) > 0

    def _merge_behind(self, merge: Callable[[], None]) -> None:
        try:
            merge()
        except Exception as error:  # told to whoever asks next
            self._failure = error
        finally:
            self._merging.release()

    def _merge_due(self) -> None:
        while self._is_due():
            self._merge()

    def _merge_all(self) -> None:
        self._merge(everything=True)

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
            small = [each for each in before.middles if len(each.searched) <= self.settings.share_behind * added]
            behind = sum(len(each.searched) for each in before.middles) + added
            is_large = behind * self.settings.share_behind >= len(before.base)
            if everything or is_large or self._is_hollow(before):
                flats = [*before.indexed(), *flats]
                after, sample = merged(flats, before, self._sample, self.settings, self._supplied, self._small_rows)
            else:
                built = middle([*(each.alive() for each in small), *flats], before, self._sample, self.settings)
                after, sample = replace(before, middles=(*(m for m in before.middles if m not in small), built)), None
            with self._lock:
                self._changes += more is not None
                self._publish(after, sample, len(before.recents))
                if replaced:
                    self._remove(replaced)
        finally:
            self._gone_meanwhile = None

    def _publish(self, after: Version, sample: Sample | None, merged_recents: int) -> None:
        """Put a version in place of the present one, and add what changed meanwhile. To be called with the lock."""
        now = self._version
        gone = self._gone_meanwhile or []
        later = now.recents[merged_recents:]
        if sample is None:  # the codes are the same
            after = replace(after, columns=now.columns, dictionaries=now.dictionaries, recents=later)
        else:
            self._sample = sample
            for number in gone:  # before what came later is added: that may have the number of what is gone
                after.recents[-1].remove(number, self._moment)
            for flat in [recent.flat() for recent in later if len(recent)]:
                after = after.knowing([each.column for each in flat.columns])
                after.add(flat)
        for searched in after.layers:
            searched.delete(np.array(gone, np.int32))
        self._version = after
        self._may_be_due = True
        self._failure = None
        self._merges += 1
        if sample is not None:
            self._stale = 0


_NO_EVENTS = validate([]).batch


def _never_verified(number: int) -> NormalForm:
    raise AssertionError(f"subscription {number} has to be verified, and only `match` can do that")


_living: WeakSet[Columnar] = WeakSet()


def _forget_mergers() -> None:
    """In a child of `fork()` no merge of the parent goes on: what it would have indexed is still recent here."""
    for matcher in list(_living):
        matcher._merging = threading.Lock()
        matcher._merger = matcher._gone_meanwhile = None


os.register_at_fork(after_in_child=_forget_mergers)
