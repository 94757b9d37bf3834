"""One event against one snapshot of the index: with lists in place of arrays, which cost more than they save here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode_one import of_one
from harken.errors import HarkenError
from harken.events import Event
from harken.kernels.delta import FLAG_BITS, OVERLAPS, STALE, VERIFY
from harken.limits import Limits
from harken.matchers.base import FormOf, MatchResult
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.versions import Snapshot
from harken.matchers.verify import is_match

_NOT_SKIPPED = np.zeros(1, np.bool_)
_AGAIN = VERIFY | OVERLAPS


@dataclass(slots=True)
class Found:
    """What was found for an event."""

    numbers: list[int]
    """The subscriptions that match, each once."""
    again: dict[int, int]
    """Subscriptions to look at again, with the flags of their rows together."""
    candidates: int
    stale: int
    """How many have to be verified only because codes do not know their constants."""

    def result(self, event: Event, form_of: FormOf, limits: Limits) -> MatchResult:
        """All matches, after those in doubt are verified."""
        errors: list[tuple[int, int, HarkenError]] = []
        for number, flags in self.again.items():
            try:
                if not flags & VERIFY or is_match(form_of(number), event, limits):
                    self.numbers.append(number)
            except HarkenError as error:
                errors.append((0, number, error))
        numbers = np.array(self.numbers, np.int32)
        return MatchResult(np.array([0, len(numbers)]), numbers, np.array([self.candidates]), errors)


def find_one(snapshot: Snapshot, codes: NDArray[np.uint32], buffers: Buffers) -> Found | None:
    """What matches an event that has one code a column. None for indexes with layers or rows in doubt beside it."""
    version = snapshot.version
    base = version.base
    if version.middles or len(base.layer.careful):
        return None
    found = Found([], {}, 0, 0)
    for recent, rows in zip(version.recents, snapshot.rows, strict=True):
        if rows:
            _add_recent(found, recent.find_one(rows, snapshot.moment, codes))
    base.events += 1
    if len(base.layer.plain):
        offsets, deleted = np.zeros(2, np.int64), snapshot.deleted[0]
        dead = deleted.plain if deleted.rows else None
        with base.finder(careful=False) as finder:
            numbers, examined = finder.find(of_one(codes), _NOT_SKIPPED, offsets, buffers, dead)
        found.numbers += numbers.tolist()
        found.candidates += int(examined[0])
    return found


def _add_recent(found: Found, entries: list[int]) -> None:
    found.candidates += len(entries)
    for entry in entries:
        number = entry >> FLAG_BITS
        if entry & _AGAIN:
            found.again[number] = found.again.get(number, 0) | entry
            found.stale += bool(entry & STALE)
        else:
            found.numbers.append(number)
