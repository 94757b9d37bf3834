"""Rows from CSV with a header. A schema or the cells of a column decide its type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import isinf
from typing import TYPE_CHECKING, Any, BinaryIO

from harken.errors import DecodeError, HarkenError, InvalidValueError, Place, SourceError
from harken.events.csv_records import CsvReader, CsvRecord
from harken.events.excerpt import settled, short_name, shorten, shorten_object
from harken.events.json_text import too_large
from harken.events.row import Row
from harken.limits import Limits
from harken.schema.paths import Path, parse_path
from harken.schema.values import Value

if TYPE_CHECKING:
    from harken.schema import Schema

CellReader = Callable[[str], Value]

# Numbers as in JSON: 007 is a string.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_LONGEST_INTEGER = 20
_BOOLEANS = {"true": True, "false": False}


def read_csv(
    stream: BinaryIO,
    source: str,
    limits: Limits,
    delimiter: str,
    types: bool = True,
    schema: Schema | None = None,
    names: frozenset[str] | None = None,
) -> Iterator[Row]:
    """The rows of a stream with a header line. With `types` and undeclared columns, it is read twice and must seek.

    With `types`, a name in the header is an attribute as subscriptions write it: `seller.country` is a path, and a key
    with a dot stands in backticks. With `names`, columns of other attributes are left out.
    """
    start = stream.tell() if types else 0
    reader = CsvReader(stream, delimiter, limits)
    records = iter(reader)
    header = _header(next(records, None), source, types)
    readers = [_skipped if names is not None and path[0] not in names else _declared(path, schema) for path in header]
    if types and None in readers:
        readers = _guessed(records, readers)
        stream.seek(start)
        records = iter(CsvReader(stream, delimiter, limits))
        next(records, None)
    for position, record in enumerate(records):
        try:
            yield Row(position, record.line, _content(record, header, readers), None, shorten(record.raw))
        except HarkenError as error:
            column = None if error.place is None else error.place.column
            error.place = Place(record.line, column, source)
            yield Row(position, record.line, None, settled(error), shorten(record.raw))


def _header(record: CsvRecord | None, source: str, paths: bool) -> list[Path]:
    if record is None:
        return []
    place = Place(record.line, None, source)
    if record.error is not None:
        raise SourceError(f"the header cannot be read: {record.error.message}", place=place)
    columns: dict[Path, None] = {}
    for number, name in enumerate(record.cells, 1):
        if not name:
            raise SourceError(f"column {number} has no name in the header", place=place)
        path = _path(name) if paths else (name,)
        if path in columns:
            raise SourceError(f"the column {shorten_object(name)} comes twice in the header", place=place)
        columns[path] = None
    for path in columns:
        if any(path[:length] in columns for length in range(1, len(path))):
            raise SourceError(f"the column {short_name(path)} lies inside another column", place=place)
    return list(columns)


def _path(name: str) -> Path:
    try:
        return parse_path(name)
    except ValueError:  # not a name as subscriptions write it: take it as one key
        return (name,)


def _skipped(text: str) -> Value:
    """Marks a column that is left out."""
    return text


def _declared(path: Path, schema: Schema | None) -> CellReader | None:
    domain = None if schema is None else schema.domain_of(path)
    return None if domain is None else domain.read_text


def _content(record: CsvRecord, header: list[Path], readers: list[CellReader | None]) -> dict[str, Any]:
    if record.error is not None:
        raise record.error
    if len(record.cells) != len(header):
        raise DecodeError(f"the row has {len(record.cells)} cells where the header has {len(header)}")
    content: dict[str, Any] = {}
    for path, read, cell in zip(header, readers, record.cells, strict=True):
        if cell is not None and read is not _skipped:
            holder = content
            for key in path[:-1]:
                holder = holder.setdefault(key, {})
            holder[path[-1]] = cell if read is None else _read(path, read, cell)
    return content


def _read(path: Path, read: CellReader, cell: str) -> Value:
    try:
        return read(cell)
    except InvalidValueError as error:
        raise InvalidValueError(f"attribute {short_name(path)}: {error.message}", hint=error.hint) from None
    except ValueError as error:
        raise InvalidValueError(f"attribute {short_name(path)}: {error}") from None


def _guessed(records: Iterator[CsvRecord], readers: list[CellReader | None]) -> list[CellReader | None]:
    """The readers, with one chosen for each column that has none by a pass over all cells."""
    guesses = list(readers)
    unknown = [column for column, reader in enumerate(readers) if reader is None]
    for record in records:
        if record.error is None and len(record.cells) == len(readers):
            for column in unknown:
                cell, guess = record.cells[column], guesses[column]
                if cell is not None and guess is not str:
                    shape = _shape(cell)
                    guesses[column] = shape if guess is None or guess is shape else str
    return guesses


def _shape(cell: str) -> CellReader:
    if _NUMBER.fullmatch(cell):
        return _number
    return _boolean if cell.lower() in _BOOLEANS else str


def _number(text: str) -> int | float:
    shape = _NUMBER.fullmatch(text)
    if shape is None:
        raise ValueError(f"{shorten_object(text)} is not a number")
    if shape["real"]:
        value = float(text)
        if isinf(value):
            raise ValueError(too_large(text))
        return value
    if len(text) > _LONGEST_INTEGER:
        raise ValueError(f"{shorten_object(text)} is an integer beyond 64 bits")
    return int(text)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError(f"{shorten_object(text)} is not a boolean")
    return value
