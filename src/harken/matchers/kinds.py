"""One matcher per kind of index, and one answer of them all.

A compiled subscription carries a plan, and the plan says which kind of index holds it. Flat plans are all there are as
long as nobody subscribes in another way: then nothing is joined, and a match costs what the flat matcher's costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from harken.errors import UnavailableError
from harken.events import Event, EventBatch
from harken.matchers.base import Entry, FormOf, Matcher, MatchResult, OneMatch
from harken.matchers.roles import MatchesOne
from harken.matchers.sharing import match_shared

FLAT = "flat"


class Indexes:
    """The matchers of an engine by kind. Changes come from one thread at a time; matching goes on in others."""

    def __init__(self, flat: Matcher, make: Callable[[str], Matcher] | None = None) -> None:
        """`make` makes the matcher of another kind when the first plan of that kind comes."""
        self.flat = flat
        self._one = flat if isinstance(flat, MatchesOne) else None
        self._make = make or _unavailable
        self._others: dict[str, Matcher] = {}
        self._kind_of: dict[int, str] = {}
        """The kind of each subscription that is not flat, by its number."""

    def add(self, entries: Collection[Entry], replaced: Collection[int] = ()) -> None:
        """Take subscriptions in place of others. Where all are of one kind, no match sees both."""
        if not self._kind_of and all(entry.compiled.plan.kind == FLAT for entry in entries):
            _change(self.flat, entries, replaced)
            return
        coming: dict[str, list[Entry]] = {}
        for entry in entries:
            coming.setdefault(entry.compiled.plan.kind, []).append(entry)
        leaving = self._by_kind(replaced)
        matchers = {kind: self._of_kind(kind) for kind in coming}
        # What comes is added first, so that an id which changes its kind is found by one index or by both.
        for kind in sorted(coming.keys() | leaving.keys(), key=lambda kind: kind not in coming):
            _change(matchers.get(kind) or self._of_kind(kind), coming.get(kind, ()), leaving.get(kind, ()))
        for number in replaced:
            self._kind_of.pop(number, None)
        for kind, own in coming.items():
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
        found = self.flat.match(batch, form_of)
        return self._with_others(batch, found, form_of) if self._others else found

    def match_one(self, event: Event, form_of: FormOf) -> OneMatch | None:
        """What one event matches, if the flat matcher has a quick way and there are no other kinds."""
        return None if self._one is None or self._others else self._one.match_one(event, form_of)

    def match_shared(self, batch: EventBatch, form_of: FormOf, threads: int) -> list[tuple[EventBatch, MatchResult]]:
        """The same, part by part, with the events shared among threads."""
        parts = match_shared(self.flat, batch, form_of, threads)
        if not self._others:
            return parts
        return [(part, self._with_others(part, found, form_of)) for part, found in parts]

    def stats(self) -> dict[str, Any]:
        """Sizes and choices of the matchers that are not flat, by kind."""
        return {kind: matcher.stats() for kind, matcher in self._others.items()}

    def _with_others(self, batch: EventBatch, found: MatchResult, form_of: FormOf) -> MatchResult:
        return joined([found, *(matcher.match(batch, form_of) for matcher in self._others.values())])

    def _of_kind(self, kind: str) -> Matcher:
        if kind == FLAT:
            return self.flat
        found = self._others.get(kind)
        if found is None:
            found = self._make(kind)
            self._others = {**self._others, kind: found}  # others may be going through them
        return found

    def _by_kind(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self._kind_of.get(number, FLAT), []).append(number)
        return found


def joined(results: list[MatchResult]) -> MatchResult:
    """One answer of several, whose subscriptions are different ones, for the same events."""
    import numpy as np

    counts = [np.diff(each.offsets) for each in results]
    offsets = np.zeros(len(counts[0]) + 1, np.int64)
    np.cumsum(sum(counts), out=offsets[1:])
    numbers = np.empty(int(offsets[-1]), np.int32)
    begin = offsets[:-1].copy()
    for each, own in zip(results, counts, strict=True):
        numbers[np.repeat(begin - each.offsets[:-1], own) + np.arange(len(each.numbers))] = each.numbers
        begin += own
    candidates = np.sum([each.candidates for each in results], axis=0)
    return MatchResult(offsets, numbers, candidates, [error for each in results for error in each.errors])


def _change(matcher: Matcher, entries: Collection[Entry], leaving: Collection[int]) -> None:
    if entries:
        matcher.add(entries, leaving)
    elif leaving:
        matcher.remove(leaving)


def _unavailable(kind: str) -> Matcher:
    raise UnavailableError(f"there is no index for subscriptions of the kind {kind!r}")
