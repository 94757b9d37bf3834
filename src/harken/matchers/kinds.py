"""One matcher per kind of index, and one answer of them all.

A compiled subscription carries a plan, and the plan says which kind of index holds it. Flat plans are all there are as
long as nobody subscribes in another way: then nothing is joined, and a match costs what the flat matcher's costs.
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
from harken.matchers.roles import AddsInBulk, Persists, ReadsDocuments, TakesSnapshots, TellsColumns, Write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.codes.columns import Column
    from harken.codes.flat import Flat
    from harken.schema.paths import Path

FLAT, PROGRAMS, DOCUMENTS, OPERATORS = "flat", "programs", "documents", "operators"


class Indexes:
    """The matchers of an engine by kind. Changes come from one thread at a time; matching goes on in others."""

    def __init__(
        self,
        flat: Matcher,
        make: Callable[[str], Matcher] | None = None,
        others: Mapping[str, tuple[Matcher, Iterable[int]]] | None = None,
        rank: int = KINDS,
    ) -> None:
        """`make` makes the matcher of another kind when the first plan of that kind comes. Some may be there already,
        given with the numbers of their subscriptions.
        """
        self.flat = flat
        self._lock = fork_rlock(rank)
        """Held by a change that goes through several matchers, and by whoever asks all of them what they hold."""
        self._leaves_patterns = Trait.PROGRAMS in flat.traits
        self._make = make or _unavailable
        self._others: dict[str, Matcher] = {}
        self._kind_of: dict[int, str] = {}
        """The kind of each subscription that is not flat, by its number."""
        for kind, (matcher, numbers) in (others or {}).items():
            self._others[kind] = matcher
            self._kind_of.update(dict.fromkeys(numbers, kind))
        self._tellers: _Joint | None = None
        self._learn_roles()

    @property
    def leaves_patterns(self) -> bool:
        """Whether subscriptions with patterns go to programs even where they have a normal form."""
        return self._leaves_patterns

    def add(self, entries: Collection[Entry], replaced: Collection[int] = ()) -> None:
        """Take subscriptions in place of others. Where all are of one kind, no match sees both."""
        if not self._kind_of and all(entry.compiled.plan.kind == FLAT for entry in entries):
            with self._lock if self._waits else nullcontext():
                _change(self.flat, entries, replaced)
            return
        coming = self._sorted(entries)
        leaving = self._by_kind(replaced)
        matchers = {kind: self._of_kind(kind) for kind in coming.keys() | leaving.keys()}
        with self._lock if len(matchers) > 1 or self._waits else nullcontext():
            # The flat one first: it alone has limits, and raises before anything is changed.
            for kind in sorted(matchers, key=lambda kind: kind != FLAT):
                _change(matchers[kind], coming.get(kind, ()), leaving.get(kind, ()))
            for number in replaced:
                self._kind_of.pop(number, None)
            for kind, own in coming.items():
                if kind != FLAT:
                    self._kind_of.update((entry.number, kind) for entry in own)

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Take rows, of subscriptions that are new, in place of others of any kind."""
        assert isinstance(self.flat, AddsInBulk)
        leaving = self._by_kind(replaced)
        own = leaving.pop(FLAT, [])
        with self._lock if leaving or self._waits else nullcontext():
            self.flat.add_flat(flat, own)
            for kind, numbers in leaving.items():
                self._of_kind(kind).remove(numbers)
                for number in numbers:
                    self._kind_of.pop(number, None)

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for subscriptions that were there before: however few, they are indexed at once."""
        coming = self._sorted(entries)
        for kind, own in coming.items():
            matcher = self._of_kind(kind)
            if isinstance(matcher, AddsInBulk):
                matcher.restore(own)
            else:
                matcher.add(own)
            if kind != FLAT:
                self._kind_of.update((entry.number, kind) for entry in own)

    def remove(self, numbers: Iterable[int]) -> None:
        """Let go of subscriptions."""
        leaving = self._by_kind(numbers)
        with self._lock if len(leaving) > 1 or self._waits else nullcontext():
            for kind, own in leaving.items():
                self._of_kind(kind).remove(own)
                for number in own:
                    self._kind_of.pop(number, None)

    def snapshot(self) -> Snapshot:
        """What all matchers hold at one moment, until `release`.

        Changes wait for that where a matcher takes no snapshots. All others go on meanwhile.
        """
        if not self._waits and len(self._taking) == 1:
            return self._taking[0].snapshot()
        self._lock.acquire()
        try:
            snapshot = _JointSnapshot([each.snapshot() for each in self._taking], self._lock if self._waits else None)
        except BaseException:
            self._lock.release()
            raise
        if not self._waits:
            self._lock.release()
        return snapshot

    def stats(self) -> dict[str, Any]:
        """Sizes and choices of the matchers that are not flat, by kind."""
        return {kind: matcher.stats() for kind, matcher in self._others.items()}

    def matchers(self) -> dict[str, Matcher]:
        """The matchers by kind, the flat one first."""
        return {FLAT: self.flat, **self._others}

    def others(self) -> dict[str, Matcher]:
        """Those that are not flat, by kind."""
        return dict(self._others)

    def like(self, flat: Matcher, others: Mapping[str, Any]) -> Indexes:
        """One with other matchers, which know their numbers."""
        return Indexes(flat, self._make, {kind: (each, each.numbers()) for kind, each in others.items()})

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that are read as XML documents."""
        readers = self._readers
        if len(readers) == 1:
            return readers[0].document_paths()
        return tuple(dict.fromkeys(path for each in readers for path in each.document_paths()))

    def asking(self) -> TellsColumns | None:
        """What tells which attributes subscriptions ask for; None if some matcher does not."""
        if not self._others:
            return self.flat if isinstance(self.flat, TellsColumns) else None
        every = [each for each in self.matchers().values() if isinstance(each, TellsColumns)]
        if len(every) <= len(self._others):
            return None
        if self._tellers is None or self._tellers.parts != every:
            self._tellers = _Joint(every)
        return self._tellers

    def save(self, write: Write) -> None:
        """Write what the matchers are made of, if all of them can be saved: else all are made anew from texts."""
        every = [each for each in self.matchers().values() if isinstance(each, Persists)]
        if len(every) > len(self._others):
            for matcher in every:
                matcher.save(write)

    def _sorted(self, entries: Iterable[Entry]) -> dict[str, list[Entry]]:
        """Subscriptions by the kind of index that takes them."""
        found: dict[str, list[Entry]] = {}
        for entry in entries:
            found.setdefault(self._kind(entry), []).append(entry)
        return found

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
        found = self._others.get(kind)
        if found is None:
            found = self._make(kind)
            self._others = {**self._others, kind: found}  # others may be going through them
            self._learn_roles()
        return found

    def _learn_roles(self) -> None:
        """Ask the matchers what they can do: to ask that of a protocol takes long."""
        taking = [each if isinstance(each, TakesSnapshots) else _AsItIs(each) for each in self.matchers().values()]
        self._waits = any(isinstance(each, _AsItIs) for each in taking)
        """Whether some matcher takes no snapshots: then changes wait for matches."""
        self._taking: tuple[TakesSnapshots, ...] = tuple(taking)
        self._readers = tuple(each for each in self._others.values() if isinstance(each, ReadsDocuments))

    def _by_kind(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self._kind_of.get(number, FLAT), []).append(number)
        return found


class _AsItIs(Snapshot):
    """A matcher that takes no snapshots, in place of one."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def snapshot(self) -> Snapshot:
        return self

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return self._matcher.match(batch, form_of)


class _JointSnapshot(Snapshot):
    """Snapshots of several matchers, which hold different subscriptions."""

    def __init__(self, parts: Sequence[Snapshot], held: Any) -> None:
        self._parts = parts
        self._held = held
        self._is_quick = all(each.is_quick for each in parts)

    @property
    def is_quick(self) -> bool:
        return self._is_quick

    def release(self) -> None:
        if self._held is not None:
            self._held.release()

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        return joined([each.match(batch, form_of) for each in self._parts])

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        found = [_one_of(each, event, form_of) for each in self._parts]
        return reduce(OneMatch.joined, found)

    def parts_of(self, batch: EventBatch, form_of: FormOf) -> MatchPart:
        parts = [each.parts_of(batch, form_of) for each in self._parts]
        return lambda first, last: joined([each(first, last) for each in parts])


def _one_of(part: Snapshot, event: Event, form_of: FormOf) -> OneMatch:
    found = part.match_one(event, form_of)
    return OneMatch.of(part.parts_of(EventBatch.of((event,), (0,)), form_of)(0, 1)) if found is None else found


class _Joint:
    """What several matchers tell of their columns."""

    def __init__(self, parts: Sequence[TellsColumns]) -> None:
        self.parts = parts
        self._columns: tuple[Column, ...] = ()

    def columns(self) -> tuple[Column, ...]:
        found = tuple(dict.fromkeys(column for part in self.parts for column in part.columns()))
        if found != self._columns:
            self._columns = found
        return self._columns

    def flats(self) -> list[Flat]:
        return [flat for part in self.parts for flat in part.flats()]

    def paths(self) -> tuple[set[Path], list[int]]:
        told = [part.paths() for part in self.parts]
        return set().union(*(paths for paths, _ in told)), [number for _, verified in told for number in verified]


def joined(results: list[MatchResult]) -> MatchResult:
    """One answer of several, whose subscriptions are different ones, for the same events."""
    import numpy as np

    candidates = sum((each.candidates for each in results[1:]), results[0].candidates)
    errors = [error for each in results for error in each.errors]
    full = [each for each in results if len(each.numbers)]
    if len(full) < 2:
        found = full[0] if full else results[0]
        return MatchResult(found.offsets, found.numbers, candidates, errors)
    counts = [each.offsets[1:] - each.offsets[:-1] for each in full]
    offsets: NDArray[np.int64] = sum((each.offsets for each in full[1:]), full[0].offsets)
    numbers = np.empty(int(offsets[-1]), np.int32)
    begin = offsets[:-1].copy()
    for each, own in zip(full, counts, strict=True):
        numbers[np.repeat(begin - each.offsets[:-1], own) + np.arange(len(each.numbers))] = each.numbers
        begin += own
    return MatchResult(offsets, numbers, candidates, errors)


def _change(matcher: Matcher, entries: Collection[Entry], leaving: Collection[int]) -> None:
    if entries:
        matcher.add(entries, leaving)
    elif leaving:
        matcher.remove(leaving)


def _unavailable(kind: str) -> Matcher:
    raise UnavailableError(f"there is no index for subscriptions of the kind {kind!r}")
