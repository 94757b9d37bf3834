"""One batch of events against one snapshot of the index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode import EncodedBatch
from harken.errors import HarkenError
from harken.events import EventBatch
from harken.kernels.columnar import fill_reserved
from harken.kernels.delta import OVERLAPS, STALE, VERIFY
from harken.kernels.several import EventCodes
from harken.limits import Limits
from harken.matchers.base import FormOf, MatchResult
from harken.matchers.candidates import Candidates, join, settle
from harken.matchers.columnar.buffers import Buffers
from harken.matchers.columnar.recent import Recent
from harken.matchers.columnar.search import LayerDeletions, SearchableLayer
from harken.matchers.columnar.versions import ColumnarSnapshot


class Match:
    """One batch against one snapshot: `find` finds candidates, `result` verifies and adds the base's."""

    def __init__(self, snapshot: ColumnarSnapshot, encoded: EncodedBatch, batch: EventBatch, buffers: Buffers) -> None:
        self._snapshot = snapshot
        self._version = snapshot.version
        self._batch = batch
        self._buffers = buffers
        self._encoded = encoded
        self._codes = encoded.codes
        self._events = encoded.codes.shape[1]
        self._skipped = np.zeros(self._events, np.bool_)
        if len(encoded.several):
            self._skipped[encoded.several] = True
        self._examined = np.zeros(self._events, np.int64)
        self._exact: list[Candidates] = []
        self._careful: list[Candidates] = []

    def find(self) -> int:
        """Find all candidates except those of the base that need no verification.

        Returns the number of stale candidates: a merge would save their verification.
        """
        stale = 0
        for searched, deleted in zip(self._version.layers, self._snapshot.deleted, strict=True):
            searched.events += self._events
            if len(searched.layer.careful):
                candidates = self._search(searched, deleted, careful=True)
                self._careful.append(
                    Candidates(candidates.offsets, candidates.numbers, searched.doubtful(candidates.numbers))
                )
                stale += searched.count_stale(candidates.numbers)
        for middle, deleted in zip(self._version.middles, self._snapshot.deleted[1:], strict=True):
            self._exact.append(self._search(middle.searched, deleted, careful=False))
        for recent, rows in zip(self._version.recents, self._snapshot.rows, strict=True):
            if rows and len(self._encoded.several) < self._events:
                stale += self._find_recent(recent, rows)
        if len(self._encoded.several):
            stale += self._find_several()
        return stale

    def result(self, form_of: FormOf, limits: Limits) -> MatchResult:
        """All matches. Call `find` first."""
        errors: list[tuple[int, int, HarkenError]] = []
        if self._careful:
            settled = settle(join(self._careful), self._batch, form_of, limits)
            self._exact.append(Candidates(settled.offsets, settled.numbers))
            errors = settled.errors
        parts = [candidates for candidates in self._exact if len(candidates.numbers)]
        if len(parts) == 1 and not len(self._version.base.layer.plain):
            return MatchResult(parts[0].offsets, parts[0].numbers, self._examined, errors)
        offsets, numbers = self._with_base(parts)
        return MatchResult(offsets, numbers, self._examined, errors)

    def _with_base(self, parts: list[Candidates]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """All matches by event: first those of `parts`, then those of the base."""
        base, deleted = self._version.base, self._snapshot.deleted[0]
        offsets = np.zeros(self._events + 1, np.int64)
        if not parts and not len(base.layer.plain):
            return offsets, np.empty(0, np.int32)
        reserved = np.zeros(self._events, np.int64)
        for part in parts:
            reserved += np.diff(part.offsets)
        if len(base.layer.plain):
            with base.finder(careful=False) as finder:
                numbers, examined = finder.find(
                    self._encoded, self._skipped, offsets, self._buffers, deleted.plain, reserved
                )
            self._examined += examined
        else:
            np.cumsum(reserved, out=offsets[1:])
            numbers = np.empty(offsets[-1], np.int32)
        filled = np.zeros(self._events, np.int64)
        for part in parts:
            fill_reserved(offsets, filled, part.offsets, part.numbers, numbers)
        return offsets, numbers

    def _search(self, searched: SearchableLayer, deleted: LayerDeletions, careful: bool) -> Candidates:
        offsets = np.zeros(self._events + 1, np.int64)
        deletions = deleted.careful if careful else deleted.plain
        with searched.finder(careful=careful) as finder:
            numbers, examined = finder.find(self._encoded, self._skipped, offsets, self._buffers, deletions)
            self._examined += examined
            return Candidates(offsets, numbers)

    def _find_recent(self, recent: Recent, rows: int) -> int:
        """Find matches in recent rows. Returns the number of stale ones."""
        offsets, numbers, flags = recent.find(rows, self._snapshot.moment, self._codes, self._skipped)
        if not len(numbers):
            return 0
        self._examined += np.diff(offsets)
        is_careful = flags & (VERIFY | OVERLAPS) != 0
        if not is_careful.any():
            self._exact.append(Candidates(offsets, numbers))
            return 0
        self._exact.append(_part(offsets, numbers, ~is_careful))
        part = _part(offsets, numbers, is_careful)
        self._careful.append(Candidates(part.offsets, part.numbers, flags[is_careful] & VERIFY != 0))
        return int(np.count_nonzero(flags & STALE))

    def _find_several(self) -> int:
        """Find candidates, all doubtful, of events with several values. Returns the number of stale ones."""
        encoded, snapshot = self._encoded, self._snapshot
        stale, several = 0, len(encoded.several)
        if any(len(searched.layer) for searched in self._version.layers):
            self._add_doubtful(*self._several_in_layers())
        for recent, rows in zip(self._version.recents, snapshot.rows, strict=True):
            if rows:
                ends, numbers = recent.find_several(rows, snapshot.moment, encoded.starts, encoded.values, several)
                self._add_doubtful(ends, numbers)
                stale += recent.count_stale(rows, numbers)
        return stale

    def _add_doubtful(self, ends: NDArray[np.int64], numbers: NDArray[np.int32]) -> None:
        """Add candidates, all doubtful, of events with several values. `ends` has the end of each event's."""
        if not len(numbers):
            return
        counts = np.zeros(self._events, np.int64)
        counts[self._encoded.several] = ends[1:] - ends[:-1]
        self._examined += counts
        offsets = np.zeros(self._events + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        self._careful.append(Candidates(offsets, numbers, np.ones(len(numbers), np.bool_)))

    def _several_in_layers(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        encoded, layers = self._encoded, list(zip(self._version.layers, self._snapshot.deleted, strict=True))
        event_codes = EventCodes(encoded.starts, encoded.values, len(self._codes))
        ends = np.zeros(len(encoded.several) + 1, np.int64)
        out = np.empty(1_024, np.int32)
        numbers: list[NDArray[np.int32]] = []
        for place in range(len(encoded.several)):
            while True:
                end = 0
                for searched, deleted in layers:
                    if end >= 0:
                        end = searched.find_several(deleted, event_codes, place, out, end)
                if end >= 0:
                    break
                out = np.empty(2 * len(out), np.int32)
            numbers.append(out[:end].copy())
            ends[place + 1] = ends[place] + end
        return ends, np.concatenate(numbers)


def _part(offsets: NDArray[np.int64], numbers: NDArray[np.int32], wanted: NDArray[np.bool_]) -> Candidates:
    """The wanted numbers, by event."""
    kept_before = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(wanted, out=kept_before[1:])
    return Candidates(kept_before[offsets], numbers[wanted])
