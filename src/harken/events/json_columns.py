"""JSON lines read in columns, by Arrow, wherever the exact reader would give the same result.

Arrow is several times faster but less strict: it reads integers as floats if they are beyond 64 bits or beside floats,
and strings as timestamps, and accepts NaN, several objects on a line, and objects on several lines. Lines that may be
such a case are left to the exact reader.
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
"""Maximal number of cells in a table, counted as if all names were distinct."""
_NAME = re.compile(rb'"([^"\\]*)"\s*:')
_MANY_COLUMNS = 64
_SPARSE = 8
"""A table of many columns should have a value in at least one of this many cells."""
_FEWEST_SAMPLED = 16
_MOST_STRIDE = 13
"""Names are counted in every thirteenth line, or more often in short batches."""
_MOST_BRACKETS = 500
"""Limit per line. Arrow parses nested objects recursively and crashes when its stack overflows."""
_LONGEST_PAUSE = 15
_FIRST_INEXACT = 2.0**53
"""Floats from here on may be rounded integers."""


class JsonEvents(ColumnViews):
    """The events of lines of JSON; single events are decoded on demand by the exact reader."""

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
        """Columns with strings that Arrow would read as timestamps, as Arrow types with only those strings.

        They are kept from earlier lines, so that later lines need not be read twice."""
        self._has_failed = False
        self._pause = 0
        """Batches to leave to the exact reader after one that failed here; `_skipped` counts those left so far."""
        self._skipped = 0

    def events(self, lines: Sequence[bytes]) -> JsonEvents | None:
        """The events of lines with one object each, none blank; None if only the exact reader can decode them.

        None also if lines have few names in common, where the exact reader is faster. With `names`, other attributes
        are left out, but must be valid JSON.
        """
        if self._skipped < self._pause:
            self._skipped += 1
            return None
        events = self._events(lines)
        # Exponential backoff: a source that keeps failing here is tried less and less often.
        self._pause = 0 if events is not None else min(2 * self._pause + self._has_failed, _LONGEST_PAUSE)
        self._has_failed = events is None
        self._skipped = 0
        return events

    def _events(self, lines: Sequence[bytes]) -> JsonEvents | None:
        tables: list[Any] = []
        for start in range(0, len(lines), _LINES_AT_ONCE):
            chunk_tables = self._tables(lines[start : start + _LINES_AT_ONCE])
            if chunk_tables is None:
                return None
            tables.extend(chunk_tables)
        return JsonEvents(tables, lines, self._schema, self._limits, self._names)

    def _tables(self, lines: Sequence[bytes]) -> list[Any] | None:
        """The tables of some lines: several if one would have too many columns."""
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
        """The block as a table with the same values; None if that is not certain."""
        from pyarrow import ArrowException

        try:
            block.decode()  # Arrow checks neither names nor strings that are left out
            table = self._table(block)
            wanted = [name for name in table.column_names if self._is_wanted(name)]
            others = [name for name in table.column_names if not self._is_wanted(name)]
            if table.num_rows != lines or not all(map(_is_finite, _chunks(table.select(others)))):
                return None
            table = table.select(wanted)
            is_sound = all(map(_is_exact, _chunks(table))) and are_sound(table, self._schema, self._limits)
            return table if is_sound else None
        except (ArrowException, HarkenError, UnicodeDecodeError, RecursionError):
            return None

    def _table(self, block: bytes) -> Any:
        """The block as Arrow reads it, with strings kept as strings in the wanted columns."""
        from pyarrow import ArrowInvalid

        try:
            table = _read(block, self._texts)
        except ArrowInvalid:
            if not self._texts:
                raise
            self._texts = {}  # the types of these columns may have changed
            table = _read(block, self._texts)
        fields(table.schema, (), self._limits, 2)  # raises if nesting is too deep or a name is not UTF-8
        taken_for_times = {
            field.name: text
            for field in table.schema
            if self._is_wanted(field.name) and (text := _text_type(field.type)) is not None
        }
        if not taken_for_times:
            return table
        for name, text in taken_for_times.items():
            self._texts[name] = _joined(self._texts[name], text) if name in self._texts else text
        return _read(block, self._texts)

    def _is_wanted(self, name: str) -> bool:
        return self._names is None or name in self._names


def _is_sparse(lines: Sequence[bytes]) -> bool:
    """Whether a sample of the lines suggests a table with many, mostly empty columns.

    Arrow's time per column grows with the number of columns.
    """
    sample = lines[:: max(1, min(_MOST_STRIDE, len(lines) // _FEWEST_SAMPLED))]
    names = _NAME.findall(b"".join(sample))
    columns = len(set(names))
    return columns > _MANY_COLUMNS and columns * len(sample) > _SPARSE * len(names)


def _is_an_object_a_line(block: bytes, lines: int) -> bool:
    """Whether every line is one object, judged by its first and last brackets.

    In JSON, an object directly follows another only at the top level. So if every line break is between two objects, no
    object spans lines, and with as many objects as lines there is one per line.
    """
    joints = block.count(b"}\n{") + block.count(b"}\r\n{")
    is_whole = block.startswith(b"{") and block.rstrip(b"\r\n").endswith(b"}")
    return is_whole and joints == lines - 1 and len(block) < _MOST_BYTES and b"\0" not in block


def _has_many_brackets(line: bytes) -> bool:
    return len(line) > _MOST_BRACKETS and line.count(b"{") + line.count(b"[") > _MOST_BRACKETS


def _read(block: bytes, texts: Mapping[str, Any]) -> Any:
    """The block as Arrow reads it, given the types of some columns; it infers the others."""
    from pyarrow import BufferReader, schema
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    # As one block, because Arrow infers types from the first block.
    whole = ReadOptions(use_threads=False, block_size=len(block) + 1)
    return read_json(BufferReader(block), whole, ParseOptions(explicit_schema=schema(list(texts.items()))))


def _text_type(kind: Any) -> Any:
    """The type reduced to its timestamps, with strings in their place; None if it has none.

    Arrow reads a column of strings as timestamps if all of them look like timestamps.
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
    """The union of two types that differ only in the fields of their structs."""
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
    """Whether all numbers are as written: no integer was rounded, and there is no NaN."""
    return _are_below(array, _FIRST_INEXACT)


def _is_finite(array: Any) -> bool:
    """Whether there is no NaN and no number too large for a float: the exact reader rejects both."""
    return _are_below(array, inf)


def _are_below(array: Any, bound: float) -> bool:
    """Whether the absolute values of all floats in an array are below a bound."""
    import numpy as np
    from pyarrow import types

    if types.is_struct(array.type):
        return all(_are_below(each, bound) for each in array.flatten())
    if is_one_of(LISTS, array.type):
        return _are_below(array.flatten(), bound)
    if types.is_floating(array.type):
        return bool((np.abs(array.drop_null().to_numpy()) < bound).all())
    return True
