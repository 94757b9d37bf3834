"""From candidates to matches: what the index has decided passes, the rest is verified, and each number comes once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.errors import HarkenError
from harken.events import Event, EventBatch
from harken.limits import Limits
from harken.matchers.base import FormOf, MatchResult
from harken.matchers.verify import is_match


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of events and subscriptions: those of event i are `numbers[offsets[i] : offsets[i + 1]]`."""

    offsets: NDArray[np.int64]
    numbers: NDArray[np.int32]
    doubtful: NDArray[np.bool_] | None = None
    """For each pair, whether it has to be verified; None if no pair has to be."""

    def events(self) -> NDArray[np.int64]:
        """The event of each pair."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def distinct(self) -> Candidates:
        """Each pair once. It is doubtful only if all its duplicates are."""
        if not len(self.numbers):
            return self
        doubtful = np.zeros(len(self.numbers), np.bool_) if self.doubtful is None else self.doubtful
        keys = np.sort(self.events() << 33 | self.numbers.astype(np.int64) << 1 | doubtful)
        is_first = np.ones(len(keys), np.bool_)
        is_first[1:] = keys[1:] >> 1 != keys[:-1] >> 1
        kept = keys[is_first]
        offsets = np.searchsorted(kept >> 33, np.arange(len(self.offsets))).astype(np.int64)
        numbers = (kept >> 1 & 0xFFFFFFFF).astype(np.int32)
        return Candidates(offsets, numbers, None if self.doubtful is None else (kept & 1).astype(np.bool_))


def join(parts: list[Candidates]) -> Candidates:
    """The candidates of several indexes for the same events."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(np.concatenate([part.events() for part in parts]), kind="stable")
    doubts = [np.zeros(len(part.numbers), np.bool_) if part.doubtful is None else part.doubtful for part in parts]
    doubtful = np.concatenate(doubts)[order] if any(part.doubtful is not None for part in parts) else None
    offsets: NDArray[np.int64] = np.sum([part.offsets for part in parts], axis=0)
    return Candidates(offsets, numbers[order], doubtful)


def settle(
    candidates: Candidates, batch: EventBatch, form_of: FormOf, limits: Limits, *, repeats: bool = True
) -> MatchResult:
    """Verify doubtful candidates. `repeats` says whether a number may occur twice for one event."""
    if repeats:
        candidates = candidates.distinct()
    offsets, numbers, doubtful = candidates.offsets, candidates.numbers, candidates.doubtful
    examined = np.diff(offsets)
    if doubtful is None or not doubtful.any():
        return MatchResult(offsets, numbers, examined)
    events = candidates.events()
    passed = ~doubtful
    errors: list[tuple[int, int, HarkenError]] = []
    last, event = -1, None
    for pair in np.flatnonzero(doubtful).tolist():
        index, number = int(events[pair]), int(numbers[pair])
        if event is None or index != last:  # some batches make an event at each access
            last, event = index, batch[index]
        passed[pair] = _verified(form_of, event, index, number, limits, errors)
    kept = np.zeros(len(offsets), np.int64)
    np.cumsum(np.bincount(events[passed], minlength=len(examined)), out=kept[1:])
    return MatchResult(kept, numbers[passed], examined, errors)


def _verified(
    form_of: FormOf,
    event: Event,
    index: int,
    number: int,
    limits: Limits,
    errors: list[tuple[int, int, HarkenError]],
) -> bool:
    try:
        return is_match(form_of(number), event, limits)
    except HarkenError as error:
        errors.append((index, number, error))
        return False
