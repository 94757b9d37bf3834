"""From a table (id, predicates) to rows, without texts in between and without a loop over subscriptions.

A predicate compares one attribute with one value, and all predicates of a subscription have to hold. So each is one
interval, and several on one attribute are the intersection of theirs (narrow.py). A subscription that needs more is
slow: it is compiled from its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.flat import Flat
from harken.codes.tables.narrow import booleans, kept_kinds, narrowed
from harken.codes.tables.operands import OPERAND_KINDS
from harken.codes.tables.table_predicates import LESS, MORE, OPERATORS, UNEQUAL, TablePredicates, read_predicates
from harken.errors import HarkenError
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Kind
from harken.schema.derived import READ_AS, reading_of

_BLOCK = 65_536
"""Texts written at a time: limits memory, and keeps Arrow's offsets within 32 bits."""
_JOINT = " AND "
_WIDEST_BETWEEN = max(map(len, OPERATORS)) + 2 + len(_JOINT)
_SIGNS = pa.array([f" {sign}{' ' if sign[0] in '<=>' else ''}" for sign in OPERATORS], pa.large_string())

# By operator: is there a cut at this end, and on which side of the constant (0 before, 1 after)? The last two compare
# presence for being equal.
_HAS_LOW = np.array([True, True, False, False, True, True, True, True])
_LOW_SIDE = np.array([0, 1, 0, 0, 1, 0, 0, 0], np.uint8)
_HAS_HIGH = np.array([True, True, True, True, False, False, True, True])
_HIGH_SIDE = np.array([1, 0, 0, 1, 0, 0, 1, 1], np.uint8)

_MOST_NARROW = 1 << 16  # numbers of 16 bits are sorted by radix
# To find the distinct ones of n operands, sorting them takes as long as marking them among this many times n.
_MARKED_PER_SORTED = 32


@dataclass(frozen=True, eq=False, slots=True)
class TableRows:
    """The subscriptions of a table, without a schema: row i of the table is subscription i."""

    flat: Flat
    """Exact rows, one for each subscription that is neither slow nor faulty."""
    slow: NDArray[np.int64]
    """Subscriptions to compile from their texts: they ask nothing, can never be true, are long, or exclude a value
    between two others."""
    faults: list[tuple[int, HarkenError]]
    """Rows with a fault, and why."""
    _predicates: TablePredicates = field(repr=False)

    def texts(self, rows: ArrayLike | None = None) -> pa.LargeStringArray:
        """All subscriptions, or those of these rows, in Harken's language; null where there is a fault."""
        wanted = np.arange(len(self._predicates)) if rows is None else np.asarray(rows, np.int64)
        blocks = [self._block(wanted[start : start + _BLOCK]) for start in range(0, len(wanted), _BLOCK)]
        return pa.concat_arrays([pa.array([], pa.large_string()), *blocks])

    def _block(self, rows: NDArray[np.int64]) -> pa.LargeStringArray:
        predicates, text = self._predicates, pa.large_string()
        faulty = predicates.faulty[rows]
        starts = predicates.offsets[rows]
        counts = np.where(faulty, 0, predicates.offsets[rows + 1] - starts)
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(starts - ends + counts, counts)
        pieces = pc.binary_join_element_wise(
            predicates.names.take(pa.array(predicates.attributes[places])),
            _SIGNS.take(pa.array(predicates.operators[places])),
            predicates.values.texts.take(pa.array(predicates.operands[places])),
            pa.scalar("", text),
        )
        lists = pa.ListArray.from_arrays(pa.array(np.append(0, ends).astype(np.int32)), pieces)
        joined = pc.binary_join(lists, pa.scalar(_JOINT, text))
        if not counts.all():
            joined = pc.if_else(pa.array(counts > 0), joined, pa.scalar("TRUE", text))
            joined = pc.if_else(pa.array(faulty), pa.scalar(None, text), joined)
        return joined


def rows_of_table(table: pa.Table, limits: Limits = DEFAULT_LIMITS) -> TableRows:
    """The subscriptions of a table, as rows.

    Its column `predicates` is a list, of any of Arrow's sorts, of structs with the fields
    - `attribute`, a path as the language writes it,
    - `operator`, one of = <> != < <= > >=, is null, is not null,
    - and the value in `integer`, `float`, `string`, `boolean`, `timestamp`, `date` or, of any of these types, `value`.

    Of the values one is not null; of those of is null and is not null, none. All predicates of a list have to hold.
    Raises SourceError if the table is not like this; a row that is not is a fault. What the limits may reject is left
    to the compiler, among the slow.
    """
    predicates = read_predicates(table)
    rows = np.repeat(np.arange(len(predicates), dtype=np.int32), predicates.counts)
    order = _by_attribute(predicates, rows)
    is_slow = _is_long(predicates, rows, limits)
    is_slow[predicates.counts == 0] = True
    is_slow[_never(predicates, rows)] = True
    columns = list(_columns(predicates, rows, order, is_slow))
    is_slow &= ~predicates.faulty
    wanted = ~(is_slow | predicates.faulty)
    flat = Flat.of_predicates(np.arange(len(predicates), dtype=np.int32), columns).only(wanted)
    return TableRows(flat, np.flatnonzero(is_slow), predicates.faults, predicates)


def _by_attribute(predicates: TablePredicates, rows: NDArray[np.int32]) -> NDArray[np.intp]:
    """The places of the predicates of rows without a fault, by attribute and then by row."""
    narrow = predicates.attributes.astype(np.uint16) if len(predicates.paths) <= _MOST_NARROW else predicates.attributes
    if not predicates.faults:
        return np.argsort(narrow, kind="stable")
    sound = np.flatnonzero(~predicates.faulty[rows])
    return sound[np.argsort(narrow[sound], kind="stable")]


# Rows to compile from their texts


def _is_long(predicates: TablePredicates, rows: NDArray[np.int32], limits: Limits) -> NDArray[np.bool_]:
    """Which rows may have texts beyond the limits."""
    counts = predicates.counts
    is_long = counts > limits.max_values
    names, values = pc.binary_length(predicates.names).to_numpy(), predicates.values.widths
    widest = names.max(initial=0) + _WIDEST_BETWEEN + values.max()
    if len(names) and counts.max(initial=0) * widest > limits.max_text_length:
        widths = names[predicates.attributes] + values[predicates.operands] + _WIDEST_BETWEEN
        is_long |= np.bincount(rows, widths, len(predicates)) > limits.max_text_length
    return is_long


def _never(predicates: TablePredicates, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows with a predicate that can never be true."""
    values, operators, operands = predicates.values, predicates.operators, predicates.operands
    never = np.zeros(len(rows), np.bool_)
    if values.least.any():
        never |= (operators == LESS) & values.least[operands]
    if values.greatest.any():
        never |= (operators == MORE) & values.greatest[operands]
    return rows[never]


# Columns


def _columns(
    predicates: TablePredicates, rows: NDArray[np.int32], order: NDArray[np.intp], is_slow: NDArray[np.bool_]
) -> Iterator[ColumnPredicates]:
    """The predicates at these places, which are ordered by attribute, column by column. Marks rows that are slow."""
    counts = np.bincount(predicates.attributes[order], minlength=len(predicates.paths))
    bounds = np.append(0, np.cumsum(counts)).tolist()
    for path, start, stop in zip(predicates.paths, bounds[:-1], bounds[1:], strict=True):
        part = order[start:stop]
        part_rows, operators, operands = rows[part], predicates.operators[part], predicates.operands[part]
        kinds = predicates.values.kinds[operands]
        if (part_rows[1:] == part_rows[:-1]).any():
            kept = kept_kinds(part_rows, kinds, operands, is_slow)
            part_rows, operators, operands, kinds = part_rows[kept], operators[kept], operands[kept], kinds[kept]
        for kind in np.flatnonzero(np.bincount(kinds)):
            of_kind = slice(None) if (kinds == kind).all() else kinds == kind
            operand_kind = OPERAND_KINDS[kind]
            column = Column(reading_of(path, operand_kind) if operand_kind in READ_AS else path, operand_kind)
            yield _column(column, part_rows[of_kind], operators[of_kind], operands[of_kind], predicates, is_slow)


def _column(
    column: Column,
    rows: NDArray[np.int32],
    operators: NDArray[np.uint8],
    operands: NDArray[np.int32],
    predicates: TablePredicates,
    is_slow: NDArray[np.bool_],
) -> ColumnPredicates:
    used, places = _distinct(operands, len(predicates.values.kinds))
    constants = predicates.values.constants(column.kind, used)
    if column.kind is Kind.BOOLEAN:
        return booleans(column, rows, operators, constants.whole[places], is_slow)
    none = np.int32(-1)
    column_predicates = ColumnPredicates(
        column,
        constants,
        rows,
        low=np.where(_HAS_LOW[operators], places, none),
        low_side=_LOW_SIDE[operators],
        high=np.where(_HAS_HIGH[operators], places, none),
        high_side=_HIGH_SIDE[operators],
    )
    has_several = (rows[1:] == rows[:-1]).any()
    return narrowed(column_predicates, operators == UNEQUAL, is_slow) if has_several else column_predicates


def _distinct(operands: NDArray[np.int32], count: int) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The distinct ones of some operands, of `count` in all, and the place of each operand among them."""
    if count > _MARKED_PER_SORTED * len(operands):
        used, places = np.unique(operands, return_inverse=True)
        return used.astype(np.intp), places.astype(np.int32)
    is_used = np.zeros(count, np.bool_)
    is_used[operands] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used, dtype=np.int32) - np.int32(1))[operands]
