"""Folders and files of a pipeline: whether what is read is there, and that nothing is written where it does harm."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from pathlib import PurePosixPath

from harken.errors import did_you_mean
from harken.pipeline.reading import Table
from harken.versions.files import local_path

_WILD = re.compile(r"[*?\[{]")
# What Python's globs and Hadoop's read alike.
_PLAIN_GLOB = re.compile(r"[^\[\]{}\\]*")
_MOST_NAMES = 200


def is_glob(location: str) -> bool:
    return _WILD.search(location) is not None


def check_there(table: Table, name: str, *, folder: bool = False, wild: bool = False) -> None:
    """That a path on this machine leads to something, to a folder if it has to; `wild` if it may be a glob."""
    location = table[name]
    path = None if location is None else local_path(location)
    if path is None:
        return
    if os.path.exists(path):
        if folder and not os.path.isdir(path):
            table.fault(name, f"`{name}` is not a folder: {path}")
        return
    if wild and is_glob(str(path)):
        _check_glob(table, name, str(path), may_be_empty=folder)
        return
    what = "folder" if folder else "file or folder"
    table.fault(name, f"there is no {what} {path}", _near(str(path)))


def _check_glob(table: Table, name: str, pattern: str, *, may_be_empty: bool) -> None:
    base = _before_wild(pattern)
    if not os.path.isdir(base):
        table.fault(name, f"there is no folder {base}", _near(base))
    elif not may_be_empty and _PLAIN_GLOB.fullmatch(pattern) and not any(glob.iglob(pattern)):
        table.fault(name, f"there is no file or folder {pattern}")


def _before_wild(pattern: str) -> str:
    parts = pattern.split("/")
    wild = next(place for place, part in enumerate(parts) if _WILD.search(part))
    return "/".join(parts[:wild]) or "/"


def _near(path: str) -> str | None:
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder) as entries:
            return did_you_mean(name, [entry.name for entry in islice(entries, _MOST_NAMES)])
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Place:
    """A place that a pipeline reads or writes. `table` is None for one that nobody has written down."""

    says: str
    table: Table | None
    key: str
    location: str
    canonical: str
    """The location, the same for all ways to write it, without a slash at its end."""
    alone: bool
    """Whether nothing else may be written inside it."""

    def has_within(self, other: _Place) -> bool:
        """Whether the other is this place, or in it."""
        inner = other.canonical
        path = local_path(self.location)
        if path is not None and is_glob(str(path)) and not os.path.exists(path):
            within = PurePosixPath(inner)
            return any(each.match(str(path)) for each in (within, *within.parents))
        return inner == self.canonical or inner.startswith(self.canonical + "/")

    def fault(self, message: str) -> None:
        if self.table is not None:
            self.table.fault(self.key, message)


def check_apart(root: Table) -> None:
    """That nothing is written where something is read, nor two things to one place."""
    found = list(_clashes(list(_read(root)), list(_written(root))))
    # A place that nobody has written down follows from another, which is complained about if it is wrong itself.
    chosen = [clash for clash in found if clash[0].table is not None and clash[1].table is not None]
    for first, second, message in chosen or found:
        (second if first.table is None else first).fault(message)


def _clashes(read: list[_Place], written: list[_Place]) -> Iterator[tuple[_Place, _Place, str]]:
    """What stands in the way of what, and the words for it. The first of two is the one to be changed."""
    for output, source in product(written, read):
        if source.has_within(output):
            yield output, source, f"{output.says} would be written to {output.location}, where {source.says} is read"
        elif output.alone and output.has_within(source):
            yield output, source, f"{output.says} would be written to {output.location}, around {source.says}"
    for first, second in combinations(written, 2):
        if first.canonical == second.canonical:
            yield second, first, f"{second.says} and {first.says} would be written to one place, {first.location}"
        elif first.alone and first.has_within(second):
            yield second, first, f"{second.says} would be written into the folder of {first.says}, {first.location}"
        elif second.alone and second.has_within(first):
            yield second, first, f"{second.says} would be written around {first.says}, {first.location}"


def _read(root: Table) -> Iterator[_Place]:
    yield from _place("the schema", root, "schema")
    yield from _place("the source", root.values.get("source"), "path")
    for number, table in enumerate(root.values.get("enrichments", ()), 1):
        yield from _place(f"[[enrich]] number {number}", table, "path")
    yield from _place("the file of subscriptions", root.values.get("subscriptions"), "path")
    yield from _place("the index", root.values.get("subscriptions"), "index")


def _written(root: Table) -> Iterator[_Place]:
    for sink in root.values.get("sinks", ()):
        yield from _place(f"sink `{sink['name']}`", sink, "path", alone=True)
    yield from _place("dead letters", root.values.get("dead_letters"), "path", alone=True)
    yield from _place("the checkpoint", root, "checkpoint")
    yield from _place("the index versions that are kept", root.values.get("subscriptions"), "keep", alone=True)
    yield from _place("the JSON metrics", root.values.get("metrics"), "json")
    yield from _place("the Prometheus metrics", root.values.get("metrics"), "prometheus")


def _place(says: str, table: Table | None, name: str, *, alone: bool = False) -> Iterator[_Place]:
    location = None if table is None else table[name]
    if table is not None and location is not None:
        yield _Place(says, table if name in table else None, name, location, _canonical(location), alone)


def _canonical(location: str) -> str:
    path = local_path(location)
    if path is not None:
        return os.path.realpath(path).rstrip("/")
    scheme, _, rest = location.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath(rest)}"
