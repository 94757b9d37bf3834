"""Workloads as files: JSON lines, Parquet and Arrow, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc
from pyarrow.parquet import ParquetWriter

Advance = Callable[[int], None]


def write_rows(
    stream: BinaryIO, format: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], advance: Advance
) -> None:
    """Write the batches in one of FORMATS. `advance` is called with the number of rows after each of them."""
    FORMATS[format](stream, schema, batches, advance)


def _write_json_lines(stream: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch], advance: Advance) -> None:
    for batch in batches:
        stream.write(_json_lines(batch))
        advance(batch.num_rows)


def _write_parquet(stream: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch], advance: Advance) -> None:
    with ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            advance(batch.num_rows)


def _write_arrow(stream: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch], advance: Advance) -> None:
    with ipc.new_file(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            advance(batch.num_rows)


FORMATS: dict[str, Callable[[BinaryIO, pa.Schema, Iterable[pa.RecordBatch], Advance], None]] = {
    "jsonl": _write_json_lines,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}


def _json_lines(batch: pa.RecordBatch) -> pa.Buffer:
    """The rows of integers and strings as lines, without their nulls."""
    fields = [_json_fields(name, batch.column(name)) for name in batch.schema.names]
    # Every field brings its comma along, and the last one loses it again: pyarrow 26 drops rows if it skips nulls.
    joined = pc.binary_join_element_wise(*fields, "", null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise("{", pc.ascii_rtrim(joined, ", "), "}\n", "")
    return pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()


def _json_fields(name: str, values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
        return pc.binary_join_element_wise(f'"{name}": "', escaped, '", ', "")
    return pc.binary_join_element_wise(f'"{name}": ', pc.cast(values, pa.string()), ", ", "")
