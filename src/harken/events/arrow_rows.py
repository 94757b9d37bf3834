"""Rows from Arrow: tables and batches in memory, Parquet files and Arrow IPC files or streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from harken.errors import SourceError
from harken.events.arrow_cells import Converter, fields, records
from harken.events.row import Row
from harken.limits import DEFAULT_LIMITS, Limits

_ROWS_AT_ONCE = 4_096
_IPC_FILE_MAGIC = b"ARROW1"
_OLD_FEATHER_MAGIC = b"FEA1"
_IN_MEMORY = "the Arrow data"


def is_arrow(value: object) -> bool:
    """Whether this is a table or batch of pyarrow, or of a library that hands out Arrow data, such as Polars."""
    return hasattr(value, "__arrow_c_stream__")


def rows_from_arrow(table: Any, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row]:
    """The rows of a table or a record batch. Raises SourceError for a column whose type no event can hold."""
    with _arrow_faults(_IN_MEMORY):
        data = _readable(table)
        batches = data.to_batches() if hasattr(data, "to_batches") else data
        yield from _rows(batches, fields(data.schema, (), limits, 2))


def whole_table(source: Any, limits: Limits) -> tuple[Any, dict[str, Converter]]:
    """The same data as one table, and what converts its columns. Raises SourceError as `rows_from_arrow` does."""
    with _arrow_faults(_IN_MEMORY):
        data = _readable(source)
        converters = fields(data.schema, (), limits, 2)
        return (data if hasattr(data, "to_batches") else data.read_all()), converters


def _readable(source: Any) -> Any:
    """A table, or a reader that can be read once."""
    import pyarrow

    if isinstance(source, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([source])
    return source if isinstance(source, pyarrow.Table) else pyarrow.RecordBatchReader.from_stream(source)


def read_parquet(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of a Parquet file, a few thousand at a time."""
    with _arrow_faults(source):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(stream, page_checksum_verification=True) as file:
            converters = fields(file.schema_arrow, (), limits, 2)
            yield from _rows(file.iter_batches(batch_size=_ROWS_AT_ONCE), converters)


def read_ipc(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of an Arrow IPC file (Feather) or stream."""
    magic = stream.read(len(_IPC_FILE_MAGIC))
    stream.seek(-len(magic), 1)
    if magic.startswith(_OLD_FEATHER_MAGIC):
        raise SourceError(f"{source} is in Feather version 1", hint="write it again with pyarrow.feather, version 2")
    with _arrow_faults(source):
        from pyarrow import ipc

        with ipc.open_file(stream) if magic == _IPC_FILE_MAGIC else ipc.open_stream(stream) as reader:
            converters = fields(reader.schema, (), limits, 2)
            yield from _rows(_checked_batches(reader), converters)


def _checked_batches(reader: Any) -> Iterator[Any]:
    """The batches of an IPC reader. Its bytes are used as they are, so an offset out of bounds must be found first."""
    stored = range(getattr(reader, "num_record_batches", 0))
    for batch in (reader.get_batch(i) for i in stored) if hasattr(reader, "get_batch") else reader:
        batch.validate(full=True)
        yield batch


def contents(batches: Any, converters: dict[str, Converter]) -> Iterator[dict[str, Any]]:
    """The rows of record batches as dicts, a few thousand converted at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            yield from records(part.columns, converters, part.num_rows)


def _rows(batches: Any, converters: dict[str, Converter]) -> Iterator[Row]:
    for position, content in enumerate(contents(batches, converters)):
        yield Row(position, None, content, None, None)


@contextmanager
def _arrow_faults(source: str) -> Iterator[None]:
    """What Arrow says about a broken file, as a SourceError; about names that are not UTF-8, Python says it."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise SourceError(f"{source} cannot be read: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
