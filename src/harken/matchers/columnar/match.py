"""One batch of events against one version of the index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.events import EventBatch
from harken.kernels.columnar import fill_reserved
from harken.kernels.several import Values
from harken.limits import Limits
from harken.matchers.base import FormOf, MatchResult
from harken.matchers.candidates import Candidates, join, settle
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.recent import Recent
from harken.matchers.columnar.search import Searched
from harken.matchers.columnar.versions import Version
from harken.segments.encode import EncodedBatch


class Match:
    """One batch against one version."""

    def __init__(
        self,
        version: Version,
        recent_rows: list[int],
        encoded: EncodedBatch,
        batch: EventBatch,
        form_of: FormOf,
        limits: Limits,
        buffers: Buffers,
    ) -> None:
        self._version = version
        self._recent_rows = recent_rows
        """How many rows of each recent part were there when the match began."""
        self._batch = batch
        self._form_of = form_of
        self._limits = limits
        self._buffers = buffers
        self._codes = encoded.codes
        self._encoded = encoded
        self._events = encoded.codes.shape[1]
        self._skipped = np.zeros(self._events, np.bool_)
        self._skipped[encoded.several] = True
        self._examined = np.zeros(self._events, np.int64)

    def result(self) -> MatchResult:
        exact: list[Candidates] = []
        careful: list[Candidates] = []
        for searched in self._version.layers:
            searched.events += self._events
            if len(searched.layer.careful):
                careful.append(self._find_careful(searched))
        for each in self._version.middles:
            exact.append(self._found(each.searched, careful=False))
        for recent, rows in zip(self._version.recents, self._recent_rows, strict=True):
            if rows:
                self._find_recent(recent, rows, exact, careful)
        if len(self._encoded.several):
            careful.append(self._find_several())
        errors = []
        if careful:
            settled = settle(join(careful), self._batch, self._form_of, self._limits)
            exact.append(Candidates(settled.offsets, settled.numbers))
            errors = settled.errors
        offsets, numbers = self._with_base([each for each in exact if len(each.numbers)])
        return MatchResult(offsets, numbers, self._examined, errors)

    def _with_base(self, parts: list[Candidates]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """All numbers: those of the base, and in front of them, event by event, the others."""
        reserved = np.zeros(self._events, np.int64)
        for part in parts:
            reserved += np.diff(part.offsets)
        base = self._version.base
        offsets = np.zeros(self._events + 1, np.int64)
        with base.finder(careful=False) as finder:
            numbers, examined = finder.find(
                self._encoded, self._skipped, offsets, self._buffers, base.dead > 0, reserved
            )
        self._examined += examined
        filled = np.zeros(self._events, np.int64)
        for part in parts:
            fill_reserved(offsets, filled, part.offsets, part.numbers, numbers)
        return offsets, numbers

    def _found(self, searched: Searched, careful: bool) -> Candidates:
        offsets = np.zeros(self._events + 1, np.int64)
        with searched.finder(careful=careful) as finder:
            numbers, examined = finder.find(self._encoded, self._skipped, offsets, self._buffers, searched.dead > 0)
            self._examined += examined
            return Candidates(offsets, numbers)

    def _find_careful(self, searched: Searched) -> Candidates:
        found = self._found(searched, careful=True)
        return Candidates(found.offsets, found.numbers, searched.doubtful(found.numbers))

    def _find_recent(self, recent: Recent, rows: int, exact: list[Candidates], careful: list[Candidates]) -> None:
        offsets, numbers, verify, overlaps = recent.find(rows, self._codes, self._skipped)
        self._examined += np.diff(offsets)
        again = verify | overlaps
        if not again.any():
            exact.append(Candidates(offsets, numbers))
            return
        exact.append(_part(offsets, numbers, ~again))
        part = _part(offsets, numbers, again)
        careful.append(Candidates(part.offsets, part.numbers, verify[again]))

    def _find_several(self) -> Candidates:
        """What may match the events that have several values in some column, all in doubt."""
        encoded = self._encoded
        given = Values(encoded.starts, encoded.values, len(self._codes))
        counts = np.zeros(self._events + 1, np.int64)
        out = np.empty(1_024, np.int32)
        found: list[NDArray[np.int32]] = []
        for place, event in enumerate(encoded.several.tolist()):
            end = -1
            while True:
                end = 0
                for searched in self._version.layers:
                    if end >= 0:
                        end = searched.find_several(given, place, out, end)
                for recent, rows in zip(self._version.recents, self._recent_rows, strict=True):
                    if end >= 0:
                        end = recent.find_several(rows, given, place, out, end)
                if end >= 0:
                    break
                out = np.empty(2 * len(out), np.int32)
            found.append(out[:end].copy())
            counts[event + 1] = end
        self._examined += counts[1:]
        numbers = np.concatenate(found)
        return Candidates(np.cumsum(counts), numbers, np.ones(len(numbers), np.bool_))


def _part(offsets: NDArray[np.int64], numbers: NDArray[np.int32], wanted: NDArray[np.bool_]) -> Candidates:
    """The numbers that are wanted, by event."""
    kept = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(wanted, out=kept[1:])
    return Candidates(kept[offsets], numbers[wanted])
