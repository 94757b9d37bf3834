"""Workloads as files: JSON lines, Parquet and Arrow, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc
from pyarrow.parquet import ParquetWriter

Advance = Callable[[int], None]
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""The backslash comes first. Workloads have no other control characters, as XML has none."""


def write_rows(
    stream: BinaryIO, format: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], advance: Advance
) -> None:
    """Write the batches in one of FORMATS. `advance` is called after each batch, with its number of rows."""
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
    """The rows as lines, without their nulls."""
    lines = pc.binary_join_element_wise(_json_objects(batch.schema.names, batch.columns), "\n", "")
    return pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()


def _json_objects(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    fields = [
        pc.binary_join_element_wise(f'"{name}": ', _json(each), ", ", "")
        for name, each in zip(names, columns, strict=True)
    ]
    # Every field ends with its comma, and the last comma is stripped: with nulls skipped, pyarrow 26 drops rows.
    joined = pc.binary_join_element_wise(*fields, "", null_handling="replace", null_replacement="")
    return pc.binary_join_element_wise("{", pc.ascii_rtrim(joined, ", "), "}", "")


def _json(values: pa.Array) -> pa.Array:
    """The text of each value, be it an integer, a string, a struct or a list of them; null for null."""
    if pa.types.is_struct(values.type):
        objects = _json_objects(values.type.names, values.flatten())
        return pc.if_else(values.is_valid(), objects, None)
    if pa.types.is_list(values.type):
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
        ends = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        texts = pc.binary_join(pa.ListArray.from_arrays(ends, _json(values.flatten())), ", ")
        return pc.if_else(values.is_valid(), pc.binary_join_element_wise("[", texts, "]", ""), None)
    if pa.types.is_string(values.type):
        for character, escape in _ESCAPES.items():
            values = pc.replace_substring(values, character, escape)
        return pc.binary_join_element_wise('"', values, '"', "")
    return pc.cast(values, pa.string())
