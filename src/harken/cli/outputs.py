"""The outputs of `match`: JSON lines, CSV, Parquet, or the first rows as a table on the terminal."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime
from typing import Any, BinaryIO, Protocol

from harken.cli.json_output import to_json, to_text
from harken.cli.match_rows import EventNames, Row, SubscriptionFields
from harken.cli.screen import Screen, printable
from harken.errors import SourceError
from harken.events.sources import COMPRESSIONS
from harken.live.notebook import EVENT, SUBSCRIPTION
from harken.versions.atomic import output_file

STANDARD_OUTPUT = "-"
_ROWS_IN_A_TABLE = 20
_ROWS_IN_A_GROUP = 65_536
_AS_JSON = {b"format": b"json"}


class Output(Protocol):
    """An output that takes rows until it is closed."""

    def write(self, rows: Iterable[Row]) -> None:
        """Take some rows."""

    def close(self) -> None:
        """Write buffered rows."""


class JsonLinesOutput:
    """A JSON object a line, with the fields that the row has."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, rows: Iterable[Row]) -> None:
        self._stream.writelines((to_json(row) + "\n").encode() for row in rows)
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


class Csv:
    """A header and a line a row."""

    def __init__(self, stream: BinaryIO, names: EventNames, fields: SubscriptionFields) -> None:
        self._text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
        self._columns = _columns(fields)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(self._columns)

    def write(self, rows: Iterable[Row]) -> None:
        self._writer.writerows([to_text(row.get(column)) for column in self._columns] for row in rows)

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


class Parquet:
    """Row groups. The types of columns come from the values of all subscriptions; mixed ones become JSON."""

    def __init__(self, stream: BinaryIO, names: EventNames, fields: SubscriptionFields) -> None:
        self._stream = stream
        self._names = names
        self._fields = fields
        self._writer: Any = None
        self._buffer: list[Row] = []

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._buffer.append(row)
            if len(self._buffer) == _ROWS_IN_A_GROUP:
                self._write_group()

    def close(self) -> None:
        if self._buffer or self._writer is None:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        if self._writer is None:
            # Opened only now: the type of the event column is that of the first event.
            self._writer = ParquetWriter(self._stream, self._schema())
        columns = [self._column(field) for field in self._writer.schema]
        self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._writer.schema))
        self._buffer.clear()

    def _column(self, field: Any) -> Any:
        import pyarrow

        values = [row.get(field.name) for row in self._buffer]
        if field.metadata == _AS_JSON:
            values = [None if value is None else to_json(value) for value in values]
        return pyarrow.array(values, field.type)

    def _schema(self) -> Any:
        import pyarrow

        first = [(EVENT, _arrow_type(self._names.type)), (SUBSCRIPTION, pyarrow.string())]
        return pyarrow.schema([*first, *(self._field(column) for column in self._fields.columns.values())])

    def _field(self, column: str) -> Any:
        import pyarrow

        try:
            kind = pyarrow.array(self._fields.values(column)).type
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError):
            kind = None
        if kind is None or "struct<>" in str(kind):  # Parquet cannot store an object without keys
            return pyarrow.field(column, pyarrow.string(), metadata=_AS_JSON)
        return pyarrow.field(column, pyarrow.string() if pyarrow.types.is_null(kind) else kind)


class FirstRows:
    """The first rows as a table on the terminal, and how many more there are."""

    def __init__(self, screen: Screen, fields: SubscriptionFields) -> None:
        self._screen = screen
        self._columns = _columns(fields)
        self._rows: list[Row] = []
        self._count = 0

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._count += 1
            if self._count <= _ROWS_IN_A_TABLE:
                self._rows.append(row)

    def close(self) -> None:
        from rich import box
        from rich.table import Table

        if not self._rows:
            return
        table = Table(box=box.SIMPLE_HEAD)
        for column in self._columns:
            table.add_column(printable(column), overflow="fold")
        for row in self._rows:
            table.add_row(*(printable(to_text(row.get(column))) for column in self._columns))
        self._screen.show(table, wrap=True)
        if self._count > len(self._rows):
            self._screen.show(f"… and {self._count - len(self._rows):,} more; -o FILE writes all of them")


def _json_lines(stream: BinaryIO, names: EventNames, fields: SubscriptionFields) -> Output:
    return JsonLinesOutput(stream)


_MAKERS: dict[str, Callable[[BinaryIO, EventNames, SubscriptionFields], Output]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": Csv,
    ".parquet": Parquet,
}


@contextmanager
def destination(path: str | None, screen: Screen) -> Iterator[Callable[[EventNames, SubscriptionFields], Output]]:
    """Yields a function that opens the output at the path, or standard output, once fields are known.

    Without a path a terminal gets a table; `-` always gets JSON lines. Raises SourceError.
    """
    if path is None or path == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise SourceError("standard output is closed", hint="-o FILE writes to a file")
        is_table = path is None and screen.is_table
        yield lambda names, fields: FirstRows(screen, fields) if is_table else JsonLinesOutput(sys.stdout.buffer)
        return
    stem, ending = os.path.splitext(path.lower())
    compression = COMPRESSIONS.get(ending)
    make = _MAKERS.get(ending if compression is None else os.path.splitext(stem)[1])
    if make is None or (compression is not None and make is Parquet):
        endings = f"{', '.join(_MAKERS)}, and after those of text {', '.join(COMPRESSIONS)}"
        raise SourceError(
            f"the ending of {path} does not tell what to write", hint=f"the endings for output are {endings}"
        )
    with output_file(path) as file, nullcontext(file) if compression is None else compression.create(file) as stream:
        yield lambda names, fields: make(stream, names, fields)


def _columns(fields: SubscriptionFields) -> list[str]:
    return [EVENT, SUBSCRIPTION, *fields.columns.values()]


def _arrow_type(type: type | None) -> Any:
    import pyarrow

    types: dict[Any, Any] = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", "UTC"),
        date: pyarrow.date32(),
    }
    return types.get(type, pyarrow.string())
