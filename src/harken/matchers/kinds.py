"""One matcher per kind of index, and one result joined from all of them.

The plan of a compiled subscription names the kind of index that holds it. While all plans are flat, nothing is joined,
and a match costs what it costs in the flat matcher.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any

from harken.concurrency.forking import KINDS, fork_rlock
from harken.errors import LimitError, UnavailableError
from harken.events import Event, EventBatch
from harken.language.compiled import ProgramPlan
from harken.matchers.base import Entry, FormOf, Matcher, MatchPart, MatchResult, OneMatch, Snapshot, Trait
from harken.matchers.roles import (
    AddsInBulk,
    Persists,
    ReadsDocuments,
    TakesSnapshots,
    TellsColumns,
    UsesDatabase,
    Write,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.codes.columns import Column
    from harken.codes.flat import Flat
    from harken.schema.paths import Path

FLAT, PROGRAMS, DOCUMENTS, OPERATORS = "flat", "programs", "documents", "operators"
_PART = 8_192
"""Subscriptions that are restored together in a database: compiled, each takes some kilobytes."""


class Indexes:
    """The matchers of an engine by kind. Changes come from one thread at a time; other threads may match meanwhile."""

    def __init__(
        self,
        flat: Matcher,
        make: Callable[[str], Matcher] | None = None,
        others: Mapping[str, tuple[Matcher, Iterable[int]]] | None = None,
        rank: int = KINDS,
    ) -> None:
        """`make` makes the matcher of a kind for the first plan of that kind. `others` are existing matchers by kind,
        each with the numbers of its subscriptions.
        """
        self.flat = flat
        self._lock = fork_rlock(rank)
        """Held by a change of several matchers, and while a snapshot of all matchers is taken."""
        self._leaves_patterns = Trait.PROGRAMS in flat.traits
        self._make = make or _unavailable
        self._others: dict[str, Matcher] = {}
        self._kind_of: dict[int, str] = {}
        """The kind of each subscription that is not flat, by its number."""
        for kind, (matcher, numbers) in (others or {}).items():
            self._others[kind] = matcher
            self._kind_of.update(dict.fromkeys(numbers, kind))
        self._tellers: _JointColumns | None = None
        self._learn_roles()

    @property
    def leaves_patterns(self) -> bool:
        """Whether subscriptions with patterns go to programs even where they have a normal form."""
        return self._leaves_patterns

    def add(self, entries: Collection[Entry], replaced: Collection[int] = ()) -> None:
        """Add subscriptions and remove `replaced`. If all are of one kind, no match sees both."""
        if not self._kind_of and all(entry.compiled.plan.kind == FLAT for entry in entries):
            with self._lock if self._waits else nullcontext():
                _change(self.flat, entries, replaced)
            return
        coming = self._sorted(entries)
        leaving = self._by_kind(replaced)
        matchers = {kind: self._of_kind(kind) for kind in coming.keys() | leaving.keys()}
        with self._lock if len(matchers) > 1 or self._waits else nullcontext():
            # Flat first: only that matcher may raise, for its limits, and then nothing has changed yet.
            for kind in sorted(matchers, key=lambda kind: kind != FLAT):
                _change(matchers[kind], coming.get(kind, ()), leaving.get(kind, ()))
            for number in replaced:
                self._kind_of.pop(number, None)
            for kind, added in coming.items():
                if kind != FLAT:
                    self._kind_of.update((entry.number, kind) for entry in added)

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Add rows of new subscriptions, and remove `replaced`, which may be of any kind."""
        assert isinstance(self.flat, AddsInBulk)
        leaving = self._by_kind(replaced)
        replaced_flat = leaving.pop(FLAT, [])
        with self._lock if leaving or self._waits else nullcontext():
            self.flat.add_flat(flat, replaced_flat)
            for kind, numbers in leaving.items():
                self._of_kind(kind).remove(numbers)
                for number in numbers:
                    self._kind_of.pop(number, None)

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for subscriptions from a saved engine: they are indexed at once, even if they are few."""
        coming: dict[str, list[Entry]] = {}
        for entry in entries:
            kind = self._kind(entry)
            several = coming.setdefault(kind, [])
            several.append(entry)
            if len(several) == _PART and isinstance(self._of_kind(kind), UsesDatabase):
                self._restore_kind(kind, coming.pop(kind))
        for kind, added in coming.items():
            self._restore_kind(kind, added)

    def _restore_kind(self, kind: str, entries: list[Entry]) -> None:
        matcher = self._of_kind(kind)
        if isinstance(matcher, AddsInBulk):
            matcher.restore(entries)
        else:
            matcher.add(entries)
        if kind != FLAT:
            self._kind_of.update((entry.number, kind) for entry in entries)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions."""
        leaving = self._by_kind(numbers)
        with self._lock if len(leaving) > 1 or self._waits else nullcontext():
            for kind, removed in leaving.items():
                self._of_kind(kind).remove(removed)
                for number in removed:
                    self._kind_of.pop(number, None)

    def snapshot(self) -> Snapshot:
        """The subscriptions of all matchers at one moment.

        If a matcher takes no snapshots, changes wait until `release`; else they go on.
        """
        if not self._waits and len(self._taking) == 1:
            return self._taking[0].snapshot()
        self._lock.acquire()
        try:
            snapshot = _JointSnapshot([taker.snapshot() for taker in self._taking], self._lock if self._waits else None)
        except BaseException:
            self._lock.release()
            raise
        if not self._waits:
            self._lock.release()
        return snapshot

    def stats(self) -> dict[str, Any]:
        """Statistics of the matchers of other kinds than flat, by kind."""
        return {kind: matcher.stats() for kind, matcher in self._others.items()}

    def matchers(self) -> dict[str, Matcher]:
        """The matchers by kind, flat first."""
        return {FLAT: self.flat, **self._others}

    def others(self) -> dict[str, Matcher]:
        """The matchers of other kinds than flat, by kind."""
        return dict(self._others)

    def like(self, flat: Matcher, others: Mapping[str, Any]) -> Indexes:
        """Indexes with other matchers; `others` play the role `Renumbers`."""
        return Indexes(flat, self._make, {kind: (matcher, matcher.numbers()) for kind, matcher in others.items()})

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that are read as XML documents."""
        readers = self._readers
        if len(readers) == 1:
            return readers[0].document_paths()
        return tuple(dict.fromkeys(path for reader in readers for path in reader.document_paths()))

    def asking(self) -> TellsColumns | None:
        """The columns of all matchers; None if a matcher does not list its columns."""
        if not self._others:
            return self.flat if isinstance(self.flat, TellsColumns) else None
        every = [matcher for matcher in self.matchers().values() if isinstance(matcher, TellsColumns)]
        if len(every) <= len(self._others):
            return None
        if self._tellers is None or self._tellers.parts != every:
            self._tellers = _JointColumns(every)
        return self._tellers

    def save(self, write: Write) -> None:
        """Save all matchers if each can be saved. Else write nothing; loading compiles the texts again."""
        every = [each for each in self.matchers().values() if isinstance(each, Persists)]
        if len(every) > len(self._others):
            for matcher in every:
                matcher.save(write)

    def _sorted(self, entries: Iterable[Entry]) -> dict[str, list[Entry]]:
        """Subscriptions by the kind of index that holds them."""
        by_kind: dict[str, list[Entry]] = {}
        for entry in entries:
            by_kind.setdefault(self._kind(entry), []).append(entry)
        return by_kind

    def _kind(self, entry: Entry) -> str:
        plan = entry.compiled.plan
        kind = plan.kind
        if isinstance(plan, ProgramPlan) and not plan.reads_documents and not self._leaves_patterns:
            try:
                _ = entry.compiled.normal_form
            except LimitError:
                return kind
            return FLAT
        return kind

    def _of_kind(self, kind: str) -> Matcher:
        if kind == FLAT:
            return self.flat
        matcher = self._others.get(kind)
        if matcher is None:
            matcher = self._make(kind)
            self._others = {**self._others, kind: matcher}  # a copy: other threads may be iterating over the old one
            self._learn_roles()
        return matcher

    def _learn_roles(self) -> None:
        """Cache the roles of the matchers, because `isinstance` with a protocol is slow."""
        taking = [
            matcher if isinstance(matcher, TakesSnapshots) else _MatcherAsSnapshot(matcher)
            for matcher in self.matchers().values()
        ]
        self._waits = any(isinstance(each, _MatcherAsSnapshot) for each in taking)
        """Whether a matcher takes no snapshots. Then changes wait for matches."""
        self._taking: tuple[TakesSnapshots, ...] = tuple(taking)
        self._readers = tuple(matcher for matcher in self._others.values() if isinstance(matcher, ReadsDocuments))

    def _by_kind(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        by_kind: dict[str, list[int]] = {}
        for number in numbers:
            by_kind.setdefault(self._kind_of.get(number, FLAT), []).append(number)
        return by_kind


class _MatcherAsSnapshot(Snapshot):
    """A stand-in for the snapshot of a matcher that takes none."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def snapshot(self) -> Snapshot:
        return self

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self._matcher.match(batch, form_of)


class _JointSnapshot(Snapshot):
    """Snapshots of several matchers, whose subscriptions are different."""

    def __init__(self, parts: Sequence[Snapshot], lock: Any) -> None:
        """`lock` is held until `release`; None if there is none."""
        self._parts = parts
        self._lock = lock
        self._is_quick = all(part.is_quick for part in parts)

    @property
    def is_quick(self) -> bool:
        return self._is_quick

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return joined([part.match(batch, form_of) for part in self._parts])

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        return reduce(OneMatch.joined, [_one_of(part, event, form_of) for part in self._parts])

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        parts = [part.parts_of(batch, form_of) for part in self._parts]
        return lambda first, last: joined([part(first, last) for part in parts])


def _one_of(part: Snapshot, event: Event, form_of: FormOf) -> OneMatch:
    match = part.match_one(event, form_of)
    return OneMatch.of(part.parts_of(EventBatch.of((event,), (0,)), form_of)(0, 1)) if match is None else match


class _JointColumns:
    """The columns of several matchers."""

    def __init__(self, parts: Sequence[TellsColumns]) -> None:
        self.parts = parts
        self._columns: tuple[Column, ...] = ()

    def columns(self) -> tuple[Column, ...]:
        columns = tuple(dict.fromkeys(column for part in self.parts for column in part.columns()))
        if columns != self._columns:
            self._columns = columns
        return self._columns

    def flats(self) -> list[Flat]:
        return [flat for part in self.parts for flat in part.flats()]

    def paths(self) -> tuple[set[Path], list[int]]:
        results = [part.paths() for part in self.parts]
        return set().union(*(paths for paths, _ in results)), [number for _, verified in results for number in verified]


def joined(results: list[MatchResult]) -> MatchResult:
    """One result for the same events from matchers whose subscriptions are different."""
    import numpy as np

    candidates = sum((result.candidates for result in results[1:]), results[0].candidates)
    errors = [error for result in results for error in result.errors]
    full = [result for result in results if len(result.numbers)]
    if len(full) < 2:
        first = full[0] if full else results[0]
        return MatchResult(first.offsets, first.numbers, candidates, errors)
    counts = [result.offsets[1:] - result.offsets[:-1] for result in full]
    offsets: NDArray[np.int64] = sum((result.offsets for result in full[1:]), full[0].offsets)
    numbers = np.empty(int(offsets[-1]), np.int32)
    begin = offsets[:-1].copy()
    for result, count in zip(full, counts, strict=True):
        numbers[np.repeat(begin - result.offsets[:-1], count) + np.arange(len(result.numbers))] = result.numbers
        begin += count
    return MatchResult(offsets, numbers, candidates, errors)


def _change(matcher: Matcher, entries: Collection[Entry], leaving: Collection[int]) -> None:
    if entries:
        matcher.add(entries, leaving)
    elif leaving:
        matcher.remove(leaving)


def _unavailable(kind: str) -> Matcher:
    raise UnavailableError(f"there is no index for subscriptions of the kind {kind!r}")
