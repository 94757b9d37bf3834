"""JSON read in columns, by Arrow, where that says the same as reading it line by line.

Arrow's reader is several times as quick, and of another opinion here and there: it takes integers among floats and
those beyond 64 bits for floats, strings for timestamps, NaN for a number, and several objects on a line or an object
on several lines as they come. Whatever may be such a case is left to the exact reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any, Self

from harken.errors import HarkenError
from harken.events.arrow_cells import fields
from harken.events.arrow_columns import LISTS, is_one_of
from harken.events.arrow_sound import are_sound
from harken.events.column_views import ColumnViews
from harken.events.json_text import decode_object
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
_LONGEST_PAUSE = 15
_FIRST_INEXACT = 2.0**53
"""From here on a float may have been an integer, and another one."""


class JsonEvents(ColumnViews):
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


class JsonColumns:
    """Reads the events of one source in columns, a batch at a time."""

    def __init__(self, schema: Schema | None, limits: Limits, names: frozenset[str] | None = None) -> None:
        self._schema = schema
        self._limits = limits
        self._names = names
        self._texts: dict[str, Any] = {}
        """The columns with strings that Arrow takes for timestamps, as types that have nothing but those strings.
        Known from the lines before, they need not be found out by reading lines twice."""
        self._has_failed = False
        self._pause = 0
        """Batches to leave to the exact reader after one that was for it, and how many of them were."""
        self._left_out = 0

    def events(self, lines: Sequence[bytes]) -> JsonEvents | None:
        """The events of lines that hold an object each, none of them blank; None if only the exact reader can tell.

        None also where lines have few names in common: there the exact reader is quicker. With names, the attributes of
        other names are left out; they have to be JSON all the same.
        """
        if self._left_out < self._pause:
            self._left_out += 1
            return None
        found = self._events(lines)
        # A source of which batch after batch is for the exact reader is tried in columns ever less often.
        self._pause = 0 if found is not None else min(2 * self._pause + self._has_failed, _LONGEST_PAUSE)
        self._has_failed = found is None
        self._left_out = 0
        return found

    def _events(self, lines: Sequence[bytes]) -> JsonEvents | None:
        tables: list[Any] = []
        for start in range(0, len(lines), _LINES_AT_ONCE):
            found = self._tables(lines[start : start + _LINES_AT_ONCE])
            if found is None:
                return None
            tables.extend(found)
        return JsonEvents(tables, lines, self._schema, self._limits, self._names)

    def _tables(self, lines: Sequence[bytes]) -> list[Any] | None:
        """Some lines, if need be as several tables: one of many names would be vast."""
        block = b"".join(lines)
        if not _is_an_object_a_line(block, len(lines)) or any(map(_has_many_brackets, lines)) or _is_sparse(lines):
            return None
        if block.count(b"{") * block.count(b":") <= _MOST_CELLS:
            table = self._sound_table(block, len(lines))
            return None if table is None else [table]
        if len(lines) == 1:
            return None
        half = len(lines) // 2
        first = self._tables(lines[:half])
        second = None if first is None else self._tables(lines[half:])
        return None if first is None or second is None else first + second

    def _sound_table(self, block: bytes, lines: int) -> Any:
        """The block as a table that says the same; None if it is not sure to."""
        from pyarrow import ArrowException

        try:
            block.decode()  # Arrow looks neither at names nor at the strings that are left out
            table = self._table(block)
            asked = [name for name in table.column_names if self._is_asked(name)]
            others = [name for name in table.column_names if not self._is_asked(name)]
            if table.num_rows != lines or not all(map(_is_finite, _chunks(table.select(others)))):
                return None
            table = table.select(asked)
            is_sound = all(map(_is_exact, _chunks(table))) and are_sound(table, self._schema, self._limits)
            return table if is_sound else None
        except (ArrowException, HarkenError, UnicodeDecodeError, RecursionError):
            return None

    def _table(self, block: bytes) -> Any:
        """The block as Arrow reads it, with strings left as strings in the columns that are asked for."""
        from pyarrow import ArrowInvalid

        try:
            table = _read(block, self._texts)
        except ArrowInvalid:
            if not self._texts:
                raise
            self._texts = {}  # what was a string may be something else by now
            table = _read(block, self._texts)
        fields(table.schema, (), self._limits, 2)  # raises where something is too deep or a name is not UTF-8
        taken_for_times = {
            field.name: text
            for field in table.schema
            if self._is_asked(field.name) and (text := _text_type(field.type)) is not None
        }
        if not taken_for_times:
            return table
        for name, text in taken_for_times.items():
            self._texts[name] = _joined(self._texts[name], text) if name in self._texts else text
        return _read(block, self._texts)

    def _is_asked(self, name: str) -> bool:
        return self._names is None or name in self._names


def _is_sparse(lines: Sequence[bytes]) -> bool:
    """Whether a table would have many columns and little in them, as some of the lines suggest.

    Arrow takes time for every column, and all the more the more columns there are.
    """
    some = lines[:: max(1, min(_MOST_APART, len(lines) // _FEWEST_LOOKED_AT))]
    names = _NAME.findall(b"".join(some))
    columns = len(set(names))
    return columns > _MANY_COLUMNS and columns * len(some) > _SPARSE * len(names)


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


def _read(block: bytes, texts: Mapping[str, Any]) -> Any:
    """The block as Arrow reads it if these types have strings and all others are told from the values."""
    from pyarrow import BufferReader, schema
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    # In one piece: the types are told from the first one.
    whole = ReadOptions(use_threads=False, block_size=len(block) + 1)
    return read_json(BufferReader(block), whole, ParseOptions(explicit_schema=schema(list(texts.items()))))


def _text_type(kind: Any) -> Any:
    """The type with strings for timestamps and nothing else in it; None if it has no timestamps.

    Arrow takes a column of strings for timestamps if all of them could be.
    """
    import pyarrow

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.string()
    if pyarrow.types.is_struct(kind):
        inner = {field.name: text for field in kind if (text := _text_type(field.type)) is not None}
        return pyarrow.struct(list(inner.items())) if inner else None
    if is_one_of(LISTS, kind):
        text = _text_type(kind.value_type)
        return None if text is None else pyarrow.list_(text)
    return None


def _joined(one: Any, other: Any) -> Any:
    """A type with the strings of both, which are alike but for the fields of their structs."""
    import pyarrow

    if pyarrow.types.is_struct(one):
        both = {field.name: field.type for field in one}
        for field in other:
            both[field.name] = _joined(both[field.name], field.type) if field.name in both else field.type
        return pyarrow.struct(list(both.items()))
    return pyarrow.list_(_joined(one.value_type, other.value_type)) if is_one_of(LISTS, one) else one


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
