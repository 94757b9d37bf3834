"""JSON read in columns, by Arrow, where that says the same as reading it line by line.

Arrow's reader is several times as quick, and of another opinion here and there: it takes integers among floats and
those beyond 64 bits for floats, strings for timestamps, NaN for a number, and several objects on a line or an object
on several lines as they come. Whatever may be such a case is left to the exact reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any, Self

from harken.errors import HarkenError
from harken.events.arrow_cells import fields
from harken.events.arrow_columns import LISTS, is_one_of
from harken.events.arrow_sound import are_sound
from harken.events.json_text import decode_object
from harken.events.lazy import LazyEvents
from harken.limits import Limits

if TYPE_CHECKING:
    from harken.schema import Schema

_LINES_AT_ONCE = 1_024
_MOST_BYTES = 2**30
_MOST_CELLS = 2**24
"""In a table, if every name were another and every object had a place for it."""
_NAME = re.compile(rb'"([^"\\]*)"\s*:')
_MANY_COLUMNS = 64
_SPARSE = 8
"""With many columns, at least one of so many cells should have something in it."""
_FEWEST_LOOKED_AT = 16
_MOST_APART = 13
"""Names are looked for in every thirteenth line, or in more of few lines."""
_MOST_BRACKETS = 500
"""In a line. Arrow follows objects and arrays as deep as its stack goes, and then crashes."""
_FIRST_INEXACT = 2.0**53
"""From here on a float may have been an integer, and another one."""


class JsonEvents(LazyEvents):
    """The events of lines of JSON; the exact reader makes those that are asked for."""

    __slots__ = ("_lines",)

    def __init__(
        self,
        tables: Sequence[Any],
        lines: Sequence[bytes],
        schema: Schema | None,
        limits: Limits,
        names: frozenset[str] | None,
    ) -> None:
        super().__init__(tables, schema, limits, names)
        self._lines = lines

    def _content(self, row: int) -> dict[str, Any]:
        return decode_object(self._lines[row], self._limits)

    def _contents(self) -> Iterator[dict[str, Any]]:
        return (decode_object(line, self._limits) for line in self._lines)

    def _part(self, start: int, stop: int) -> Self:
        ends = [*accumulate(table.num_rows for table in self._tables)]
        begins = [0, *ends[:-1]]
        parts = [
            table.slice(max(start - begin, 0), min(stop, end) - max(start, begin))
            for table, begin, end in zip(self._tables, begins, ends, strict=True)
            if begin < stop and start < end
        ]
        return type(self)(parts, self._lines[start:stop], self._schema, self._limits, self._names)


def events_in_columns(
    lines: Sequence[bytes], schema: Schema | None, limits: Limits, names: frozenset[str] | None = None
) -> JsonEvents | None:
    """The events of lines that hold an object each, none of them blank; None if only the exact reader can tell.

    None also where lines have few names in common: there the exact reader is quicker. With names, the attributes of
    other names are left out; they have to be JSON all the same.
    """
    tables: list[Any] = []
    for start in range(0, len(lines), _LINES_AT_ONCE):
        found = _tables(lines[start : start + _LINES_AT_ONCE], schema, limits, names)
        if found is None:
            return None
        tables.extend(found)
    return JsonEvents(tables, lines, schema, limits, names)


def _tables(
    lines: Sequence[bytes], schema: Schema | None, limits: Limits, names: frozenset[str] | None
) -> list[Any] | None:
    """Some lines, if need be as several tables: one of many names would be vast."""
    block = b"".join(lines)
    if not _is_an_object_a_line(block, len(lines)) or any(map(_has_many_brackets, lines)) or _is_sparse(lines):
        return None
    if block.count(b"{") * block.count(b":") <= _MOST_CELLS:
        table = _sound_table(block, len(lines), schema, limits, names)
        return None if table is None else [table]
    if len(lines) == 1:
        return None
    half = len(lines) // 2
    first, second = (_tables(part, schema, limits, names) for part in (lines[:half], lines[half:]))
    return None if first is None or second is None else first + second


def _is_sparse(lines: Sequence[bytes]) -> bool:
    """Whether a table would have many columns and little in them, as some of the lines suggest.

    Arrow takes time for every column, and all the more the more columns there are.
    """
    some = lines[:: max(1, min(_MOST_APART, len(lines) // _FEWEST_LOOKED_AT))]
    names = _NAME.findall(b"".join(some))
    columns = len(set(names))
    return columns > _MANY_COLUMNS and columns * len(some) > _SPARSE * len(names)


def _sound_table(block: bytes, lines: int, schema: Schema | None, limits: Limits, names: frozenset[str] | None) -> Any:
    """The block as a table that says the same; None if it is not sure to."""
    from pyarrow import ArrowException

    try:
        block.decode()  # Arrow looks neither at names nor at the strings that are left out
        table = _table(block, limits, names)
        asked = [name for name in table.column_names if names is None or name in names]
        others = [name for name in table.column_names if names is not None and name not in names]
        if table.num_rows != lines or not all(map(_is_finite, _chunks(table.select(others)))):
            return None
        table = table.select(asked)
        return table if all(map(_is_exact, _chunks(table))) and are_sound(table, schema, limits) else None
    except (ArrowException, HarkenError, UnicodeDecodeError, RecursionError):
        return None


def _is_an_object_a_line(block: bytes, lines: int) -> bool:
    """Whether every line starts and ends as an object does.

    In JSON an object never follows another, except at the top: where each end of a line is one between objects, no
    object is on two lines. Then there is one a line if there are as many as lines.
    """
    joints = block.count(b"}\n{") + block.count(b"}\r\n{")
    is_whole = block.startswith(b"{") and block.rstrip(b"\r\n").endswith(b"}")
    return is_whole and joints == lines - 1 and len(block) < _MOST_BYTES and b"\0" not in block


def _has_many_brackets(line: bytes) -> bool:
    return len(line) > _MOST_BRACKETS and line.count(b"{") + line.count(b"[") > _MOST_BRACKETS


def _table(block: bytes, limits: Limits, names: frozenset[str] | None) -> Any:
    """The block as Arrow reads it, with strings left as strings in the columns of these names."""
    from pyarrow import BufferReader, schema
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    # In one piece: the types are told from the first one.
    whole = ReadOptions(use_threads=False, block_size=len(block) + 1)
    table = read_json(BufferReader(block), whole)
    fields(table.schema, (), limits, 2)  # raises where something is too deep or a name is not UTF-8
    asked = [field for field in table.schema if names is None or field.name in names]
    texts = [field.with_type(_as_text(field.type)) for field in asked if field.type != _as_text(field.type)]
    if texts:
        table = read_json(BufferReader(block), whole, ParseOptions(explicit_schema=schema(texts)))
    return table


def _as_text(kind: Any) -> Any:
    """The type with strings for timestamps: Arrow takes a column of strings for such if all of them could be."""
    import pyarrow

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.string()
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([field.with_type(_as_text(field.type)) for field in kind])
    if is_one_of(LISTS, kind):
        return pyarrow.list_(kind.value_field.with_type(_as_text(kind.value_type)))
    return kind


def _chunks(table: Any) -> Iterable[Any]:
    return (chunk for column in table.columns for chunk in column.chunks)


def _is_exact(array: Any) -> bool:
    """Whether all numbers are what was written: no integer was rounded, and there is no NaN."""
    return _are_below(array, _FIRST_INEXACT)


def _is_finite(array: Any) -> bool:
    """Whether there is no NaN, and no number too large for a float: neither is JSON for the exact reader."""
    return _are_below(array, inf)


def _are_below(array: Any, bound: float) -> bool:
    """Whether all floats in an array are, whatever their signs, below a bound."""
    import numpy as np
    from pyarrow import types

    if types.is_struct(array.type):
        return all(_are_below(each, bound) for each in array.flatten())
    if is_one_of(LISTS, array.type):
        return _are_below(array.flatten(), bound)
    if types.is_floating(array.type):
        return bool((np.abs(array.drop_null().to_numpy()) < bound).all())
    return True
