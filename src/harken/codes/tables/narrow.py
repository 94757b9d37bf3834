"""Several predicates of one row on one attribute: the intersection of their intervals, for all rows at once.

Predicates are ordered by row. A row whose intersection is empty, or more than one interval, is marked as slow: it is
compiled from its text, and the normal form says what it asks or why it can never be true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.tables.operands import ABSENT, OPERAND_KINDS
from harken.schema import Kind

_PRESENCE = OPERAND_KINDS.index(None)
_COUNTED = frozenset((Kind.DATE, Kind.TIMESTAMP))
"""Kinds without values between one value and the next."""
_FROM_START, _TO_END = -1, np.iinfo(np.int64).max
# By operator and value: whether FALSE (1) and TRUE (2) are admitted.
_BOOLEANS = np.array([[1, 2], [2, 1], [0, 1], [1, 3], [2, 0], [3, 2]], np.uint8)

Rows = NDArray[np.int32]
Marks = NDArray[np.bool_]


def kept_kinds(rows: Rows, kinds: NDArray[np.uint8], operands: NDArray[np.int32], is_slow: Marks) -> Marks:
    """Which predicates on an attribute the others of their row do not imply.

    A comparison implies IS NOT NULL. A row that asks for two kinds, or for a value and its absence, is slow.
    """
    starts = _starts(rows)
    is_presence = kinds == _PRESENCE
    least = np.minimum.reduceat(kinds, starts)
    greatest = np.maximum.reduceat(np.where(is_presence, 0, kinds), starts)
    has_value = least < _PRESENCE
    is_absent = np.logical_or.reduceat(is_presence & (operands == ABSENT), starts)
    is_present = np.logical_or.reduceat(is_presence & (operands != ABSENT), starts)
    never = np.where(has_value, (least != greatest) | is_absent, is_absent & is_present)
    is_slow[rows[starts[never]]] = True
    is_first = np.zeros(len(rows), np.bool_)
    is_first[starts] = True
    kept: Marks = np.where(is_presence, is_first & ~np.repeat(has_value, _lengths(starts, rows)), True)
    return kept


def booleans(
    column: Column, rows: Rows, operators: NDArray[np.uint8], values: NDArray[np.int64], is_slow: Marks
) -> ColumnPredicates:
    """The predicates of each row on booleans as one, which admits one value or both."""
    starts = _starts(rows)
    admitted = np.bitwise_and.reduceat(_BOOLEANS[operators, values], starts)
    is_slow[rows[starts[admitted == 0]]] = True
    point = np.where(admitted == 3, -1, admitted == 2).astype(np.int32)
    zeros = np.zeros(len(point), np.uint8)
    constants = np.array([0, 1], np.int64)
    return ColumnPredicates(column, constants, rows[starts], point, zeros, point, np.ones_like(zeros))


def narrowed(predicates: ColumnPredicates, is_unequal: Marks, is_slow: Marks) -> ColumnPredicates:
    """The predicates of each row as one, their intersection."""
    ranks, places = _ranks(predicates.constants)
    starts = _starts(predicates.rows)
    # A cut is twice the rank of its constant, plus one behind the constant.
    cuts = 2 * ranks[np.maximum(predicates.low, predicates.high)]
    low = np.where((predicates.low < 0) | is_unequal, _FROM_START, cuts + predicates.low_side)
    high = np.where((predicates.high < 0) | is_unequal, _TO_END, cuts + predicates.high_side)
    low, high = np.maximum.reduceat(low, starts), np.minimum.reduceat(high, starts)
    is_outside = np.zeros(len(starts), np.bool_)
    if is_unequal.any():
        group = np.repeat(np.arange(len(starts)), _lengths(starts, predicates.rows))[is_unequal]
        is_outside = _exclude(group, cuts[is_unequal], low, high, predicates.rows[starts], is_slow)
    never = (low >= high) & ~is_outside
    if predicates.column.kind in _COUNTED:
        wholes: NDArray[np.int64] = predicates.constants.whole[places]  # type: ignore[attr-defined]
        both = np.flatnonzero((low >= 0) & (high < _TO_END) & ~is_outside)
        first, last = low[both], high[both]
        never[both] |= wholes[first >> 1] + (first & 1) >= wholes[last >> 1] + (last & 1)
    is_slow[predicates.rows[starts[never]]] = True
    low_place = np.where(low < 0, -1, places[np.where(low < 0, 0, low >> 1)])
    high_place = np.where(high == _TO_END, -1, places[np.where(high == _TO_END, 0, high >> 1)])
    return replace(
        predicates,
        rows=predicates.rows[starts],
        low=low_place.astype(np.int32),
        low_side=np.where(low < 0, 0, low & 1).astype(np.uint8),
        high=high_place.astype(np.int32),
        high_side=np.where(high == _TO_END, 0, high & 1).astype(np.uint8),
    )


def _exclude(
    group: NDArray[np.int64],
    cuts: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    rows: Rows,
    is_slow: Marks,
) -> Marks:
    """Exclude the values of `<>` from the intervals of their groups, in place. Returns which groups are wrapped.

    A value at an end of the interval is cut off. A group of nothing but one such value is wrapped: its low cut lies
    behind its high cut. Any other value makes the row slow.
    """
    alone = (low[group] == _FROM_START) & (high[group] == _TO_END)
    some, one = group[alone], cuts[alone]
    least, greatest = np.full(len(low), _TO_END), np.full(len(low), _FROM_START)
    np.minimum.at(least, some, one)
    np.maximum.at(greatest, some, one)
    group, cuts = group[~alone], cuts[~alone]
    for _ in range(2):  # a value may be at the low end, another at the high end
        at_low, at_high = low[group] == cuts, high[group] == cuts + 1
        low[group[at_low]] += 1
        high[group[at_high & ~at_low]] -= 1
    inside = (low[group] < cuts + 1) & (cuts < high[group])
    is_slow[rows[group[inside]]] = True
    is_outside: Marks = (least == greatest) & (greatest != _FROM_START)
    is_slow[rows[(least != greatest) & (greatest != _FROM_START)]] = True
    low[is_outside], high[is_outside] = greatest[is_outside] + 1, greatest[is_outside]
    return is_outside


def _starts(rows: Rows) -> NDArray[np.int64]:
    """Where the predicates of each row begin."""
    return np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))


def _lengths(starts: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
    return np.diff(np.append(starts, len(rows)))


def _ranks(constants: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rank of each constant, equal ones alike, and the place of one for each rank."""
    if isinstance(constants, pa.Array):
        ranks = pc.rank(constants, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64) - 1
    elif constants.part is None:
        _, ranks = np.unique(constants.whole, return_inverse=True)
    else:
        order = np.lexsort((constants.part, constants.whole))
        whole, part = constants.whole[order], constants.part[order]
        is_new = np.append(False, (whole[1:] != whole[:-1]) | (part[1:] != part[:-1]))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.cumsum(is_new)
    places = np.empty(int(ranks.max(initial=-1)) + 1, np.int64)
    places[ranks] = np.arange(len(ranks))
    return ranks, places
