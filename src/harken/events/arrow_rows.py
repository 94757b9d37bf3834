"""Rows from Arrow: tables and batches in memory, Parquet files and Arrow IPC files or streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from harken.errors import SourceError, reason_of
from harken.events.arrow_cells import Converter, fields, records
from harken.events.row import Row
from harken.limits import DEFAULT_LIMITS, Limits

Batch = tuple[Any, dict[str, Converter]]
"""A record batch, and the converters of its columns to Python."""

_ROWS_AT_ONCE = 4_096
_IPC_FILE_MAGIC = b"ARROW1"
_OLD_FEATHER_MAGIC = b"FEA1"
IN_MEMORY = "the Arrow data"


def is_arrow(value: object) -> bool:
    """Whether a value is a table or batch of pyarrow, or of a library that exports Arrow data, such as Polars."""
    return hasattr(value, "__arrow_c_stream__")


def rows_from_arrow(table: Any, limits: Limits = DEFAULT_LIMITS, *, of_events: bool = False) -> Iterator[Row]:
    """The rows of a table or a record batch. Raises SourceError for a column whose type no event can hold.

    The binary columns of events are XML documents.
    """
    with _arrow_faults(IN_MEMORY):
        data = _readable(table)
        batches = data.to_batches() if hasattr(data, "to_batches") else data
        yield from _rows(contents(batches, fields(data.schema, (), limits, 2, of_events=of_events)))


def schema_of(source: Any) -> Any:
    """The Arrow schema of a table or a data frame, as `at_rest` returns it."""
    with _arrow_faults(IN_MEMORY):
        return (_readable(source.head(0)) if _is_frame(source) else source).schema


def whole_table(source: Any, limits: Limits, names: frozenset[str] | None = None) -> tuple[Any, dict[str, Converter]]:
    """The data as one table with the named columns, and their converters. Raises SourceError."""
    with _arrow_faults(IN_MEMORY):
        data = _readable(source if names is None else _narrowed(source, names))
        table = data if hasattr(data, "to_batches") else data.read_all()
        columns = _column_numbers(table.schema, names)
        converters = fields((table.schema.field(i) for i in columns), (), limits, 2, of_events=True)
        return (table if len(columns) == table.num_columns else table.select(columns)), converters


def at_rest(source: Any) -> Any:
    """The data in a form that can be read more than once."""
    with _arrow_faults(IN_MEMORY):
        data = source if _is_frame(source) else _readable(source)
        return data.read_all() if hasattr(data, "read_all") else data


def rows_of_table(table: Any, converters: dict[str, Converter], first: int, source: str) -> Iterator[Row]:
    """The rows of a table; `first` is the position of the first row."""
    with _arrow_faults(source):
        yield from _rows(contents(table.to_batches(), converters), first)


def _narrowed(source: Any, names: frozenset[str]) -> Any:
    """A data frame with the named columns only, because others may hold what Arrow cannot; other sources unchanged."""
    import pyarrow

    if not _is_frame(source):
        return source
    columns = [each for each in source.columns if each in names]
    # A frame without columns would lose its number of rows.
    return source[columns] if columns else pyarrow.table({"": pyarrow.nulls(len(source))})


def _is_frame(source: Any) -> bool:
    """Whether a source is a DataFrame of pandas or Polars."""
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in ("pandas", "polars")


def _readable(source: Any) -> Any:
    """A table, or a reader that can be read once."""
    import pyarrow

    if isinstance(source, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([source])
    return source if isinstance(source, pyarrow.Table) else pyarrow.RecordBatchReader.from_stream(source)


def _column_numbers(schema: Any, names: frozenset[str] | None) -> list[int]:
    """The indexes of the named columns; None: of all."""
    return [i for i, name in enumerate(schema.names) if names is None or name in names]


def read_parquet(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of a Parquet file."""
    return _read(parquet_batches(stream, source, limits, of_events=False), source)


def read_ipc(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of an Arrow IPC file (Feather) or stream."""
    return _read(ipc_batches(stream, source, limits, of_events=False), source)


def parquet_batches(
    stream: BinaryIO,
    source: str,
    limits: Limits,
    names: frozenset[str] | None = None,
    size: int = _ROWS_AT_ONCE,
    *,
    of_events: bool = True,
) -> Iterator[Batch]:
    """The record batches of a Parquet file, of at most `size` rows each, with the named columns."""
    with _arrow_faults(source):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(stream, page_checksum_verification=True) as file:
            kinds = file.schema_arrow
            columns = _column_numbers(kinds, names)
            converters = fields((kinds.field(i) for i in columns), (), limits, 2, of_events=of_events)
            wanted = None if names is None else list(converters)
            for batch in file.iter_batches(batch_size=size, columns=wanted):
                # Given the name `a.b`, pyarrow reads the column `a.b` and the field `b` of the column `a`.
                yield batch.select(list(converters)), converters


def ipc_batches(
    stream: BinaryIO,
    source: str,
    limits: Limits,
    names: frozenset[str] | None = None,
    size: int = _ROWS_AT_ONCE,
    *,
    of_events: bool = True,
) -> Iterator[Batch]:
    """The record batches of an Arrow IPC file (Feather) or stream, with the named columns.

    The batches are as they were written; `size` has no effect.
    """
    magic = stream.read(len(_IPC_FILE_MAGIC))
    stream.seek(-len(magic), 1)
    if magic.startswith(_OLD_FEATHER_MAGIC):
        raise SourceError(f"{source} is in Feather version 1", hint="write it again with pyarrow.feather, version 2")
    with _arrow_faults(source):
        from pyarrow import ipc

        with ipc.open_file(stream) if magic == _IPC_FILE_MAGIC else ipc.open_stream(stream) as reader:
            columns = _column_numbers(reader.schema, names)
            converters = fields((reader.schema.field(i) for i in columns), (), limits, 2, of_events=of_events)
            for batch in _checked_batches(reader, columns):
                yield batch, converters


def _checked_batches(reader: Any, columns: list[int]) -> Iterator[Any]:
    """The batches of an IPC reader with some columns, validated because Arrow does not check offsets."""
    stored = range(getattr(reader, "num_record_batches", 0))
    for batch in (reader.get_batch(i) for i in stored) if hasattr(reader, "get_batch") else reader:
        part = batch.select(columns)
        part.validate(full=True)
        yield part


def contents(batches: Any, converters: dict[str, Converter]) -> Iterator[dict[str, Any]]:
    """The rows of record batches as dicts, converted a few thousand at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            yield from records(part.columns, converters, part.num_rows)


def _read(batches: Iterable[Batch], source: str) -> Iterator[Row]:
    with _arrow_faults(source):
        yield from _rows(content for batch, converters in batches for content in contents([batch], converters))


def _rows(contents: Iterable[dict[str, Any]], first: int = 0) -> Iterator[Row]:
    for position, content in enumerate(contents, first):
        yield Row(position, None, content, None, None)


@contextmanager
def _arrow_faults(source: str) -> Iterator[None]:
    """Turn Arrow's errors, and Python's for names that are not UTF-8, into SourceError."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise SourceError(f"{source} cannot be read: {reason_of(error)}") from error
