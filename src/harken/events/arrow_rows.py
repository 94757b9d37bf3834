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


def is_arrow(value: object) -> bool:
    """Whether this is a table or batch of pyarrow, or of a library that hands out Arrow data, such as Polars."""
    return hasattr(value, "__arrow_c_stream__")


def rows_from_arrow(table: Any, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row]:
    """The rows of a table or a record batch. Raises SourceError for a column whose type no event can hold."""
    import pyarrow

    with _arrow_faults("the Arrow data"):
        if isinstance(table, pyarrow.RecordBatch):
            batches = [table]
        elif isinstance(table, pyarrow.Table):
            batches = table.to_batches()
        else:
            table = batches = pyarrow.RecordBatchReader.from_stream(table)
        yield from _rows(batches, fields(table.schema, (), limits, 2))


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


def _rows(batches: Any, converters: dict[str, Converter]) -> Iterator[Row]:
    position = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            for content in records(part.columns, converters, part.num_rows):
                yield Row(position, None, content, None, None)
                position += 1


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
