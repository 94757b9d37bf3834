"""One event against one snapshot of the index, without the arrays that a batch needs: they would cost most of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.errors import HarkenError
from harken.events import Event
from harken.kernels.delta import FLAG_BITS, OVERLAPS, STALE, VERIFY
from harken.limits import Limits
from harken.matchers.base import FormOf, OneMatch
from harken.matchers.columnar.versions import ColumnarSnapshot
from harken.matchers.verify import is_match

_AGAIN = VERIFY | OVERLAPS


@dataclass(slots=True)
class Found:
    """What was found for an event."""

    based: list[int]
    """The subscriptions that match by the base, each once."""
    recent: list[int]
    """Those that match by recent rows."""
    again: dict[int, int]
    """Subscriptions to look at again, with the flags of their rows together."""
    candidates: int
    stale: int
    """How many have to be verified only because codes do not know their constants."""

    def result(self, event: Event, form_of: FormOf, limits: Limits) -> OneMatch:
        """All matches, after those in doubt are verified."""
        errors: list[tuple[int, int, HarkenError]] = []
        for number, flags in self.again.items():
            try:
                if not flags & VERIFY or is_match(form_of(number), event, limits):
                    self.recent.append(number)
            except HarkenError as error:
                errors.append((0, number, error))
        return OneMatch(self.based + self.recent, self.candidates, errors)


def find_one(snapshot: ColumnarSnapshot, codes: NDArray[np.uint32]) -> Found | None:
    """What matches an event that has one code a column. None for indexes with layers or rows in doubt beside it."""
    version = snapshot.version
    base = version.base
    if version.middles or base.layer.careful.rows:
        return None
    found = Found([], [], {}, 0, 0)
    for recent, rows in zip(version.recents, snapshot.rows, strict=True):
        if rows:
            _add_recent(found, recent.find_one(rows, snapshot.moment, codes))
    base.events += 1
    if base.layer.plain.rows:
        finder = base.take_finder(careful=False)
        try:
            found.based, examined = finder.find_one(codes, snapshot.deleted[0].plain)
        finally:
            base.give_back(finder, careful=False)
        found.candidates += examined
    return found


def _add_recent(found: Found, entries: list[int]) -> None:
    found.candidates += len(entries)
    for entry in entries:
        number = entry >> FLAG_BITS
        if entry & _AGAIN:
            found.again[number] = found.again.get(number, 0) | entry
            found.stale += bool(entry & STALE)
        else:
            found.recent.append(number)
