"""From a source to batches of events: the whole way, with what was refused beside what was not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from harken.errors import SourceError
from harken.events.batch import Decoded, collect
from harken.events.row import Row
from harken.events.rows import rows_of
from harken.events.sources import Source, find_source
from harken.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from harken.schema import Schema


def read_events(
    source: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    batch_size: int = 4_096,
) -> Iterator[Decoded]:
    """The events of a file, of standard input (`-`) or of an open binary stream, in batches.

    A bad event goes into `refused` of its batch. Raises SourceError where the source as a whole cannot be read.
    """
    if batch_size < 1:
        raise ValueError(f"a batch has at least one event, not {batch_size}")
    return _batches(find_source(source, format), schema, limits, batch_size)


def _batches(source: Source, schema: Schema | None, limits: Limits, batch_size: int) -> Iterator[Decoded]:
    rows = rows_of(source, limits, schema=schema)
    while True:
        taken, fault = _take(rows, batch_size)
        if taken:
            yield collect(taken, schema, limits, source.name)
        if fault is not None:
            raise fault
        if len(taken) < batch_size:
            return


def _take(rows: Iterator[Row], size: int) -> tuple[list[Row], SourceError | None]:
    """The next rows, and what broke the source after them: what came before is not lost."""
    taken: list[Row] = []
    try:
        taken.extend(islice(rows, size))
    except SourceError as error:
        return taken, error
    return taken, None
