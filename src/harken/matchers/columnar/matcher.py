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
"""Number of recent rows at which they are merged into an index. An event tests some recent rows one by one."""
SMALL_ROWS = 1_024
"""At most this many rows stay in the chains of recent rows, unindexed, if the chains are short."""


@dataclass(frozen=True, slots=True)
class ColumnarState:
    """The complete state of a matcher, with all rows in the base."""

    version: Version
    sample: Sample
    supplied: Statistics
    merges: int
    options: dict[str, Any]


class Columnar:
    """An index in layers: a large base, smaller layers of later rows, and recent rows.

    Changes come from one thread at a time; other threads may match meanwhile. Matches read a version, which is replaced
    by one assignment. Merging runs in the background.
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
        self._small_rows = min(small_rows, recent_rows - 1)  # else merging would never end
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
        """Removed subscriptions that are still in a layer. Deleted together, because a deletion copies a bitmap."""
        self._removed_meanwhile: list[int] | None = None
        """Subscriptions removed during a merge; None if no merge is running."""
        self._may_be_due = True
        """Whether rows changed since the last check whether a merge is due."""
        self._last_snapshot: ColumnarSnapshot | None = None
        self._view: ColumnarView | None = None
        """The view of the last match, reused until something changes."""
        self._changes = 0
        """Grows with every change."""
        self._moment = 0
        """Grows with every removal. A match sees the rows of the moment at which it began."""
        self._stale = 0
        """Number of verifications since the last merge that a merge would have saved."""
        self.spent = BatchCosts()
        self._sample = Sample(0)
        self._supplied = NO_STATISTICS
        self._version, self._sample = merged([Flat.of_forms([])], None, self._sample, self.settings)
        _matchers.add(self)

    @classmethod
    def of_state(cls, state: ColumnarState, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Self:
        """A matcher with this state. `options` override those of the state."""
        matcher = cls(limits, **{**state.options, **options})
        matcher._version = replace(state.version, middles=(), recents=(Recent(len(state.version.columns)),))
        matcher._version.base.settings = matcher.settings
        matcher._sample, matcher._supplied = state.sample, state.supplied
        if 0 < len(state.version.base) <= matcher._small_rows:
            matcher.merge()
        matcher._merges = state.merges
        return matcher

    def state(self) -> ColumnarState:
        """The complete state, with all rows merged into the base. Later changes do not affect it.

        A change during the merge causes another merge, so callers should hold changes back.
        """
        with self._merging:
            self._raise_failure()
            while True:
                with self._lock:
                    self._absorb()
                    version, sample = self._version, Sample.of_state(self._sample.state())
                    if not version.is_merged and len(version) <= self._small_rows:
                        flats = [*version.indexed(), *(recent.flat() for recent in version.recents)]
                        version, sample = merged(flats, version, sample, self.settings, self._supplied)
                    if version.is_merged:
                        return ColumnarState(version.copied(), sample, self._supplied, self._merges, self._options)
                self._merge(everything=True)

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS, **options: Any) -> Columnar | None:
        """The saved matcher, or None if none was saved. `options` override the saved ones. Raises OutdatedError."""
        from harken.matchers.columnar.saving import load_matcher

        return load_matcher(files, limits, **options)

    def save(self, write: Write) -> None:
        """Write the state as one file. Matching continues meanwhile; changes should be held back, as for `state`."""
        from harken.matchers.columnar.saving import save_state

        save_state(self.state(), write)

    def made_of(self, rows: Flat) -> Self:
        """A matcher with the options and statistics of this one, but with these rows."""
        made = type(self)(self.limits, **self._options)
        made.give(self.statistics())
        made.add_flat(rows)
        made.merge()
        return made

    def rows(self) -> Flat:
        """All rows with their constants."""
        return rows_of_base(self.state().version)

    def weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The subscription of each row, in the order of the index, and each row's share of cost and size."""
        return weights(self.state().version.base.layer)

    def columns(self) -> tuple[Column, ...]:
        """The columns that rows test, and perhaps columns that only removed rows tested.

        Returns the same tuple until the columns change.
        """
        with self._lock:
            self._absorb()
            return self._version.columns

    def flats(self) -> list[Flat]:
        """All rows with their constants, layer by layer. Does not merge."""
        with self._lock:
            self._absorb()
            version = self._version
            flats = [recent.flat() for recent in version.recents if len(recent)]
        return [*version.indexed(), *flats]

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that rows test, and the subscriptions whose verification may read further attributes."""
        version = self.state().version
        paths = {source for column in version.columns for source in sources_of(column.path)}
        return paths, version.base.layer.doubtful.tolist()

    def favourite(self) -> Path | None:
        """The attribute that is the key of most rows, if it is the key of at least half of them."""
        version = self.state().version
        rows_of_key: Counter[int] = Counter()
        for planned in version.base.layer.plans:
            for group in planned.groups:
                rows_of_key[group.key] += group.size
        key, rows = max(rows_of_key.items(), key=lambda item: item[1], default=(-1, 0))
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
        """As `add`, for subscriptions from a saved engine: they are indexed at once, even if they are few."""
        flat = Flat.of_forms((entry.number, entry.compiled.normal_form) for entry in entries)
        self.add_flat(flat)
        if len(flat) <= self._recent_rows:
            self.merge()

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Add rows of new subscriptions, and remove `replaced`. Many rows are indexed at once."""
        if len(flat) <= self._recent_rows:
            with self._lock:
                self._changes += 1
                self._absorb()
                self._version = self._version.with_columns([predicates.column for predicates in flat.columns])
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
        """Merge all rows into one layer, planned by the statistics learnt so far."""
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

    def merge_if_worth(self, version: Version, stale: int) -> bool:
        """Merge all rows once the verifications that a merge would have saved cost as much as the merge.

        Returns whether it merged. A large index is merged in the background, unless this match alone justifies a merge.
        """
        self._stale += stale  # may lose updates of other threads: the count need not be exact
        worth = self.settings.fixed_worth + len(version)
        if self._stale < worth:
            return False
        if len(version) > self.settings.merged_at_once and stale < worth and self._background:
            self._merge_in_background(self._merge_all)
            return False
        with self._merging:
            if self._version.base is version.base:  # not merged meanwhile by another thread
                self._merge(everything=True)
        return True

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch in the codes of this matcher. Valid until its rows change."""
        with self._lock:
            version = self._snapshot()[0].version
        return encode(batch, version.columns, version.dictionaries)

    def find(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Match events encoded by `encode`: offsets, and numbers in a reused buffer. All rows have to be exact."""
        with self._lock:
            snapshot, _ = self._snapshot()
        base, events = snapshot.version.base, encoded.codes.shape[1]
        if snapshot.version.is_merged and not base.dead and not len(base.layer.careful) and not len(encoded.several):
            offsets = np.zeros(events + 1, np.int64)
            with base.finder(careful=False) as finder:
                return offsets, finder.find(encoded, np.zeros(events, np.bool_), offsets, self.buffers)[0]
        match = Match(snapshot, encoded, _NO_EVENTS, self.buffers)
        match.find()
        result = match.result(_never_verified, self.limits)
        return result.offsets, result.numbers

    def numbers_of(self, matches: NDArray[np.int32]) -> NDArray[np.int32]:
        """The matches as they are: `find` returns subscription numbers."""
        return matches

    def learn(self, batch: EventBatch) -> None:
        """Take a batch as a sample of future events."""
        with self._lock:
            self._absorb()
            version = self._version
            codes = encode(batch, version.columns, version.dictionaries).codes
            self._sample.take(codes, codes.shape[1])

    def statistics(self) -> Statistics:
        """The statistics learnt from events, for `give` of another matcher."""
        with self._lock:
            self._absorb()
            version = self._version
            return self._sample.statistics(version.columns, version.dictionaries).completed_by(self._supplied)

    def give(self, statistics: Statistics) -> None:
        """Replace the statistics learnt so far, also for attributes that no subscription tests yet."""
        if not len(statistics):
            return
        with self._merging, self._lock:
            self._absorb()
            version = self._version
            self._supplied = statistics
            self._sample = self._sample.replaced_by(statistics, version.columns, version.dictionaries)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            self._raise_failure()
            self._absorb()
            version = self._version
        return report(version, self._sample, self._merges, self.spent)

    # Inside

    def _snapshot(self) -> tuple[ColumnarSnapshot, Sample]:
        """A snapshot, and the sample in its codes. The caller holds the lock."""
        if self._failure is not None:
            self._raise_failure()
        if self._waiting or self._leaving:
            self._absorb()
        last = self._last_snapshot
        if last is None or not last.is_of(self._version, self._moment):
            last = self._last_snapshot = self._version.snapshot(self._moment)
        return last, self._sample

    def _absorb(self) -> None:
        """Delete leaving subscriptions from the layers, and code waiting ones. The caller holds the lock."""
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
            self._version = self._version.with_columns([predicates.column for predicates in flat.columns])
            self._version.add(flat)
        self._may_be_due = True

    def _raise_failure(self) -> None:
        """Re-raise the last failure of a background merge, once. Changes never raise it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions. The caller holds the lock."""
        self._changes += 1
        self._moment += 1
        for number in numbers:
            if self._waiting.pop(number, None) is not None:
                continue
            if self._removed_meanwhile is not None:
                self._removed_meanwhile.append(number)
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
        """Start a merge unless one is running. Returns whether it was started."""
        if not self._merging.acquire(blocking=False):
            return False
        if self._background:
            self._merger = threading.Thread(target=self._run_merge, args=[merge], name="harken-merge", daemon=True)
            self._merger.start()
        else:
            self._run_merge(merge)
        return True

    def _is_due(self) -> bool:
        version = self._version
        return len(version.recents[-1]) >= self._recent_rows or self._needs_rebuild(version)

    def _needs_rebuild(self, version: Version) -> bool:
        """Whether enough of the base was deleted for a rebuild."""
        return version.base.dead * self.settings.share_behind > len(version.base.layer) > 0

    def _run_merge(self, merge: Callable[[], None]) -> None:
        try:
            merge()
        except Exception as error:  # raised by the next match
            self._failure = error
        finally:
            self._merging.release()

    def _merge_due(self) -> None:
        while self._is_due():
            self._merge()

    def _merge_all(self) -> None:
        self._merge(everything=True)

    def _merge(self, more: Flat | None = None, replaced: Collection[int] = (), everything: bool = False) -> None:
        """Index recent rows and `more`, and remove `replaced`. The caller holds the merging lock."""
        with self._lock:
            self._absorb()
            before = self._version
            if more is not None:
                before = before.with_columns([predicates.column for predicates in more.columns])
            self._version = before.with_new_part()
            self._removed_meanwhile = []
        try:
            flats = [recent.flat() for recent in before.recents if len(recent)]
            if more is not None:
                flats.append(more)
            added = sum(map(len, flats))
            small = [layer for layer in before.middles if len(layer.searched) <= self.settings.share_behind * added]
            behind = sum(len(layer.searched) for layer in before.middles) + added
            is_large = behind * self.settings.share_behind >= len(before.base)
            if everything or is_large or self._needs_rebuild(before):
                flats = [*before.indexed(), *flats]
                after, sample = merged(flats, before, self._sample, self.settings, self._supplied, self._small_rows)
            else:
                built = middle([*(layer.alive() for layer in small), *flats], before, self._sample, self.settings)
                after, sample = replace(before, middles=(*(m for m in before.middles if m not in small), built)), None
            with self._lock:
                self._changes += more is not None
                self._publish(after, sample, len(before.recents))
                if replaced:
                    self._remove(replaced)
        finally:
            self._removed_meanwhile = None

    def _publish(self, after: Version, sample: Sample | None, merged_recents: int) -> None:
        """Replace the present version, and apply the changes made meanwhile. The caller holds the lock."""
        now = self._version
        removed = self._removed_meanwhile or []
        later = now.recents[merged_recents:]
        if sample is None:  # the codes are the same
            after = replace(after, columns=now.columns, dictionaries=now.dictionaries, recents=later)
        else:
            self._sample = sample
            for number in removed:  # before later rows are added, which may reuse the number
                after.recents[-1].remove(number, self._moment)
            for flat in [recent.flat() for recent in later if len(recent)]:
                after = after.with_columns([predicates.column for predicates in flat.columns])
                after.add(flat)
        for searched in after.layers:
            searched.delete(np.array(removed, np.int32))
        self._version = after
        self._may_be_due = True
        self._failure = None
        self._merges += 1
        if sample is not None:
            self._stale = 0


_NO_EVENTS = validate([]).batch


def _never_verified(number: int) -> NormalForm:
    raise AssertionError(f"subscription {number} has to be verified, which only `match` does")


_matchers: WeakSet[Columnar] = WeakSet()


def _forget_mergers() -> None:
    """Forget the merges of the parent in a child of `fork()`, which lacks their threads. The rows are still recent."""
    for matcher in list(_matchers):
        matcher._merging = threading.Lock()
        matcher._merger = matcher._removed_meanwhile = None


os.register_at_fork(after_in_child=_forget_mergers)
