"""The files named on a command line, and the events and subscriptions in them.

Several files are read as one: positions are counted over all of them.
"""

from __future__ import annotations

import logging
import os
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from typing import TYPE_CHECKING, Any

from harken.cli.screen import printable
from harken.errors import SourceError
from harken.events import Decoded, read_events, read_rows
from harken.events.sources import STANDARD_INPUT, find_source, format_of
from harken.language.sql.parser import reads_like_condition
from harken.live.subscriptions import Fault, Record, records_of_rows
from harken.operators import OperatorSet, operators_of
from harken.schema import Schema
from harken.versions.folder import MANIFEST

if TYPE_CHECKING:
    from harken.engine import Engine

log = logging.getLogger(__name__)

_MOST_TOLD = 3
_BESIDE = (".", "_")
"""First characters of hidden files, and of files that Spark writes beside its data."""


def event_files(names: Iterable[str], format: str | None) -> list[str]:
    """The files of paths, of patterns such as `logs/*.jsonl`, and of folders. Raises SourceError."""
    return [file for name in names for file in _named(name, format)]


def subscription_files(names: Sequence[str]) -> list[str]:
    """The files of subscriptions, or the folder of a saved engine if it is the only name. Raises SourceError."""
    if len(names) == 1 and is_saved_engine(names[0]):
        return list(names)
    for name in names:
        if not os.path.lexists(name) and reads_like_condition(name):
            hint = "it reads like a condition: match and explain take one as --where"
            raise SourceError(f"there is no file {printable(name)}", hint=hint)
    return event_files(names, None)


def is_saved_engine(name: str) -> bool:
    """Whether this is the folder of a saved engine."""
    return os.path.isfile(os.path.join(name, MANIFEST))


def loaded_operators(names: Sequence[str] | None) -> OperatorSet:
    """The operators of these names, from modules in the current folder too. Raises OperatorError."""
    if names and "" not in sys.path:
        sys.path.insert(0, "")
    return operators_of(names or ())


def saved_engine(
    files: Sequence[str],
    settings: Mapping[str, str | None],
    operators: OperatorSet | None = None,
    database: str | None = None,
) -> Engine | None:
    """The engine in a folder given in place of files of subscriptions; None if there are files.

    Raises SourceError if one of the `settings`, by names of options, is given: the engine has its own. Only the URL of
    its `database` is not saved.
    """
    if not files or not is_saved_engine(files[0]):
        return None
    if any(value is not None for value in settings.values()):
        hint = f"leave out {' and '.join(settings)}: it has its own"
        raise SourceError(f"{files[0]} is a folder with a saved engine", hint=hint)
    from harken.engine import Engine

    options: dict[str, Any] = {} if database is None else {"database": database}
    return Engine.load(files[0], operators=operators or (), **options)


def title_of(files: Sequence[str]) -> str:
    """How messages name several files."""
    first = "standard input" if files[0] == STANDARD_INPUT else files[0]
    return first if len(files) == 1 else f"{first} and {len(files) - 1:,} more"


@dataclass(frozen=True, slots=True)
class FileBatch:
    """A batch of the events of a file."""

    file: str
    first: int
    """Number of events in the files before this one."""
    decoded: Decoded

    @property
    def size(self) -> int:
        return len(self.decoded.batch) + len(self.decoded.rejected)


class EventFiles:
    """The events of files, in batches. Raises SourceError at once if a file is missing."""

    def __init__(
        self,
        files: Sequence[str],
        format: str | None,
        schema: Schema | None,
        batch_size: int = 4_096,
        split: str | None = None,
    ) -> None:
        for file in files:
            find_source(file, format)
        self.files = files
        self.title = title_of(files)
        self._format = format
        self._schema = schema
        self._batch_size = batch_size
        self._split = split

    def __iter__(self) -> Iterator[FileBatch]:
        return self.batches(None)

    def batches(self, names: frozenset[str] | None) -> Iterator[FileBatch]:
        """The batches, with the attributes of these names; None for all."""
        count = 0
        for file in self.files:
            first = count
            for decoded in read_events(
                file, self._format, self._schema, batch_size=self._batch_size, names=names, split=self._split
            ):
                batch = FileBatch(file, first, decoded)
                count += batch.size
                yield batch


class SubscriptionFiles:
    """The subscriptions of files. Raises SourceError at once if a file is missing."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.title = title_of(files)
        self._rows = [read_rows(file, types=False) for file in files]
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[Record | Fault]:
        count = 0
        for rows in self._rows:
            first = count
            self._firsts.append(first)
            for record in records_of_rows(rows):
                count += 1
                yield replace(record, position=first + record.position) if first else record

    def origin(self, position: int) -> tuple[str, int]:
        """The file that a subscription was read from, and the number of subscriptions in the files before it."""
        place = bisect_right(self._firsts, position) - 1
        return self.files[place], self._firsts[place]


def _named(name: str, format: str | None) -> list[str]:
    if name == STANDARD_INPUT:
        return [name]
    if has_magic(name) and not os.path.lexists(name):
        paths = sorted(glob(name, recursive=True))
        if not paths:
            raise SourceError(f"no file fits the pattern {name}")
        return [file for path in paths for file in _named(path, format)]
    return _in_folder(name, format) if os.path.isdir(name) else [name]


def _in_folder(folder: str, format: str | None) -> list[str]:
    """The files in a folder and its subfolders, sorted. Files whose ending tells no format are left out."""
    if is_saved_engine(folder):
        hint = "pass it as the only file of --subscriptions"
        raise SourceError(f"{folder} is a folder with a saved engine", hint=hint)
    every = sorted(
        os.path.join(path, file)
        for path, _, files in os.walk(folder)
        for file in files
        if not any(part.startswith(_BESIDE) for part in (*_parts(path, folder), file))
    )
    readable = [file for file in every if format is not None or format_of(file) is not None]
    others = [os.path.relpath(file, folder) for file in every if format is None and format_of(file) is None]
    if not readable:
        has = f"it has {_listed(others)}" if others else "it is empty"
        raise SourceError(f"no file in the folder {folder} has an ending that tells its format", hint=has)
    if others:
        log.warning("%s: not read, because the ending tells no format: %s", folder, _listed(others))
    return readable


def _parts(path: str, folder: str) -> list[str]:
    return [part for part in os.path.relpath(path, folder).split(os.sep) if part != os.curdir]


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_TOLD
    return ", ".join(map(printable, names[:_MOST_TOLD])) + (f" and {rest:,} more" if rest > 0 else "")
