"""One event against one snapshot of the index, without the arrays of a batch: they would cost most of the time."""

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

_CAREFUL = VERIFY | OVERLAPS


@dataclass(slots=True)
class EventCandidates:
    """The candidates of one event."""

    base: list[int]
    """Matches by rows of the base, each once."""
    recent: list[int]
    """Matches by recent rows."""
    careful: dict[int, int]
    """Subscriptions to verify or to make unique, each with the flags of all its rows."""
    examined: int
    stale: int
    """Number of stale candidates: a merge would save their verification."""

    def result(self, event: Event, form_of: FormOf, limits: Limits) -> OneMatch:
        """All matches, after verification."""
        errors: list[tuple[int, int, HarkenError]] = []
        for number, flags in self.careful.items():
            try:
                if not flags & VERIFY or is_match(form_of(number), event, limits):
                    self.recent.append(number)
            except HarkenError as error:
                errors.append((0, number, error))
        return OneMatch(self.base + self.recent, self.examined, errors)


def find_one(snapshot: ColumnarSnapshot, codes: NDArray[np.uint32]) -> EventCandidates | None:
    """The candidates of an event with one code per column. None if the index has middle layers or careful rows."""
    version = snapshot.version
    base = version.base
    if version.middles or base.layer.careful.rows:
        return None
    candidates = EventCandidates([], [], {}, 0, 0)
    for recent, rows in zip(version.recents, snapshot.rows, strict=True):
        if rows:
            _add_recent(candidates, recent.find_one(rows, snapshot.moment, codes))
    base.events += 1
    if base.layer.plain.rows:
        finder = base.take_finder(careful=False)
        try:
            candidates.base, examined = finder.find_one(codes, snapshot.deleted[0].plain)
        finally:
            base.give_back(finder, careful=False)
        candidates.examined += examined
    return candidates


def _add_recent(candidates: EventCandidates, entries: list[int]) -> None:
    candidates.examined += len(entries)
    for entry in entries:
        number = entry >> FLAG_BITS
        if entry & _CAREFUL:
            candidates.careful[number] = candidates.careful.get(number, 0) | entry
            candidates.stale += bool(entry & STALE)
        else:
            candidates.recent.append(number)
