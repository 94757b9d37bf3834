"""Reads XML files as events: one document per file or, with a row tag, one per element of that name."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError
from harken.events.document_batches import document_pieces
from harken.events.encodings import text_of
from harken.events.pieces import Piece, place_in
from harken.events.sources import Source, opened
from harken.limits import DEFAULT_LIMITS, Limits
from harken.pipeline.config.document_columns import PATH, xml_columns
from harken.spark.frames import mapped
from harken.spark.validation import reason_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_MOST_CHARACTERS = 1 << 25
_MOST_ROWS = 4_096
"""A record batch ends once it has more characters, or this many rows."""


def documents_of_files(
    files: DataFrame, row_tag: str | None, own_columns: tuple[str, str, str], limits: Limits = DEFAULT_LIMITS
) -> DataFrame:
    """The documents of files that Spark reads as `binaryFile`, one row each.

    `own_columns` are the names of the columns for the id of a document, for the excerpt of a faulty one, and its fault.
    """
    from pyspark.sql.types import StructType

    columns = xml_columns(row_tag is not None) | dict.fromkeys(own_columns, "string")
    names = list(columns)

    def harken_read_xml(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in range(batch.num_rows):
                yield from _batches(batch.slice(row, 1), row_tag, limits, names)

    types: Any = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in columns.items()))
    return mapped(files.select(PATH, "modificationTime", "content"), harken_read_xml, types)


def _batches(file: pa.RecordBatch, row_tag: str | None, limits: Limits, names: list[str]) -> Iterator[pa.RecordBatch]:
    """The documents of one file in record batches of limited size."""
    path, data = file.column(0)[0].as_py(), file.column(2)[0].as_buffer()
    rows: list[tuple[Any, ...]] = []
    size = 0
    for position, (text, raw, fault) in enumerate(_documents(path, data, row_tag, limits)):
        rows.append((position, text, path if row_tag is None else f"{path}#{position}", raw, fault))
        size += len(text or "")
        if len(rows) == _MOST_ROWS or size > _MOST_CHARACTERS:
            yield _batch(file, rows, row_tag is not None, names)
            rows, size = [], 0
    if rows:
        yield _batch(file, rows, row_tag is not None, names)


def _batch(file: pa.RecordBatch, rows: list[tuple[Any, ...]], has_position: bool, names: list[str]) -> pa.RecordBatch:
    import pyarrow

    repeated = pyarrow.array([0] * len(rows))
    positions, *texts = zip(*rows, strict=True)
    columns = [file.column(0).take(repeated), file.column(1).take(repeated)]
    columns += [pyarrow.array(positions, pyarrow.int64())] if has_position else []
    columns += [pyarrow.array(each, pyarrow.string()) for each in texts]
    return pyarrow.RecordBatch.from_arrays(columns, names)


def _documents(
    path: str, data: Any, row_tag: str | None, limits: Limits
) -> Iterator[tuple[str | None, str | None, str | None]]:
    """For each document: its text or, if it cannot be read, None, an excerpt and the reason."""
    try:
        with opened(Source(io.BytesIO(data), path, "xml")) as stream:
            for piece in document_pieces(stream, row_tag, limits):
                yield _text(piece, path)
    except HarkenError as error:  # the whole file cannot be read, for example because its compression is damaged
        yield None, path, reason_of(error)


def _text(piece: Piece, path: str) -> tuple[str | None, str | None, str | None]:
    try:
        if piece.error is not None:
            raise piece.error
        return text_of(piece.data), None, None
    except HarkenError as error:
        place = place_in(piece, error.place, path, is_exact=piece.error is not None)
        column = "" if place.column is None else f", column {place.column}"
        return None, piece.excerpt, f"{reason_of(error)} (line {place.line}{column})"
