"""A dictionary whose codes stay the same while constants are added and removed.

The codes of dictionary.py are ranks: one more constant changes those of all greater constants. Here a constant gets an
even label with room on both sides, and a value in a gap has the label of the constant before it plus one; a value
before all constants has 1, a missing one 0. So every set of values between two cuts is an interval of labels, as it is
of codes, and a new constant takes a label in its gap, which changes no other interval. If a gap is full, or if labels
become dense or cease to be, all constants are labelled afresh: `add` then returns the old labels and the new ones.
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
"""The low end of intervals without a low cut."""
LAST_LABEL = 0xFFFF_FFFF
"""The high end of intervals without a high cut."""

_SPACE = 1 << 32
# Distance of labels beyond the first or the last constant: small, so that many more fit in the same direction.
_STRIDE = 1 << 12
# Least distance of a new label from its neighbours; if a gap has less room, all constants are labelled afresh.
_LEAST_STEP = 4
# Most new constants that are labelled one by one, and most that are kept apart from the main run.
_FEW_AT_ONCE, _MOST_RECENT = 16, 256


@dataclass(frozen=True, slots=True)
class MovedLabels:
    """The labels that constants had, ascending, and those that they have now."""

    old: NDArray[np.uint32]
    new: NDArray[np.uint32]

    def low(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Translate the low ends of intervals: a constant's label, the one after it, or FIRST_LABEL."""
        sides = labels & np.uint32(1)
        moved = self._constants(labels - sides) + sides
        moved[labels == FIRST_LABEL] = FIRST_LABEL
        return moved

    def high(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Translate the high ends of intervals: a constant's label, the one before it, or LAST_LABEL."""
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
    """Constants in order, with their labels."""

    constants: Dictionary
    by_code: NDArray[np.uint32]
    """The labels of constants and gaps, by their codes in the dictionary."""

    @classmethod
    def of(cls, column: Column, constants: Constants, labels: NDArray[np.integer]) -> _SortedRun:
        """A run of distinct constants, given in any order, each with its label."""
        dictionary, ranks = dictionary_of(column, constants)
        ordered = np.empty(len(dictionary), np.uint32)
        ordered[ranks] = labels
        return cls(dictionary, _by_code(ordered))

    @property
    def labels(self) -> NDArray[np.uint32]:
        """The labels of the constants, ascending."""
        return self.by_code[2::2]

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        return self.by_code[self.constants.encode(cells)]


class GrowingDictionary:
    """The constants of a column and their labels.

    The latest few constants are in a run of their own, so that adding one does not cost as much as sorting all. A
    value's label comes from the run with the constant itself, or with the nearest one before it.

    With `widest`, if a column of integers spans at most that many, all of them become constants: the labels are then
    dense, and a table can be indexed by them.
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
        """The bytes of the labels, without those of the constants."""
        return self._main.by_code.nbytes + self._recent.by_code.nbytes

    @property
    def labels(self) -> NDArray[np.uint32]:
        """The labels of all constants, ascending."""
        self._merge()
        return self._main.labels

    def encode(self, cells: Cells) -> NDArray[np.uint32]:
        """The label of every value."""
        main = self._main.encode(cells)
        if self._recent is self._nothing:
            return main
        recent = self._recent.encode(cells)
        is_nearer = (recent > main) | (recent & 1 == 0)
        return np.where((main & 1 == 1) & is_nearer, recent, main)

    def every_code(self) -> NDArray[np.uint32]:
        """All labels that a value may have."""
        labels = self.labels
        return np.unique(np.concatenate([[FIRST_LABEL], labels, labels + np.uint32(1)])).astype(np.uint32)

    def add(self, constants: object) -> tuple[NDArray[np.uint32], MovedLabels | None]:
        """Add constants. Returns their labels, and how the labels of others moved, or None if they did not."""
        added = constants_of(self.column, constants)
        cells = as_cells(self.column, added)
        labels = self.encode(cells)
        is_new = labels & 1 == 1
        if not is_new.any():
            return labels, None
        new = selected(added, is_new)
        moved = None
        if len(new) > _FEW_AT_ONCE or self._widest or not self._add_recent(new):
            moved = self._insert(new)
        return self.encode(cells), moved

    def keep(self, is_used: NDArray[np.bool_]) -> None:
        """Forget constants that are not used. The labels of the others stay."""
        if self.is_dense or is_used.all():
            return
        labels = self.labels[is_used]
        self._main = _SortedRun.of(self.column, selected(self._main.constants.constants, is_used), labels)

    def _add_recent(self, new: Constants) -> bool:
        """Add a few constants to the recent run, with labels in their gaps. Returns False if a gap is full."""
        for place in range(len(new)):
            one = selected(new, np.arange(len(new)) == place)
            label = int(self.encode(as_cells(self.column, one))[0])
            if label & 1 == 0:  # a duplicate in `new`
                continue
            left = label - 1
            right = min(_next(self._main.labels, left), _next(self._recent.labels, left))
            step = (right - left) // 2
            if step < _LEAST_STEP:
                return False
            if left == 0 and right < _SPACE:
                chosen = right - min(step, _STRIDE)
            else:
                chosen = left + (min(step, _STRIDE) if right == _SPACE and left else step)
            labels = np.append(self._recent.labels, np.uint32(chosen & ~1))
            before = self._recent.constants.constants
            self._recent = _SortedRun.of(self.column, concatenated([before, one]) if len(before) else one, labels)
            if len(labels) > _MOST_RECENT:
                self._merge()
        return True

    def _merge(self) -> None:
        """Merge the recent run into the main run."""
        if self._recent is not self._nothing:
            runs = (self._main, self._recent)
            constants = [each.constants.constants for each in runs if len(each.labels)]
            labels = np.concatenate([each.labels for each in runs])
            self._main, self._recent = _SortedRun.of(self.column, concatenated(constants), labels), self._nothing

    def _insert(self, new: Constants) -> MovedLabels | None:
        """Add constants to the main run. Returns how labels moved, or None if they did not."""
        old = self.labels.copy()
        before = self._main.constants.constants
        every = new if not len(before) else concatenated([before, new])
        integers, was_dense = self._all_integers(every), self.is_dense
        self.is_dense = integers is not None
        dictionary, ranks = dictionary_of(self.column, every if integers is None else concatenated([every, integers]))
        labels = np.zeros(len(dictionary), np.int64)
        labels[ranks[: len(old)]] = old
        fitted = 2 * np.arange(len(dictionary)) + 2 if self.is_dense else _fitted(labels)
        self._main = _SortedRun(dictionary, _by_code(fitted.astype(np.uint32)))
        now = self._main.labels[ranks[: len(old)]]
        is_same = was_dense == self.is_dense and np.array_equal(old, now)
        return None if is_same else MovedLabels(old, now)

    def _all_integers(self, every: Constants) -> Pairs | None:
        """All integers from the least constant to the greatest; None if labels are not to be dense."""
        if holds_strings(self.column) or every.part is not None or not self._widest:
            return None
        least, most = int(every.whole.min()), int(every.whole.max())
        if most - least >= self._widest or least < -(1 << 62) or most > 1 << 62:
            return None
        if self.is_dense:
            # Double the span, on the side where it grows, so that it does not grow with every constant.
            before = self._main.constants.constants.whole
            is_below, is_above = least < int(before[0]), most > int(before[-1])
            span = most - least + 1
            more = min(span, (self._widest - span) // max(1, is_below + is_above))
            least -= more if is_below else 0
            most += more if is_above else 0
        return Pairs(np.arange(least, most + 1, dtype=np.int64))


def _by_code(labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The labels of constants and of the gaps between them, by the codes of dictionary.py."""
    by_code = np.empty(2 * len(labels) + 2, np.uint32)
    by_code[0], by_code[1] = 0, FIRST_LABEL
    by_code[2::2] = labels
    by_code[3::2] = labels + np.uint32(1)
    return by_code


def _next(labels: NDArray[np.uint32], label: int) -> int:
    """The least of some labels that is greater than a label; the end of all labels if none is."""
    place = int(np.searchsorted(labels, label, "right"))
    return int(labels[place]) if place < len(labels) else _SPACE


def _fitted(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Replace the 0 of each new constant, by rank, by a label in its gap. If a gap is full, all labels change."""
    count = len(labels)
    places = np.arange(count)
    is_new = labels == 0
    if is_new.all():
        return _evenly_spaced(count)
    before = np.maximum.accumulate(np.where(is_new, -1, places))[is_new]
    after = np.minimum.accumulate(np.where(is_new, count, places)[::-1])[::-1][is_new]
    parts, part = after - before, places[is_new] - before
    left = np.where(before < 0, 0, labels[before])
    right = np.where(after == count, _SPACE, labels[np.minimum(after, count - 1)])
    step = (right - left) // parts
    if step.min() < _LEAST_STEP:
        return _evenly_spaced(count)
    step = np.where((before < 0) | (after == count), np.minimum(step, _STRIDE), step)
    fitted = labels.copy()
    fitted[is_new] = np.where(before < 0, right - (parts - part) * step, left + part * step) & ~1
    return fitted


def _evenly_spaced(count: int) -> NDArray[np.int64]:
    step = (_SPACE - 8) // (count + 1) & ~1
    return (np.arange(count, dtype=np.int64) + 1) * step
