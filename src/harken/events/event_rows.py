"""Raw rows from files, for events and for subscriptions. A row that cannot be read has an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from harken.errors import SourceError
from harken.events.arrow_rows import read_ipc, read_parquet
from harken.events.csv_rows import read_csv
from harken.events.json_rows import read_json, read_json_lines
from harken.events.row import Row
from harken.events.sources import Source, find_source, opened
from harken.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from harken.schema import Schema

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_READERS = {"jsonl": read_json_lines, "json": read_json, "parquet": read_parquet, "arrow": read_ipc}


def read_rows(
    source: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    types: bool = True,
) -> Iterator[Row]:
    """The rows of a file, of standard input (`-`) or of an open binary stream.

    `format` defaults to the file's ending, without `.gz`, `.xz` or `.zst`. With `types`, columns of CSV are numbers or
    booleans if all their cells are. Raises SourceError if the source as a whole cannot be read.
    """
    return rows_of(find_source(source, format), limits, types)


def rows_of(
    source: Source,
    limits: Limits,
    types: bool = True,
    schema: Schema | None = None,
    names: frozenset[str] | None = None,
) -> Iterator[Row]:
    """The rows of a source. A schema gives the types of the CSV columns that it declares.

    With `names`, CSV columns of other names are not read.
    """
    if source.format == "xml":
        raise SourceError(f"{source.name} is XML, which has documents and no rows")
    delimiter = _DELIMITERS.get(source.format)
    with opened(source, seekable=types if delimiter else not source.is_text) as stream:
        if delimiter:
            yield from read_csv(stream, source.name, limits, delimiter, types, schema, names)
        else:
            yield from _READERS[source.format](stream, source.name, limits)
