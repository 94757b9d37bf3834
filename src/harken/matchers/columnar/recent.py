"""Rows added since the last merge, in chains by key and in the codes of the base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken.codes.conjunctions import Conjunctions
from harken.codes.flat import Flat, joined
from harken.kernels.delta import (
    FLAG_BITS,
    NEVER,
    NO_ROW,
    OVERLAPS,
    STALE,
    VERIFY,
    RecentRows,
    append,
    append_one,
    find_in_delta,
    find_several_in_delta,
)
from harken.kernels.frozen import frozen
from harken.language.normal_form import NormalForm
from harken.matchers.columnar.coded_rows import rows_of

CodedPredicate = tuple[int, int, int, int]
"""The place of a column, the lowest and the highest code that is admitted, and the greatest code of the column."""

_CHAINS = 1 << 13
_PREDICATES_A_ROW = 6
_FIRST_ROWS = 256
_NOT_SKIPPED = np.zeros(1, np.bool_)


class Recent:
    """A growing set of rows. One thread appends and removes; others may read meanwhile."""

    def __init__(self, columns: int) -> None:
        self._flats: list[tuple[int, Flat]] = []
        """Rows with their constants, and the number of the first one."""
        self._forms: dict[int, tuple[int, NormalForm]] = {}
        """The subscriptions of rows that were added one by one, by row."""
        self._keep(_empty(columns, _FIRST_ROWS, _FIRST_ROWS * _PREDICATES_A_ROW))
        self._rows = 0
        self._row_of: dict[int, int] = {}
        """The first row of each subscription. A list for each would burden the garbage collector."""
        self._more_rows_of: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, without free space."""
        delta = self._delta
        arrays = sum(array.nbytes for array in delta) - delta.by_value.nbytes
        return arrays * self._rows // len(delta.numbers)

    def flat(self) -> Flat:
        """The rows that are not removed, with their constants."""
        alive = self._delta.left[: self._rows] == NEVER  # row by row: a number may have been used twice
        parts = [flat.only(alive[first : first + len(flat)]) for first, flat in self._flats]
        forms = [entry for row, entry in list(self._forms.items()) if alive[row]]
        return joined([*parts, Flat.of_forms(forms)])

    def add(self, flat: Flat, coded: Conjunctions, place_of: NDArray[np.int32], columns: int) -> None:
        """Append rows. `place_of` has the place of each coded column among all columns."""
        rows = rows_of(coded)
        self._make_room(len(rows), len(rows.columns), columns)
        append(
            self._delta, self._rows, rows.starts, rows.columns, rows.low, rows.high, rows.tops, place_of,
            coded.numbers, _flags(flat, coded),
        )  # fmt: skip
        for row, number in enumerate(coded.numbers.tolist(), self._rows):
            if self._row_of.setdefault(number, row) != row:
                self._more_rows_of.setdefault(number, []).append(row)
        self._flats.append((self._rows, flat))
        self._rows += len(rows)

    def add_form(self, number: int, form: NormalForm, coded: list[CodedPredicate], exact: bool, columns: int) -> None:
        """Append one row, given as its predicates in codes."""
        self._make_room(1, len(coded), columns)
        predicates = np.array(coded, np.int64).reshape(-1, 4)
        append_one(self._delta, self._rows, predicates, number, 0 if exact else VERIFY | STALE)
        self._row_of[number] = self._rows
        self._forms[self._rows] = (number, form)
        self._rows += 1

    def remove(self, number: int, moment: int) -> bool:
        """Remove a subscription as of a moment: earlier matches still see it. Returns whether it was here."""
        first = self._row_of.pop(number, None)
        if first is None:
            return False
        for row in (first, *self._more_rows_of.pop(number, ())):
            self._delta.left[row] = moment
        return True

    def find(
        self, rows: int, moment: int, codes: NDArray[np.uint32], skipped: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """The matching rows: their offsets by event, numbers and flags.

        Searches the first `rows` rows, as they were at `moment`.
        """
        offsets = np.zeros(codes.shape[1] + 1, np.int64)
        out = np.empty(max(256, 4 * codes.shape[1]), np.int64)
        readable, first = self._readable, 0
        while True:
            first = find_in_delta(readable[1], rows, moment, codes, skipped, first, out, offsets)
            if first == codes.shape[1]:
                break
            out = np.concatenate([out, np.empty(max(len(out), rows), np.int64)])
        entries = out[: offsets[-1]]
        return offsets, (entries >> FLAG_BITS).astype(np.int32), entries & (1 << FLAG_BITS) - 1

    def find_one(self, rows: int, moment: int, codes: NDArray[np.uint32]) -> list[int]:
        """The matching rows of one event: each its number, shifted, with the flags in the low bits."""
        offsets = np.zeros(2, np.int64)
        out = np.empty(_FIRST_ROWS, np.int64)
        readable = self._readable
        if find_in_delta(readable[1], rows, moment, codes, _NOT_SKIPPED, 0, out, offsets) == 0:
            out = np.empty(rows, np.int64)
            find_in_delta(readable[1], rows, moment, codes, _NOT_SKIPPED, 0, out, offsets)
        entries: list[int] = out[: offsets[1]].tolist()
        return entries

    def find_several(
        self, rows: int, moment: int, starts: NDArray[np.int64], values: NDArray[np.uint32], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The rows that may match each of `count` events with several values: offsets and numbers."""
        offsets = np.zeros(count + 1, np.int64)
        out = np.empty(max(_FIRST_ROWS, 8 * count), np.int32)
        readable, first = self._readable, 0
        while True:
            first = find_several_in_delta(readable[1], starts, values, count, rows, moment, first, out, offsets)
            if first == count:
                return offsets, out[: offsets[-1]]
            out = np.concatenate([out, np.empty(max(len(out), rows), np.int32)])

    def count_stale(self, rows: int, numbers: NDArray[np.int32]) -> int:
        """Count the numbers whose rows are stale."""
        stale = self._delta.numbers[:rows][self._delta.flags[:rows] & STALE != 0]
        return int(np.isin(numbers, stale).sum()) if len(stale) else 0

    def _make_room(self, rows: int, predicates: int, columns: int) -> None:
        delta = self._delta
        used = int(delta.starts[self._rows])
        rows += self._rows
        predicates += used
        if rows <= len(delta.numbers) and predicates <= len(delta.columns) and columns < len(delta.by_column):
            return
        # Each dimension grows on its own: a new column needs no more rows, and many columns may follow each other.
        larger = _empty(columns, _room(rows, len(delta.numbers)), _room(predicates, len(delta.columns)))
        count = self._rows
        for name in ("numbers", "left", "flags", "following", "keyed_by"):
            getattr(larger, name)[:count] = getattr(delta, name)[:count]
        larger.starts[: count + 1] = delta.starts[: count + 1]
        for name in ("columns", "low", "span", "tops"):
            getattr(larger, name)[:used] = getattr(delta, name)[:used]
        larger.by_value[:] = delta.by_value
        old_columns = len(delta.by_column) - 1
        larger.by_column[:old_columns] = delta.by_column[:old_columns]
        larger.by_column[-1] = delta.by_column[-1]
        larger.is_key[:old_columns] = delta.is_key[:old_columns]
        # Rows without predicates are keyed by the place behind the last column, which has moved.
        larger.keyed_by[:count][delta.keyed_by[:count] == old_columns] = len(larger.by_column) - 1
        self._keep(larger)

    def _keep(self, delta: RecentRows) -> None:
        self._delta = delta
        self._readable = delta, frozen(delta)
        """Both in one assignment, for readers: frozen words need their arrays alive."""


def _flags(flat: Flat, coded: Conjunctions) -> NDArray[np.uint8]:
    """The flags of rows. `flat` and `coded` have the same rows in the same order."""
    flags = np.where(flat.overlapping, np.uint8(OVERLAPS), np.uint8(0))
    if coded.inexact.any():
        flags[coded.inexact & ~flat.inexact] |= STALE
        # If one row of a subscription is inexact, all its rows are verified, so that the subscription matches once.
        flags[np.isin(coded.numbers, coded.numbers[coded.inexact])] |= VERIFY
    return flags


def _room(wanted: int, size: int) -> int:
    return size if wanted <= size else max(wanted, 2 * size)


def _empty(columns: int, rows: int, predicates: int) -> RecentRows:
    return RecentRows(
        np.full(rows, NO_ROW, np.int32),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.uint8),
        np.zeros(rows + 1, np.int32),
        np.empty(predicates, np.int32),
        np.empty(predicates, np.uint32),
        np.empty(predicates, np.uint32),
        np.empty(predicates, np.uint32),
        np.full(_CHAINS, NO_ROW, np.int32),
        np.full(columns + 1, NO_ROW, np.int32),
        np.full(rows, NO_ROW, np.int32),
        np.full(rows, NO_ROW, np.int32),
        np.zeros(columns, np.bool_),
    )
