"""Base of the papers' algorithms: subscriptions become rows of labels, and an index finds the rows that match an event.

A subclass has the index: how rows are added to it and removed, and which rows match an event with one label a column.
The rest is done here: flattening, labels, events with several values in a column (tested against every row, because no
paper's index supports them), verification of inexact rows, and statistics.

Changes and matching exclude each other: a batch is matched before a change or after it, never during one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.codes.encode import EncodedBatch
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.errors import HarkenError
from harken.events import EventBatch
from harken.language.capabilities import Capability
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.candidates import Candidates, settle
from harken_lab.papers.kernels.row_table import find_several
from harken_lab.papers.labelled_rows import LabelledRows

# Least number of rows that `bulk_share` is a share of.
_FEW = 4_096
# Least size of the result buffer; it always holds the rows of one event.
_ROOM = 1 << 16
UNLIMITED = 1 << 62
"""Replaces a limit while rows that were accepted before are inserted again."""


class RowSearch(NamedTuple):
    """Events to match, and the arrays that matching rows are written to."""

    codes: NDArray[np.uint32]
    """By column and event, a label."""
    first: int
    """The event to begin with."""
    out: NDArray[np.int32]
    offsets: NDArray[np.int64]
    """Where in `out` the rows of each event begin; `offsets[first]` is already set."""
    examined: NDArray[np.int64]
    """By event, how many rows, entries or nodes were examined."""


class RowMatcher(ABC):
    """A matcher that indexes rows of labels."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    bulk_share: int = 0
    """Rebuild once more than 1/bulk_share of the rows changed; 0 disables."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, widest: int = 0) -> None:
        self.limits = limits
        self.rows = LabelledRows(widest)
        self._lock = fork_lock(MATCHER)
        self._changes = 0
        self._events = 0
        self._examined = 0
        self._out = np.empty(_ROOM, np.int32)

    # For subclasses

    @abstractmethod
    def _insert(self, rows: NDArray[np.int32]) -> None:
        """Add rows, which are already in `self.rows`, to the index. Adds none if it raises a HarkenError."""

    @abstractmethod
    def _delete(self, rows: NDArray[np.int32]) -> None:
        """Remove rows from the index. They are still in `self.rows`."""

    @abstractmethod
    def _clear(self) -> None:
        """Empty the index. All rows are inserted again afterwards, because labels have changed."""

    @abstractmethod
    def _find(self, search: RowSearch) -> int:
        """Write the rows that match each event from `first` on, where they end, and how many rows were examined.

        Returns the first event for which `out` has no room for all rows of the index, or the number of events.
        """

    @abstractmethod
    def _memory(self) -> dict[str, int]:
        """The bytes of each structure of the index."""

    def _details(self) -> dict[str, Any]:
        """Further facts about the index, for `stats`."""
        return {}

    # The matcher

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        forms = ((entry.number, entry.compiled.normal_form) for entry in entries)
        self.add_flat(Flat.of_forms(forms), replaced)

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """As `add`, with subscriptions that are flattened already."""
        with self._lock:
            before = self.rows.count
            rows, has_moved = self.rows.add(flat)
            self._changes += len(rows)
            is_rebuild = has_moved or before == 0 or self._changes * self.bulk_share > max(before, _FEW)
            try:
                if is_rebuild:
                    self._insert_all()
                else:
                    self._insert(rows)
            except BaseException as error:
                self.rows.take_back(rows)
                # A HarkenError leaves the index unchanged. After any other exception its state is unknown.
                if is_rebuild or not isinstance(error, HarkenError):
                    self._without_limits(self._insert_all)
                raise
            self._remove(replaced)

    def _insert_all(self) -> None:
        self._clear()
        self._insert(self.rows.alive())
        self._changes = 0

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for subscriptions that were accepted before. Limits are lifted: a rebuilt index may be larger."""
        self._without_limits(lambda: self.add(entries))

    def _without_limits(self, change: Callable[[], None]) -> None:
        limits = self.limits
        self.limits = replace(limits, max_tree_nodes=UNLIMITED, max_matrix_bytes=UNLIMITED)
        try:
            change()
        finally:
            self.limits = limits

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._remove(numbers)

    def _remove(self, numbers: Iterable[int]) -> None:
        rows = self.rows.of(numbers)
        if len(rows):
            self._delete(rows)
            self.rows.remove(rows)
            self._changes += len(rows)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        with self._lock:
            encoded = self.rows.encode(batch)
            offsets, rows, examined = self._find_rows(encoded)
            if len(encoded.several):
                offsets, rows = self._with_several(offsets, rows, encoded)
                examined[encoded.several] += self.rows.count
            candidates = Candidates(offsets, self.rows.numbers[rows], self._doubtful(rows, offsets, encoded.several))
            self._events += len(batch)
            self._examined += int(examined.sum())
            repeats = self.rows.repeats
        result = settle(candidates, batch, form_of, self.limits, repeats=repeats)
        result.candidates = examined
        return result

    def stats(self) -> dict[str, Any]:
        with self._lock:
            memory = self._memory() | {
                "rows": self.rows.nbytes,
                "labels": sum(each.nbytes for each in self.rows.dictionaries),
            }
            return {
                "subscriptions": len(np.unique(self.rows.numbers[self.rows.alive()])),
                "rows": self.rows.count,
                "predicates": self.rows.predicates,
                "bytes": sum(memory.values()),
                "memory": memory,
                "events": self._events,
                "examined": self._examined,
                **self._details(),
            }

    # The steps of matching, for benchmarks

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch of events in the labels of this matcher."""
        return self.rows.encode(batch)

    def numbers_of(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The subscriptions of rows that `find` returned."""
        return self.rows.numbers[rows]

    def find(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Find the rows that match events with one label a column. Returns offsets by event, and rows.

        The rows are in a buffer that the next call reuses.
        """
        offsets, rows, _ = self._find_rows(encoded)
        return offsets, rows

    def _find_rows(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """As `find`. Returns also how many rows were examined for each event."""
        events = encoded.codes.shape[1]
        offsets, examined = np.zeros(events + 1, np.int64), np.zeros(events, np.int64)
        done = 0
        while True:
            if len(self._out) - offsets[done] < self.rows.count:
                larger = np.empty(2 * len(self._out) + self.rows.count, np.int32)
                larger[: offsets[done]] = self._out[: offsets[done]]
                self._out = larger
            done = self._find(RowSearch(encoded.codes, done, self._out, offsets, examined))
            if done == events:
                return offsets, self._out[: offsets[-1]], examined

    def _with_several(
        self, offsets: NDArray[np.int64], rows: NDArray[np.int32], encoded: EncodedBatch
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Add the rows that may match events with several labels in a column. Returns new offsets and rows."""
        alive = self.rows.alive()
        parts: list[NDArray[np.int32]] = []
        more = np.zeros(len(offsets), np.int64)
        behind = 0
        for place, event in enumerate(encoded.several.tolist()):
            matching = np.empty(len(alive), np.int32)
            end = find_several(
                self.rows.table, alive, encoded.starts, encoded.values, len(encoded.codes), place, matching, 0
            )
            parts += [rows[behind : offsets[event + 1]], matching[:end]]
            behind = int(offsets[event + 1])
            more[event + 1] = end
        return offsets + np.cumsum(more), np.concatenate([*parts, rows[behind:]])

    def _doubtful(
        self, rows: NDArray[np.int32], offsets: NDArray[np.int64], several: NDArray[np.int32]
    ) -> NDArray[np.bool_] | None:
        """For each candidate, whether it must be verified; None if none must be."""
        if not len(several) and not self.rows.inexact_count:
            return None
        doubtful: NDArray[np.bool_] = self.rows.inexact[rows]
        for event in several.tolist():
            doubtful[offsets[event] : offsets[event + 1]] = True
        return doubtful
