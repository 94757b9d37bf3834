"""JSON read in columns, by Arrow, where that says the same as reading it line by line.

Arrow's reader is several times as quick, and of another opinion here and there: it takes integers among floats and
those beyond 64 bits for floats, strings for timestamps, NaN for a number, and several objects on a line or an object
on several lines as they come. Whatever may be such a case is left to the exact reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
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
_MOST_BRACKETS = 500
"""In a line. Arrow follows objects and arrays as deep as its stack goes, and then crashes."""
_FIRST_INEXACT = 2.0**53
"""From here on a float may have been an integer, and another one."""


class JsonEvents(LazyEvents):
    """The events of lines of JSON; the exact reader makes those that are asked for."""

    __slots__ = ("_lines",)

    def __init__(self, tables: Sequence[Any], lines: Sequence[bytes], schema: Schema | None, limits: Limits) -> None:
        super().__init__(tables, schema, limits)
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
        return type(self)(parts, self._lines[start:stop], self._schema, self._limits)


def events_in_columns(lines: Sequence[bytes], schema: Schema | None, limits: Limits) -> JsonEvents | None:
    """The events of lines that hold an object each, none of them blank; None if only the exact reader can tell."""
    tables: list[Any] = []
    for start in range(0, len(lines), _LINES_AT_ONCE):
        found = _tables(lines[start : start + _LINES_AT_ONCE], schema, limits)
        if found is None:
            return None
        tables.extend(found)
    return JsonEvents(tables, lines, schema, limits)


def _tables(lines: Sequence[bytes], schema: Schema | None, limits: Limits) -> list[Any] | None:
    """Some lines, if need be as several tables: where every line has names of its own, a table would be vast."""
    block = b"".join(lines)
    if not _is_an_object_a_line(block, len(lines)) or any(map(_has_many_brackets, lines)):
        return None
    if block.count(b"{") * block.count(b":") <= _MOST_CELLS:
        table = _sound_table(block, len(lines), schema, limits)
        return None if table is None else [table]
    if len(lines) == 1:
        return None
    half = len(lines) // 2
    first, second = _tables(lines[:half], schema, limits), _tables(lines[half:], schema, limits)
    return None if first is None or second is None else first + second


def _sound_table(block: bytes, lines: int, schema: Schema | None, limits: Limits) -> Any:
    """The block as a table that says the same; None if it is not sure to."""
    from pyarrow import ArrowException

    try:
        table = _table(block, limits)
        if table.num_rows != lines or not all(map(_is_exact, _chunks(table))):
            return None
        return table if are_sound(table, schema, limits) else None
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


def _table(block: bytes, limits: Limits) -> Any:
    """The block as Arrow reads it, with strings left as strings."""
    from pyarrow import BufferReader, schema
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    # In one piece: the types are told from the first one.
    whole = ReadOptions(use_threads=False, block_size=len(block) + 1)
    table = read_json(BufferReader(block), whole)
    fields(table.schema, (), limits, 2)  # raises where something is too deep or a name is not UTF-8
    texts = [field.with_type(_as_text(field.type)) for field in table.schema if field.type != _as_text(field.type)]
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
    import numpy as np
    from pyarrow import types

    if types.is_struct(array.type):
        return all(map(_is_exact, array.flatten()))
    if is_one_of(LISTS, array.type):
        return _is_exact(array.flatten())
    if types.is_floating(array.type):
        return bool((np.abs(array.drop_null().to_numpy()) < _FIRST_INEXACT).all())
    return True
