"""The distinct values that the predicates of a table compare with, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.constants import Constants, Pairs
from harken.concurrency.caching import cached_property
from harken.events.arrow_columns import STRINGS, TICKS_A_DAY
from harken.events.cells import embedded
from harken.schema import Kind
from harken.schema.values import INT64_MAX

OPERAND_KINDS: tuple[Kind | None, ...] = (*Kind, None)
"""The kinds of operands, by place. None is presence, as for columns."""
ABSENT, PRESENT = 0, 1
"""The first two operands: what IS NULL and IS NOT NULL compare presence with."""

_STRING = OPERAND_KINDS.index(Kind.STRING)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
_MICROSECONDS_A_DAY = TICKS_A_DAY["us"]
_ENDS = {
    Kind.DATE: (_FIRST_DAY, _LAST_DAY),
    Kind.TIMESTAMP: (_FIRST_DAY * _MICROSECONDS_A_DAY, (_LAST_DAY + 1) * _MICROSECONDS_A_DAY - 1),
}
_WIDEST = 40
"""More characters than any number, date or time takes in a text."""

Flaws = NDArray[np.uint8]


class BadOperand(IntEnum):
    """Why a value cannot stand in a text."""

    NONE = 0
    NAN = 1
    INFINITE = 2
    TOO_LARGE = 3
    BEYOND = 4
    NOT_TEXT = 5


@dataclass(frozen=True, slots=True)
class OperandValues:
    """Distinct values of one kind."""

    kind: Kind | None
    values: pa.Array
    """Without nulls: int64, float64, large_string, bool, date32 or timestamp[us]; anything where there is a flaw."""
    flaws: Flaws


@dataclass(frozen=True, eq=False)
class Operands:
    """Values of all kinds, which predicates refer to by their places."""

    parts: Sequence[OperandValues]

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Places in OPERAND_KINDS."""
        places = [np.uint8(OPERAND_KINDS.index(each.kind)) for each in self.parts]
        return np.repeat(np.array(places, np.uint8), [len(each.values) for each in self.parts])

    @cached_property
    def flaws(self) -> Flaws:
        """By operand: why no text can name it, as a BadOperand."""
        return np.concatenate([each.flaws for each in self.parts])

    @cached_property
    def strings(self) -> pa.LargeStringArray:
        """The operands that are strings."""
        return pa.concat_arrays([pa.array([], pa.large_string()), *self._of_kind(Kind.STRING)])

    @cached_property
    def least(self) -> NDArray[np.bool_]:
        """By operand: whether it is the least value of its kind, so that nothing is less."""
        return np.concatenate([_is_end(each, 0) for each in self.parts])

    @cached_property
    def greatest(self) -> NDArray[np.bool_]:
        """By operand: whether it is the greatest value of its kind."""
        return np.concatenate([_is_end(each, 1) for each in self.parts])

    @cached_property
    def texts(self) -> pa.LargeStringArray:
        """The operands as the language writes them."""
        return pa.concat_arrays([_texts(each) for each in self.parts])

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """By operand: the most characters that it takes in a text."""
        widths = np.full(len(self.kinds), _WIDEST, np.int64)
        widths[self.kinds == _STRING] = 2 * _integers(pc.binary_length(self.strings)) + 2
        return widths

    def constants(self, kind: Kind | None, places: NDArray[np.intp]) -> Constants:
        """The operands at these places, all of one kind, as constants."""
        if kind is Kind.STRING:
            return self.strings.take(pa.array(self._pairs.whole[places]))
        part = self._pairs.part
        chosen = None if part is None else part[places]
        return Pairs(self._pairs.whole[places], None if chosen is None or not chosen.any() else chosen)

    @cached_property
    def _pairs(self) -> Pairs:
        """All operands as pairs; strings by their places among the strings."""
        whole: list[NDArray[np.int64]] = []
        parts: list[NDArray[np.float64] | None] = []
        strings = 0
        for each in self.parts:
            part = None
            if each.kind is Kind.STRING:
                numbers = np.arange(strings, strings + len(each.values))
                strings += len(each.values)
            elif pa.types.is_floating(each.values.type):
                numbers, part = embedded(each.values.to_numpy())
            else:
                numbers = _integers(each.values)
            whole.append(numbers)
            parts.append(part)
        if all(part is None for part in parts):
            return Pairs(np.concatenate(whole))
        filled = [np.zeros(len(one)) if part is None else part for one, part in zip(whole, parts, strict=True)]
        return Pairs(np.concatenate(whole), np.concatenate(filled))

    def _of_kind(self, kind: Kind) -> list[pa.Array]:
        return [each.values for each in self.parts if each.kind is kind]


PRESENCE = OperandValues(None, pa.array([False, True]), np.zeros(2, np.uint8))


def operands_of(values: pa.Array) -> OperandValues:
    """Operands from distinct values, of any Arrow type that the kinds have."""
    for is_type, read in _READERS.items():
        if getattr(pa.types, is_type)(values.type):
            return read(values)
    raise TypeError(f"no value is of the Arrow type {values.type}")


def is_text(strings: pa.Array) -> NDArray[np.bool_]:
    """Which of these strings are valid UTF-8. Arrow checks that only on request."""
    good = np.ones(len(strings), np.bool_)
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        for place, data in enumerate(strings.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()):
            try:
                data.decode()
            except UnicodeDecodeError:
                good[place] = False
    return good


def _read_strings(given: pa.Array) -> OperandValues:
    return OperandValues(Kind.STRING, given.cast(pa.large_string()), _flaws(~is_text(given), BadOperand.NOT_TEXT))


def _read_integers(given: pa.Array) -> OperandValues:
    values = given.to_numpy(zero_copy_only=False)
    too_large = values > INT64_MAX if pa.types.is_uint64(given.type) else np.zeros(len(values), np.bool_)
    # Values that are too large wrap, and are rejected for their flaw.
    return OperandValues(Kind.NUMBER, pa.array(values.astype(np.int64)), _flaws(too_large, BadOperand.TOO_LARGE))


def _read_floats(given: pa.Array) -> OperandValues:
    return _floats(given.to_numpy(zero_copy_only=False).astype(np.float64))


def _read_decimals(given: pa.Array) -> OperandValues:
    """The nearest binary64 of each."""
    return _floats(np.array([float(value) for value in given.to_pylist()], np.float64))


def _floats(values: NDArray[np.float64]) -> OperandValues:
    is_finite = np.isfinite(values)
    flaws = _flaws(~is_finite, BadOperand.INFINITE)
    flaws[np.isnan(values)] = BadOperand.NAN
    return OperandValues(Kind.NUMBER, pa.array(np.where(is_finite, values, 0.0)), flaws)


def _read_booleans(given: pa.Array) -> OperandValues:
    return OperandValues(Kind.BOOLEAN, given, np.zeros(len(given), np.uint8))


def _read_timestamps(given: pa.Array) -> OperandValues:
    """To the microsecond, toward the past, as in events; without a zone: UTC."""
    unit = given.type.unit
    ticks, day = _integers(given), TICKS_A_DAY[unit]
    beyond = (ticks < _FIRST_DAY * day) | (ticks >= (_LAST_DAY + 1) * day)
    ticks[beyond] = 0
    microseconds = ticks // 1_000 if unit == "ns" else ticks * (_MICROSECONDS_A_DAY // day)
    return OperandValues(Kind.TIMESTAMP, pa.array(microseconds, pa.timestamp("us")), _flaws(beyond, BadOperand.BEYOND))


def _read_dates(given: pa.Array) -> OperandValues:
    ticks = _integers(given)
    days = ticks if pa.types.is_date32(given.type) else ticks // TICKS_A_DAY["ms"]
    beyond = (days < _FIRST_DAY) | (days > _LAST_DAY)
    kept = np.where(beyond, 0, days).astype(np.int32)
    return OperandValues(Kind.DATE, pa.array(kept).view(pa.date32()), _flaws(beyond, BadOperand.BEYOND))


# By the name of a test in `pyarrow.types`.
_READERS: dict[str, Callable[[pa.Array], OperandValues]] = {
    **dict.fromkeys(STRINGS, _read_strings),
    "is_integer": _read_integers,
    "is_floating": _read_floats,
    "is_decimal": _read_decimals,
    "is_boolean": _read_booleans,
    "is_timestamp": _read_timestamps,
    "is_date": _read_dates,
}


def _flaws(where: NDArray[np.bool_], flaw: BadOperand) -> Flaws:
    return np.where(where, np.uint8(flaw), np.uint8(BadOperand.NONE))


def _integers(array: pa.Array) -> NDArray[np.int64]:
    """The integers that an Arrow array stores, whatever its type."""
    if not pa.types.is_boolean(array.type):
        array = array.view(f"int{array.type.bit_width}")
    stored: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return stored.astype(np.int64)


def _is_end(given: OperandValues, which: int) -> NDArray[np.bool_]:
    """Whether values are the least of their kind (0) or the greatest (1)."""
    if given.kind is Kind.STRING and which == 0:
        return np.equal(_integers(pc.binary_length(given.values)), 0)
    if given.kind is None or given.kind not in _ENDS:
        return np.zeros(len(given.values), np.bool_)
    return np.equal(_integers(given.values), _ENDS[given.kind][which])


def _texts(given: OperandValues) -> pa.LargeStringArray:
    values, text = given.values, pa.large_string()
    match given.kind:
        case None:
            return pa.array([""] * len(values), text)
        case Kind.STRING:
            return _joined("'", pc.replace_substring(values, "'", "''"), "'")
        case Kind.BOOLEAN:
            return pc.if_else(values, pa.scalar("TRUE", text), pa.scalar("FALSE", text))
        case Kind.DATE:
            return _joined("DATE '", values.cast(text), "'")
        case Kind.TIMESTAMP:
            return _joined("TIMESTAMP '", values.cast(text), "'")
        case Kind.NUMBER:
            digits = values.cast(text)
            if not pa.types.is_floating(values.type):
                return digits
            # A point or an exponent marks a float; Arrow writes neither if the number is whole.
            return pc.if_else(pc.match_substring_regex(digits, "[.e]"), digits, _joined("", digits, ".0"))


def _joined(before: str, values: pa.Array, after: str) -> pa.LargeStringArray:
    text = pa.large_string()
    return pc.binary_join_element_wise(pa.scalar(before, text), values, pa.scalar(after, text), pa.scalar("", text))
