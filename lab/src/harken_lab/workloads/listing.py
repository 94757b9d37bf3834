"""The conditions in the order of subscriptions, each subscription as a text or as a list of structs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.schema import Kind
from harken_lab.workloads.conditions import OPERATORS, Conditions

PREDICATE = pa.struct(
    [("attribute", pa.string()), ("operator", pa.string()), ("integer", pa.int64()), ("string", pa.string())]
)


class Listing:
    """All conditions, sorted by subscription, to be written out a block of subscriptions at a time."""

    def __init__(self, conditions: Sequence[Conditions], subscriptions: int) -> None:
        counts = np.zeros(subscriptions, np.int64)
        for each in conditions:
            counts[each.rows] += 1  # each row occurs at most once
        self._offsets = np.append(0, np.cumsum(counts))
        self._heads = np.empty(self._offsets[-1], np.int32)
        self._operands = np.empty(self._offsets[-1], np.int32)
        self._fill(conditions)
        self._attributes = pa.array([each.attribute for each in conditions], pa.string())
        self._head_texts = pa.array(
            [f"{each.attribute} {sign} " for each in conditions for sign in OPERATORS], "string"
        )
        self._integers = _joined([_integers(each) for each in conditions], pa.int64())
        self._strings = _joined([_strings(each) for each in conditions], pa.string())
        self._operand_texts = _joined([_texts(each) for each in conditions], pa.string())

    def _fill(self, conditions: Sequence[Conditions]) -> None:
        """Put every condition into the next free place of its subscription."""
        free = self._offsets[:-1].copy()
        constants = 0
        for number, each in enumerate(conditions):
            places = free[each.rows]
            self._heads[places] = each.operators + np.int32(number * len(OPERATORS))
            self._operands[places] = each.operands + np.int32(constants)
            free[each.rows] += 1
            constants += len(each.constants)

    def texts(self, start: int, stop: int) -> pa.Array:
        """The subscriptions from `start` to before `stop` in Harken's language."""
        offsets, heads, operands = self._block(start, stop)
        left, right = self._head_texts.take(heads), self._operand_texts.take(operands)
        pieces = pc.binary_join_element_wise(left, right, "")
        return pc.binary_join(pa.ListArray.from_arrays(offsets, pieces), " AND ")

    def predicates(self, start: int, stop: int) -> pa.Array:
        """The subscriptions from `start` to before `stop`, each a list of structs."""
        offsets, heads, operands = self._block(start, stop)
        attributes, operators = np.divmod(heads, np.int32(len(OPERATORS)))
        columns = [
            self._attributes.take(pa.array(attributes)),
            pa.array(OPERATORS).take(pa.array(operators)),
            self._integers.take(operands),
            self._strings.take(operands),
        ]
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=list(PREDICATE)))

    def _block(self, start: int, stop: int) -> tuple[pa.Array, pa.Array, pa.Array]:
        offsets: NDArray[np.int64] = self._offsets[start : stop + 1]
        block = slice(offsets[0], offsets[-1])
        from_zero = (offsets - offsets[0]).astype(np.int32)
        return pa.array(from_zero), pa.array(self._heads[block]), pa.array(self._operands[block])


def _joined(pieces: list[pa.Array], type: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], type), *pieces])


def _integers(conditions: Conditions) -> pa.Array:
    if conditions.kind is Kind.STRING:
        return pa.nulls(len(conditions.constants), pa.int64())
    return pa.array(conditions.constants, pa.int64())


def _strings(conditions: Conditions) -> pa.Array:
    if conditions.kind is Kind.STRING:
        return pa.array(conditions.constants, pa.string())
    return pa.nulls(len(conditions.constants), pa.string())


def _texts(conditions: Conditions) -> pa.Array:
    """The constants as literals of the language."""
    if conditions.kind is Kind.STRING:
        doubled = pc.replace_substring(_strings(conditions), "'", "''")
        return pc.binary_join_element_wise("'", doubled, "'", "")
    return pc.cast(_integers(conditions), pa.string())
