"""Batches of events from a source, each with its valid and its rejected events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from harken.errors import SourceError
from harken.events.arrow_cells import Converter
from harken.events.arrow_rows import ipc_batches, parquet_batches
from harken.events.batch import Decoded, EventBatch, collect, validate_table
from harken.events.document_batches import document_batches, document_pieces
from harken.events.event_rows import rows_of
from harken.events.json_columns import JsonColumns
from harken.events.json_rows import json_line_pieces, json_pieces, rows_of_pieces
from harken.events.pieces import Piece
from harken.events.row import Row
from harken.events.sources import STANDARD_INPUT, Source, find_source, opened
from harken.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from harken.schema import Schema

Unit = TypeVar("Unit", Row, Piece)

_TABLES = {"parquet": parquet_batches, "arrow": ipc_batches}
_PIECES = {"jsonl": json_line_pieces, "json": json_pieces}
_FEWEST_IN_COLUMNS = 32
"""Fewer events are decoded one by one: Arrow's overhead would exceed its gain."""


class JsonDecoder:
    """Decodes pieces of JSON into events: in columns if that gives the same result, else one by one."""

    def __init__(self, schema: Schema | None, limits: Limits, names: frozenset[str] | None) -> None:
        self._schema, self._limits = schema, limits
        self.names = names
        """The attributes to read; None: all."""
        self._columns = JsonColumns(schema, limits, names)

    def decoded(self, pieces: list[Piece], source: str, start: int = 0) -> Decoded:
        """The events of some pieces of a source; `start` is the position of the first piece."""
        views = None
        if len(pieces) >= _FEWEST_IN_COLUMNS and not any(piece.error for piece in pieces):
            # Pieces of several requests have no line breaks between them.
            data = (piece.data for piece in pieces)
            views = self._columns.events([each if each.endswith(b"\n") else each + b"\n" for each in data])
        if views is not None:
            return Decoded(EventBatch(views, tuple(range(start, start + len(pieces))), self.names), ())
        rows = rows_of_pieces(pieces, source, self._limits, start)
        return collect(rows, self._schema, self._limits, self.names, source)


def read_events(
    source: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    batch_size: int = 4_096,
    names: frozenset[str] | None = None,
    split: str | None = None,
) -> Iterator[Decoded]:
    """The events of a file, of standard input (`-`) or of an open binary stream, in batches.

    An XML file is one document or, with `split`, one document per element of that name.

    With `names`, such as those of `Engine.attributes()`, only these attributes are read, and the events have no others.
    A bad event is in `rejected` of its batch. Raises SourceError if the source as a whole cannot be read.
    """
    if batch_size < 1:
        raise ValueError(f"a batch has at least one event, not {batch_size}")
    resolved = find_source(
        source, "xml" if format is None and split is not None and source == STANDARD_INPUT else format
    )
    if resolved.format == "xml":
        return _documents(resolved, split, schema, limits, batch_size, names)
    if split is not None:
        hint = "leave `split` out, or name the format xml"
        raise SourceError(f"{resolved.name} is not XML: there are no elements to split it by", hint=hint)
    return _batches(resolved, schema, limits, batch_size, names)


def _documents(
    source: Source,
    split: str | None,
    schema: Schema | None,
    limits: Limits,
    batch_size: int,
    names: frozenset[str] | None,
) -> Iterator[Decoded]:
    with opened(source) as stream:
        pieces = document_pieces(stream, split, limits)
        yield from document_batches(pieces, source.name, schema, limits, batch_size, names)


def _batches(
    source: Source, schema: Schema | None, limits: Limits, batch_size: int, names: frozenset[str] | None
) -> Iterator[Decoded]:
    start = 0
    if source.format in _TABLES:
        for table, converters in _tables(source, limits, batch_size, names):
            yield validate_table(table, converters, schema, limits, names, start, source.name)
            start += table.num_rows
        return
    cut = _PIECES.get(source.format)
    columns = JsonDecoder(schema, limits, names)
    units: Iterator[Any] = (
        rows_of(source, limits, schema=schema, names=names) if cut is None else _pieces(source, cut, limits)
    )
    while True:
        taken, fault = _take(units, batch_size)
        if taken and cut is None:
            yield collect(taken, schema, limits, names, source.name)
        elif taken:
            yield columns.decoded(taken, source.name, start)
        start += len(taken)
        if fault is not None:
            raise fault
        if len(taken) < batch_size:
            return


def _tables(
    source: Source, limits: Limits, size: int, names: frozenset[str] | None
) -> Iterator[tuple[Any, dict[str, Converter]]]:
    """The rows of a columnar source as tables of `size` rows, the last may be shorter, with their converters.

    If the source turns out to be broken, the rows read before are yielded first.
    """
    import pyarrow

    waiting: list[Any] = []
    converters: dict[str, Converter] = {}
    fault: SourceError | None = None
    with opened(source, seekable=True) as stream:
        try:
            for batch, converters in _TABLES[source.format](stream, source.name, limits, names, size):
                start = 0
                while start < batch.num_rows:
                    room = size - sum(each.num_rows for each in waiting)
                    waiting.append(batch.slice(start, room))
                    start += room
                    if waiting[-1].num_rows == room:
                        yield pyarrow.Table.from_batches(waiting), converters
                        waiting = []
        except SourceError as error:
            fault = error
    if waiting:
        yield pyarrow.Table.from_batches(waiting), converters
    if fault is not None:
        raise fault


def _take(units: Iterator[Unit], size: int) -> tuple[list[Unit], SourceError | None]:
    """At most `size` rows or pieces, and the error of the source if it broke after them."""
    taken: list[Unit] = []
    try:
        taken.extend(islice(units, size))
    except SourceError as error:
        return taken, error
    return taken, None


def _pieces(source: Source, cut: Callable[[BinaryIO, Limits], Iterator[Piece]], limits: Limits) -> Iterator[Piece]:
    with opened(source) as stream:
        yield from cut(stream, limits)
