"""A dictionary whose codes stay as they are while constants come and go.

The codes of dictionary.py are ranks: one more constant moves all that are greater. Here a constant is given an even
label with room on both sides, and a value that lies in a gap has the label of the constant before it plus one; a value
before all constants has 1, a missing one 0. So every set of values between two cuts is an interval of labels, as it is
of codes, and a new constant takes a label in its gap, which no other interval notices. Where a gap has no room left,
all labels are dealt anew, and so they may be where labels lie dense or cease to: then `add` tells the old ones and the
new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.constants import Constants, Pairs, as_cells, concatenated, constants_of, holds_strings, selected
from harken.codes.dictionary import Dictionary, dictionary_of
from harken.events.cells import Cells
from harken.schema import Kind

FIRST_LABEL = 1
"""Where intervals without a low cut begin."""
LAST_LABEL = 0xFFFF_FFFF
"""Where intervals without a high cut end."""

_SPACE = 1 << 32
# Constants beyond the first or the last are so far from it, so that many may follow in the same direction.
_STRIDE = 1 << 12
_LEAST_STEP = 4
# So few constants are given labels one by one, and so many are kept apart.
_FEW_AT_ONCE, _MOST_APART = 16, 256


@dataclass(frozen=True, slots=True)
class Moved:
    """The labels that constants had, ascending, and those that they have now."""

    old: NDArray[np.uint32]
    new: NDArray[np.uint32]

    def low(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The lower ends of intervals: a constant's label or the next; or the first of all."""
        sides = labels & np.uint32(1)
        moved = self._constants(labels - sides) + sides
        moved[labels == FIRST_LABEL] = FIRST_LABEL
        return moved

    def high(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The upper ends of intervals: a constant's label or the one before; or the last of all."""
        sides = labels & np.uint32(1)
        moved = self._constants(labels + sides) - sides
        moved[labels == LAST_LABEL] = LAST_LABEL
        return moved

    def _constants(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        if not len(self.old):
            return labels
        return self.new[np.minimum(np.searchsorted(self.old, labels), len(self.old) - 1)]


@dataclass(frozen=True, slots=True)
class _SortedRun:
    """Constants with their labels, by the codes of dictionary.py."""

    constants: Dictionary
    by_code: NDArray[np.uint32]

    @classmethod
    def of(cls, column: Column, constants: Constants, labels: NDArray[np.integer]) -> _SortedRun:
        """Different constants in any order, each with its label."""
        known, ranks = dictionary_of(column, constants)
        ordered = np.empty(len(known), np.uint32)
        ordered[ranks] = labels
        return cls(known, _by_code(ordered))

    @property
    def labels(self) -> NDArray[np.uint32]:
        """The labels of the constants, ascending."""
        return self.by_code[2::2]

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        return self.by_code[self.constants.encode(cells)]


class GrowingDictionary:
    """The constants of a column and their labels.

    The last few that came are kept apart, so that one more does not cost as much as all: a value's label is that of the
    constant, or of the nearest one before it, in whichever part that is.

    With `widest` the constants of a column of integers are all integers from the least to the greatest, if these are
    not more than that: then the labels lie dense, and a table may be indexed by them.
    """

    def __init__(self, column: Column, widest: int = 0) -> None:
        self.column = column
        self.is_dense = False
        self._widest = widest if column.kind is Kind.NUMBER or column.coded is not None else 0
        self._main = self._recent = self._nothing = _SortedRun.of(
            column, constants_of(column, []), np.empty(0, np.uint32)
        )

    def __len__(self) -> int:
        return len(self._main.labels) + len(self._recent.labels)

    @property
    def nbytes(self) -> int:
        """The bytes of the labels; the constants are not counted."""
        return self._main.by_code.nbytes + self._recent.by_code.nbytes

    @property
    def labels(self) -> NDArray[np.uint32]:
        """The labels of all constants, ascending."""
        self._merge()
        return self._main.labels

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The label of every value."""
        found = self._main.encode(cells)
        if self._recent is self._nothing:
            return found
        recent = self._recent.encode(cells)
        is_nearer = (recent > found) | (recent & 1 == 0)
        return np.where((found & 1 == 1) & is_nearer, recent, found)

    def every_code(self) -> NDArray[np.uint32]:
        """All labels that a value may have."""
        labels = self.labels
        return np.unique(np.concatenate([[FIRST_LABEL], labels, labels + np.uint32(1)])).astype(np.uint32)

    def add(self, constants: object) -> tuple[NDArray[np.uint32], Moved | None]:
        """The labels of constants, which are known from now on; and how the labels of others moved, if they did."""
        given = constants_of(self.column, constants)
        cells = as_cells(self.column, given)
        labels = self.encode(cells)
        is_new = labels & 1 == 1
        if not is_new.any():
            return labels, None
        new = selected(given, is_new)
        moved = None
        if len(new) > _FEW_AT_ONCE or self._widest or not self._took_apart(new):
            moved = self._insert(new)
        return self.encode(cells), moved

    def keep(self, is_used: NDArray[np.bool_]) -> None:
        """Forget the other constants. The labels of those that are kept stay."""
        if self.is_dense or is_used.all():
            return
        labels = self.labels[is_used]
        self._main = _SortedRun.of(self.column, selected(self._main.constants.constants, is_used), labels)

    def _took_apart(self, new: Constants) -> bool:
        """Give few constants labels in their gaps, and keep them apart; False where a gap has no room."""
        for place in range(len(new)):
            one = selected(new, np.arange(len(new)) == place)
            label = int(self.encode(as_cells(self.column, one))[0])
            if label & 1 == 0:  # it came twice
                continue
            left = label - 1
            right = min(_next(self._main.labels, left), _next(self._recent.labels, left))
            step = (right - left) // 2
            if step < _LEAST_STEP:
                return False
            if left == 0 and right < _SPACE:
                fitted = right - min(step, _STRIDE)
            else:
                fitted = left + (min(step, _STRIDE) if right == _SPACE and left else step)
            labels = np.append(self._recent.labels, np.uint32(fitted & ~1))
            before = self._recent.constants.constants
            self._recent = _SortedRun.of(self.column, concatenated([before, one]) if len(before) else one, labels)
            if len(labels) > _MOST_APART:
                self._merge()
        return True

    def _merge(self) -> None:
        """Have all constants in one part."""
        if self._recent is not self._nothing:
            parts = (self._main, self._recent)
            constants = [each.constants.constants for each in parts if len(each.labels)]
            labels = np.concatenate([each.labels for each in parts])
            self._main, self._recent = _SortedRun.of(self.column, concatenated(constants), labels), self._nothing

    def _insert(self, new: Constants) -> Moved | None:
        old = self.labels.copy()
        before = self._main.constants.constants
        every = new if not len(before) else concatenated([before, new])
        dense, was_dense = self._dense(every), self.is_dense
        self.is_dense = dense is not None
        known, ranks = dictionary_of(self.column, every if dense is None else concatenated([every, dense]))
        labels = np.zeros(len(known), np.int64)
        labels[ranks[: len(old)]] = old
        fitted = 2 * np.arange(len(known)) + 2 if self.is_dense else _fitted(labels)
        self._main = _SortedRun(known, _by_code(fitted.astype(np.uint32)))
        now = self._main.labels[ranks[: len(old)]]
        is_same = was_dense == self.is_dense and np.array_equal(old, now)
        return None if is_same else Moved(old, now)

    def _dense(self, every: Constants) -> Pairs | None:
        """All integers between the least constant and the greatest, where these are to have the labels."""
        if holds_strings(self.column) or every.part is not None or not self._widest:
            return None
        least, most = int(every.whole.min()), int(every.whole.max())
        if most - least >= self._widest or least < -(1 << 62) or most > 1 << 62:
            return None
        if self.is_dense:
            # It grows: so that it does not do so with every constant, by as much again, where it grew.
            known = self._main.constants.constants.whole
            is_below, is_above = least < int(known[0]), most > int(known[-1])
            span = most - least + 1
            more = min(span, (self._widest - span) // max(1, is_below + is_above))
            least -= more if is_below else 0
            most += more if is_above else 0
        return Pairs(np.arange(least, most + 1, dtype=np.int64))


def _by_code(labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The labels of constants and of the gaps between them, by the codes of dictionary.py."""
    found = np.empty(2 * len(labels) + 2, np.uint32)
    found[0], found[1] = 0, FIRST_LABEL
    found[2::2] = labels
    found[3::2] = labels + np.uint32(1)
    return found


def _next(labels: NDArray[np.uint32], label: int) -> int:
    """The least of some labels that is greater, or the end of all."""
    place = int(np.searchsorted(labels, label, "right"))
    return int(labels[place]) if place < len(labels) else _SPACE


def _fitted(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels by rank, where there is a 0 for each new constant: these in their gaps, or all dealt anew."""
    count = len(labels)
    places = np.arange(count)
    is_new = labels == 0
    if is_new.all():
        return _even(count)
    before = np.maximum.accumulate(np.where(is_new, -1, places))[is_new]
    after = np.minimum.accumulate(np.where(is_new, count, places)[::-1])[::-1][is_new]
    several, which = after - before, places[is_new] - before
    left = np.where(before < 0, 0, labels[before])
    right = np.where(after == count, _SPACE, labels[np.minimum(after, count - 1)])
    step = (right - left) // several
    if step.min() < _LEAST_STEP:
        return _even(count)
    step = np.where((before < 0) | (after == count), np.minimum(step, _STRIDE), step)
    found = labels.copy()
    found[is_new] = np.where(before < 0, right - (several - which) * step, left + which * step) & ~1
    return found


def _even(count: int) -> NDArray[np.int64]:
    step = (_SPACE - 8) // (count + 1) & ~1
    return (np.arange(count, dtype=np.int64) + 1) * step
