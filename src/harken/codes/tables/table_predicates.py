"""The predicates of a table (id, predicates) as arrays, and what is wrong with them.

Each distinct name, operator and value is read once. Faults are detected on the arrays; only the message about one looks
at a predicate by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.tables.operands import ABSENT, PRESENCE, PRESENT, BadOperand, Operands, is_text, operands_of
from harken.errors import HarkenError, ParseError, SourceError, SubscriptionError, did_you_mean
from harken.events.arrow_columns import LISTS, STRINGS, is_one_of, plain
from harken.events.excerpt import shorten, shorten_object
from harken.schema import Path, format_path, parse_path

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL")
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, IS_NULL, IS_NOT_NULL = range(len(OPERATORS))

_COLUMN = "predicates"
_NAMES = ("attribute", "operator")
# The fields that may hold the value of a predicate, and the tests of `pyarrow.types` of which one must hold.
_FIELDS: dict[str, tuple[str, ...]] = {
    "integer": ("is_integer",),
    "float": ("is_floating", "is_integer", "is_decimal"),
    "string": STRINGS,
    "boolean": ("is_boolean",),
    "timestamp": ("is_timestamp",),
    "date": ("is_date",),
}
_FIELDS["value"] = tuple(dict.fromkeys(test for tests in _FIELDS.values() for test in tests))
_SIGNS = {sign: place for place, sign in enumerate(OPERATORS)} | {"!=": UNEQUAL}
_UNKNOWN = len(OPERATORS)
_NOWHERE = -1
_MOST_BYTES = 2**31 - 1  # of strings with offsets of 32 bits
_Meaning = TypeVar("_Meaning", np.int32, np.uint8)
_SHAPE = "`predicates` is a list of structs with `attribute`, `operator` and the value in one of " + ", ".join(
    f"`{name}`" for name in _FIELDS
)
_FLAWS: dict[BadOperand, tuple[str, str]] = {
    BadOperand.NAN: ("is NaN, with which nothing compares", "leave the field null, and give the value in another"),
    BadOperand.INFINITE: ("is infinite, and a number has to be finite", "use `is not null` for any value"),
    BadOperand.TOO_LARGE: ("does not fit in 64 bits", "give it in `float`"),
    BadOperand.BEYOND: ("is a time outside the years 1 to 9999", "use `is not null` for any value"),
    BadOperand.NOT_TEXT: ("is not UTF-8 text", "decode the bytes by their own encoding first"),
}


@dataclass(frozen=True, eq=False, slots=True)
class TablePredicates:
    """The predicates of all rows of a table. Those of rows with a fault are undefined."""

    offsets: NDArray[np.int64]
    """Where the predicates of each row begin, and at last where they end."""
    paths: list[Path]
    """The distinct attributes."""
    names: pa.LargeStringArray
    """The paths as the language writes them."""
    attributes: NDArray[np.int32]
    """By predicate: its place in `paths`."""
    operators: NDArray[np.uint8]
    """By predicate: its place in OPERATORS."""
    operands: NDArray[np.int32]
    """By predicate: its place in `values`."""
    values: Operands
    faults: list[tuple[int, HarkenError]]
    """Rows with a fault, each with its first."""
    faulty: NDArray[np.bool_]
    """By row: whether it has a fault."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of predicates of each row."""
        return np.diff(self.offsets)


class _Distinct(NamedTuple):
    """Distinct values, and the place of each original value among them, in chunks; null for a null."""

    values: pa.Array
    indices: list[pa.Array]

    def parts(self) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """The places, -1 for a null, a chunk at a time to save memory."""
        start = 0
        for each in self.indices:
            yield slice(start, start + len(each)), _numpy(each.fill_null(_NOWHERE) if each.null_count else each)
            start += len(each)

    def translated(self, meanings: NDArray[_Meaning]) -> NDArray[_Meaning]:
        """The meaning of each value, by its place; the last meaning is that of a null."""
        translation = np.empty(sum(map(len, self.indices)), meanings.dtype)
        for part, places in self.parts():
            translation[part] = meanings[places]
        return translation


def read_predicates(table: pa.Table) -> TablePredicates:
    """The predicates of a table. Raises SourceError if it has no column of them, or one of another type."""
    chunks = _chunks(table)
    lengths = [_numpy(pc.list_value_length(chunk).fill_null(0)) for chunk in chunks]
    offsets = np.append(0, np.cumsum(np.concatenate(lengths), dtype=np.int64))
    items = [plain(chunk.flatten()) for chunk in chunks]
    fields = _fields(items)
    names, signs = (fields.pop(name) for name in _NAMES)
    paths, path_places = _paths(names.values)
    attributes = names.translated(path_places)
    operators = signs.translated(_operators(signs.values))
    values = Operands([PRESENCE, *(operands_of(each.values) for each in fields.values())])
    operands, counts = _operands(fields, operators)
    wrong = (attributes == _NOWHERE) | (operators == _UNKNOWN) | (counts != (operators < IS_NULL))
    if values.flaws.any():
        wrong |= values.flaws[operands] != BadOperand.NONE
    is_null = np.concatenate([_numpy(chunk.is_null()) for chunk in chunks])
    faults = [(int(row), _no_predicates()) for row in np.flatnonzero(is_null)]
    if wrong.any():
        complaints = _PredicateFaults(np.concatenate([_numpy(each.is_null()) for each in items]), names, signs, fields)
        faults = sorted([*faults, *complaints.of(wrong, offsets, values.flaws[operands])], key=lambda fault: fault[0])
    faulty = np.zeros(table.num_rows, np.bool_)
    faulty[[row for row, _ in faults]] = True
    written = pa.array(map(format_path, paths), pa.large_string())
    return TablePredicates(offsets, paths, written, attributes, operators, operands, values, faults, faulty)


# The shape of the table


def _chunks(table: pa.Table) -> list[pa.Array]:
    """The column of predicates, as lists; at least one chunk, so that there is a type."""
    indices = table.schema.get_all_field_indices(_COLUMN)
    if len(indices) != 1:
        message = f"the table has {'several columns' if indices else 'no column'} `{_COLUMN}`"
        raise SourceError(message, hint=_SHAPE if not indices else "rename or drop all but one of them")
    column = table.column(indices[0])
    chunks = [plain(chunk) for chunk in column.chunks] or [plain(pa.nulls(0, column.type))]
    type = chunks[0].type
    if not is_one_of(LISTS, type) or not pa.types.is_struct(plain(pa.nulls(0, type.value_type)).type):
        raise SourceError(f"the column `{_COLUMN}` has the Arrow type {shorten(str(type))}", hint=_SHAPE)
    return chunks


def _fields(items: Sequence[pa.Array]) -> dict[str, _Distinct]:
    """The fields of the predicates by name, without values of Arrow's null type."""
    fields: dict[str, _Distinct] = {}
    type = items[0].type
    names = [type.field(place).name for place in range(type.num_fields)]
    for place, name in enumerate(names):
        if name not in (*_NAMES, *_FIELDS):
            hint = did_you_mean(name, (*_NAMES, *_FIELDS)) or _SHAPE
            raise SourceError(f"the predicates have an unknown field `{shorten(name)}`", hint=hint)
        if names.count(name) > 1:
            raise SourceError(f"the predicates have the field `{name}` twice", hint="rename or drop one of them")
        arrays = [plain(pc.struct_field(each, [place])) for each in items]
        inner = arrays[0].type
        if pa.types.is_null(inner) and name not in _NAMES:
            continue
        if not is_one_of(_FIELDS.get(name, STRINGS), inner):
            message = f"the field `{name}` of the predicates has the Arrow type {shorten(str(inner))}"
            raise SourceError(message, hint=f"{_SHAPE}; `value` holds any of them")
        fields[name] = _distinct(arrays)
    for name in _NAMES:
        if name not in fields:
            raise SourceError(f"the predicates have no field `{name}`", hint=_SHAPE)
    return fields


def _distinct(arrays: Sequence[pa.Array]) -> _Distinct:
    type = arrays[0].type
    if pa.types.is_string(type) and sum(each.nbytes for each in arrays) > _MOST_BYTES:
        arrays = [each.cast(pa.large_string()) for each in arrays]
    elif pa.types.is_decimal(type) and type.bit_width < 128:  # which Arrow cannot encode
        arrays = [each.cast(pa.decimal128(type.precision, type.scale)) for each in arrays]
    # Arrow drops empty chunks, even if there is no other.
    encoded = pa.chunked_array(arrays).dictionary_encode().chunks or [arrays[0].dictionary_encode()]
    return _Distinct(encoded[-1].dictionary, [each.indices for each in encoded])


# What the fields say


def _paths(names: pa.Array) -> tuple[list[Path], NDArray[np.int32]]:
    """The distinct paths, and the place of each name among them; _NOWHERE for what is no path, and last for null."""
    paths: dict[Path, int] = {}
    places = np.full(len(names) + 1, _NOWHERE, np.int32)
    for index, name in enumerate(_words(names)):
        try:
            places[index] = paths.setdefault(parse_path(name or ""), len(paths))
        except ValueError:
            continue
    return list(paths), places


def _operators(signs: pa.Array) -> NDArray[np.uint8]:
    """Places in OPERATORS, or _UNKNOWN; the last is for null."""
    places = [_SIGNS.get(_spelt(sign or ""), _UNKNOWN) for sign in _words(signs)]
    return np.array([*places, _UNKNOWN], np.uint8)


def _spelt(sign: str) -> str:
    """An operator as OPERATORS spell it: `is  Null` is IS NULL."""
    return " ".join(sign.upper().split())


def _words(values: pa.Array) -> list[str | None]:
    """Python strings; None for what is not UTF-8."""
    good = is_text(values)
    if good.all():
        return list(values.to_pylist())
    return [value.as_py() if is_good else None for value, is_good in zip(values, good, strict=True)]


def _operands(
    fields: Mapping[str, _Distinct], operators: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """By predicate: its operand, and the number of values that it has."""
    operands = np.where(operators == IS_NOT_NULL, np.int32(PRESENT), np.int32(ABSENT))
    counts = np.zeros(len(operators), np.uint8)
    first = np.int32(len(PRESENCE.values))
    for each in fields.values():
        for part, places in each.parts():
            is_given = places != _NOWHERE
            np.add(places, first, out=operands[part], where=is_given)
            counts[part] += is_given
        first += np.int32(len(each.values))
    return operands, counts


# What is wrong


def _no_predicates() -> HarkenError:
    hint = "give a list; an empty one makes a subscription that every event matches"
    return SubscriptionError(f"the subscription has no `{_COLUMN}`", hint=hint)


class _PredicateFaults(NamedTuple):
    """Describes the faults of predicates that have one."""

    is_null: NDArray[np.bool_]
    names: _Distinct
    signs: _Distinct
    fields: Mapping[str, _Distinct]

    def of(
        self, wrong: NDArray[np.bool_], offsets: NDArray[np.int64], flaws: NDArray[np.uint8]
    ) -> list[tuple[int, HarkenError]]:
        """Every row with wrong predicates, and an error about the first of them."""
        places = np.flatnonzero(wrong)
        rows, first = np.unique(np.searchsorted(offsets, places, side="right") - 1, return_index=True)
        faults: list[tuple[int, HarkenError]] = []
        for row, place in zip(rows.tolist(), places[first].tolist(), strict=True):
            message, hint = self._complaint(place, BadOperand(flaws[place]))
            number = place - int(offsets[row]) + 1
            faults.append((row, ParseError(f"predicate {number} {message}", hint=hint)))
        return faults

    def _complaint(self, place: int, flaw: BadOperand) -> tuple[str, str | None]:
        if self.is_null[place]:
            return "is null", "leave it out of the list"
        name, sign = _word_at(self.names, place), _word_at(self.signs, place)
        for field, word in zip(_NAMES, (name, sign), strict=True):
            if word is None:
                return f"has no `{field}`", _SHAPE
            if isinstance(word, bytes):
                return f"has the `{field}` {shorten_object(word)}, which {_FLAWS[BadOperand.NOT_TEXT][0]}", None
        try:
            about = f"on `{shorten(format_path(parse_path(str(name))))}`"
        except ValueError:
            hint = (
                f"put keys with other characters in backticks: {shorten(format_path((str(name),)))}" if name else None
            )
            return f"has the `attribute` {shorten_object(name)}, which is not a name", hint
        if _spelt(str(sign)) not in _SIGNS:
            return f"{about} has the `operator` {shorten_object(sign)}, which is not known", _operator_hint(str(sign))
        given = [field for field, each in self.fields.items() if _index_at(each, place) is not None]
        return self._about_values(about, _spelt(str(sign)), given, flaw)

    def _about_values(self, about: str, sign: str, given: list[str], flaw: BadOperand) -> tuple[str, str | None]:
        named = " and ".join(f"`{field}`" for field in given)
        if sign in ("IS NULL", "IS NOT NULL"):
            return f"{about} has a value in {named}, and {sign} takes none", "leave the fields of values null"
        if not given:
            return f"{about} has no value to compare with", "give one, or use the operator `is null` or `is not null`"
        if len(given) > 1:
            return f"{about} has values in {named}", "leave all of them null but one"
        message, hint = _FLAWS[flaw]
        return f"{about} has a value in {named} that {message}", hint


def _word_at(words: _Distinct, place: int) -> Any:
    """The name or operator of a predicate; bytes if it is not UTF-8, None if it is null."""
    index = _index_at(words, place)
    if index is None:
        return None
    word = words.values[index]
    try:
        return word.as_py()
    except UnicodeDecodeError:
        return word.as_buffer().to_pybytes()


def _index_at(values: _Distinct, place: int) -> int | None:
    """The index of the distinct value at a place; None for a null."""
    for each in values.indices:
        if place < len(each):
            index: int | None = each[place].as_py()
            return index
        place -= len(each)
    raise IndexError(place)


def _operator_hint(sign: str) -> str:
    operators = "the operators are = <> != < <= > >=, `is null` and `is not null`"
    if sign == "==":
        return "write ="
    if _spelt(sign).removeprefix("NOT ") in ("IN", "LIKE", "BETWEEN", "CONTAINS"):
        return f"{operators}; write the others in a text, in the column `where`"
    return did_you_mean(sign, OPERATORS, case_sensitive=False) or operators


def _numpy(array: pa.Array) -> NDArray[Any]:
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values
