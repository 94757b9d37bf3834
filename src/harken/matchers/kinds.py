"""One matcher per kind of index, and one answer of them all.

A compiled subscription carries a plan, and the plan says which kind of index holds it. Flat plans are all there are as
long as nobody subscribes in another way: then nothing is joined, and a match costs what the flat matcher's costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from harken.errors import LimitError, UnavailableError
from harken.events import Event, EventBatch
from harken.language.compiled import ProgramPlan
from harken.matchers.base import Entry, FormOf, Matcher, MatchResult, OneMatch, Trait
from harken.matchers.roles import AddsInBulk, MatchesOne, Persists, ReadsDocuments, TellsColumns, Write
from harken.matchers.sharing import match_shared, part_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.codes.columns import Column
    from harken.codes.flat import Flat
    from harken.schema.paths import Path

_Found = TypeVar("_Found")
FLAT, PROGRAMS, DOCUMENTS, OPERATORS = "flat", "programs", "documents", "operators"


class Indexes:
    """The matchers of an engine by kind. Changes come from one thread at a time; matching goes on in others."""

    def __init__(
        self,
        flat: Matcher,
        make: Callable[[str], Matcher] | None = None,
        others: Mapping[str, tuple[Matcher, Iterable[int]]] | None = None,
    ) -> None:
        """`make` makes the matcher of another kind when the first plan of that kind comes. Some may be there already,
        given with the numbers of their subscriptions.
        """
        self.flat = flat
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
        self._moves = 0
        """Odd while a change goes through several matchers: a match that meets one is made again."""

    @property
    def leaves_patterns(self) -> bool:
        """Whether subscriptions with patterns go to programs even where they have a normal form."""
        return self._leaves_patterns

    def add(self, entries: Collection[Entry], replaced: Collection[int] = ()) -> None:
        """Take subscriptions in place of others. Where all are of one kind, no match sees both."""
        if not self._kind_of and all(entry.compiled.plan.kind == FLAT for entry in entries):
            _change(self.flat, entries, replaced)
            return
        coming = self._sorted(entries)
        leaving = self._by_kind(replaced)
        matchers = {kind: self._of_kind(kind) for kind in coming.keys() | leaving.keys()}
        with self._moving(len(matchers) > 1):
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
        with self._moving(bool(leaving)):
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
        for kind, own in self._by_kind(numbers).items():
            self._of_kind(kind).remove(own)
            for number in own:
                self._kind_of.pop(number, None)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        """The subscriptions of any kind that are true of each event."""
        if not self._others:
            return self.flat.match(batch, form_of)
        return self._at_one_moment(
            lambda: joined([matcher.match(batch, form_of) for matcher in self.matchers().values()])
        )

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        """What one event matches, if all matchers have a quick way."""
        if not self._others:
            return self._quick[0].match_one(event, form_of) if self._quick else None
        return self._at_one_moment(lambda: self._match_one(event, form_of))

    def _match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        quick = self._quick
        found = quick[0].match_one(event, form_of) if quick else None
        for matcher in quick[1:]:
            one = None if found is None else matcher.match_one(event, form_of)
            found = None if found is None or one is None else found.joined(one)
        return found

    def match_shared(self, batch: EventBatch, form_of: FormOf, threads: int) -> list[tuple[EventBatch, MatchResult]]:
        """The same, part by part, with the events shared among threads, unless there are too few."""
        if threads <= 1 or len(batch) < 2 * threads:
            return [(batch, self.match(batch, form_of))]
        if not self._others:
            return match_shared(batch, threads, part_of(self.flat, batch, form_of))

        def shared() -> list[tuple[EventBatch, MatchResult]]:
            matches = [part_of(matcher, batch, form_of) for matcher in self.matchers().values()]
            return match_shared(batch, threads, lambda first, last: joined([each(first, last) for each in matches]))

        return self._at_one_moment(shared)

    def stats(self) -> dict[str, Any]:
        """Sizes and choices of the matchers that are not flat, by kind."""
        return {kind: matcher.stats() for kind, matcher in self._others.items()}

    @contextmanager
    def _moving(self, is_moving: bool) -> Iterator[None]:
        """A change of several matchers, if it is one."""
        self._moves += is_moving
        try:
            yield
        finally:
            self._moves += is_moving

    def _at_one_moment(self, search: Callable[[], _Found]) -> _Found:
        """What a search of several matchers finds while no change goes through them."""
        while True:
            before = self._moves
            found = search()
            if before == self._moves and not before % 2:
                return found

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
        quick = tuple(each for each in self.matchers().values() if isinstance(each, MatchesOne))
        self._quick: tuple[MatchesOne, ...] = quick if len(quick) > len(self._others) else ()
        """The matchers, if each has a quick way for one event."""
        self._readers = tuple(each for each in self._others.values() if isinstance(each, ReadsDocuments))

    def _by_kind(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self._kind_of.get(number, FLAT), []).append(number)
        return found


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
