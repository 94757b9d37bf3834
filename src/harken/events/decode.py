"""From a source to batches of events: the whole way, with what was refused beside what was not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from harken.errors import SourceError
from harken.events.batch import Decoded, EventBatch, collect
from harken.events.json_columns import events_in_columns
from harken.events.json_rows import json_line_pieces, json_pieces, rows_of_pieces
from harken.events.pieces import Piece
from harken.events.row import Row
from harken.events.rows import rows_of
from harken.events.sources import Source, find_source, opened
from harken.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from harken.schema import Schema

Unit = TypeVar("Unit", Row, Piece)

_PIECES = {"jsonl": json_line_pieces, "json": json_pieces}
_FEWEST_IN_COLUMNS = 32
"""Fewer events are decoded before Arrow is ready to."""


def read_events(
    source: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    batch_size: int = 4_096,
    names: frozenset[str] | None = None,
) -> Iterator[Decoded]:
    """The events of a file, of standard input (`-`) or of an open binary stream, in batches.

    With names, as `Engine.attributes()` gives them, only the attributes of these names are looked at, and the events
    have no others. A bad event goes into `refused` of its batch. Raises SourceError where the source as a whole cannot
    be read.
    """
    if batch_size < 1:
        raise ValueError(f"a batch has at least one event, not {batch_size}")
    return _batches(find_source(source, format), schema, limits, batch_size, names)


def _batches(
    source: Source, schema: Schema | None, limits: Limits, batch_size: int, names: frozenset[str] | None
) -> Iterator[Decoded]:
    cut = _PIECES.get(source.format)
    start = 0
    units: Iterator[Any] = (
        rows_of(source, limits, schema=schema, names=names) if cut is None else _pieces(source, cut, limits)
    )
    while True:
        taken, fault = _take(units, batch_size)
        if taken and cut is None:
            yield collect(taken, schema, limits, names, source.name)
        elif taken:
            yield _of_pieces(taken, start, source.name, schema, limits, names)
        start += len(taken)
        if fault is not None:
            raise fault
        if len(taken) < batch_size:
            return


def _take(units: Iterator[Unit], size: int) -> tuple[list[Unit], SourceError | None]:
    """The next rows or pieces, and what broke the source after them: what came before is not lost."""
    taken: list[Unit] = []
    try:
        taken.extend(islice(units, size))
    except SourceError as error:
        return taken, error
    return taken, None


def _pieces(source: Source, cut: Callable[[BinaryIO, Limits], Iterator[Piece]], limits: Limits) -> Iterator[Piece]:
    with opened(source) as stream:
        yield from cut(stream, limits)


def _of_pieces(
    pieces: list[Piece],
    start: int,
    source: str,
    schema: Schema | None,
    limits: Limits,
    names: frozenset[str] | None,
) -> Decoded:
    """The events of pieces of JSON: in columns if that can be done, else one by one."""
    if len(pieces) >= _FEWEST_IN_COLUMNS and not any(piece.error for piece in pieces):
        events = events_in_columns([piece.data for piece in pieces], schema, limits, names)
        if events is not None:
            return Decoded(EventBatch(events, tuple(range(start, start + len(events))), names), ())
    return collect(rows_of_pieces(pieces, source, limits, start), schema, limits, names, source)
