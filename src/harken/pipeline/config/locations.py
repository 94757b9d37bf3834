"""Checks of files and folders: inputs must exist, and no output may overwrite an input or another output."""

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
from harken.pipeline.config.config_tables import ConfigTable
from harken.pipeline.config.secrets import SecretUrl
from harken.versions.files import local_path

_WILD = re.compile(r"[*?\[{]")
# Globs that mean the same to Python and to Hadoop.
_PLAIN_GLOB = re.compile(r"[^\[\]{}\\]*")
_MOST_NAMES = 200
"""Most names of a folder in which to look for the one that was meant."""


def is_glob(location: str) -> bool:
    return _WILD.search(location) is not None


def check_exists(table: ConfigTable, name: str, *, folder: bool = False, may_be_glob: bool = False) -> None:
    """Report a path on this machine that does not exist or, if it has to be a `folder`, is none."""
    location = table[name]
    path = None if location is None else local_path(location)
    if path is None:
        return
    if os.path.exists(path):
        if folder and not os.path.isdir(path):
            table.fault(name, f"`{name}` is not a folder: {path}")
        return
    if may_be_glob and is_glob(str(path)):
        _check_glob(table, name, str(path), may_be_empty=folder)
        return
    what = "folder" if folder else "file or folder"
    table.fault(name, f"there is no {what} {path}", _near(str(path)))


def check_store(table: ConfigTable) -> None:
    """Report a store on this machine that is no file."""
    store = table["store"]
    if _is_file(store):
        check_exists(table, "store")
        if os.path.isdir(store):
            table.fault("store", f"`store` is a folder: {store}")


def _is_file(store: str | None) -> bool:
    """Whether a store is a file on this machine, not a URL."""
    return store is not None and not isinstance(store, SecretUrl)


def _check_glob(table: ConfigTable, name: str, pattern: str, *, may_be_empty: bool) -> None:
    base = _before_wild(pattern)
    if not os.path.isdir(base):
        table.fault(name, f"there is no folder {base}", _near(base))
    elif not may_be_empty and _PLAIN_GLOB.fullmatch(pattern) and not any(glob.iglob(pattern)):
        table.fault(name, f"there is no file or folder {pattern}")


def _before_wild(pattern: str) -> str:
    parts = pattern.split("/")
    wild = next(index for index, part in enumerate(parts) if _WILD.search(part))
    return "/".join(parts[:wild]) or "/"


def _near(path: str) -> str | None:
    """A hint with a similar name in the folder of a path that does not exist."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder) as entries:
            return did_you_mean(name, [entry.name for entry in islice(entries, _MOST_NAMES)])
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Location:
    """A file or folder that a pipeline reads or writes."""

    title: str
    table: ConfigTable | None
    """The table with the key; None if the location is a default, which the file does not name."""
    key: str
    location: str
    canonical: str
    """The location with links resolved and without a final slash, to compare it with others."""
    exclusive: bool
    """Whether nothing else may be written inside this location."""

    def contains(self, other: _Location) -> bool:
        """Whether the other is this location, or inside it."""
        inner = other.canonical
        path = local_path(self.location)
        if path is not None and is_glob(str(path)) and not os.path.exists(path):
            within = PurePosixPath(inner)
            return any(each.match(str(path)) for each in (within, *within.parents))
        return inner == self.canonical or inner.startswith(self.canonical + "/")

    def fault(self, message: str) -> None:
        if self.table is not None:
            self.table.fault(self.key, message)


def check_no_overlaps(root: ConfigTable) -> None:
    """Report outputs that would overwrite an input or another output."""
    clashes = list(_clashes(list(_inputs(root)), list(_outputs(root))))
    # Defaults follow from locations that the file names. If some of those clash, only those are reported.
    named = [clash for clash in clashes if clash[0].table is not None and clash[1].table is not None]
    for first, second, message in named or clashes:
        (second if first.table is None else first).fault(message)


def _clashes(inputs: list[_Location], outputs: list[_Location]) -> Iterator[tuple[_Location, _Location, str]]:
    """Pairs of locations that clash, with the message. The first of a pair is the one to change."""
    for output, source in product(outputs, inputs):
        if source.contains(output):
            yield output, source, f"{output.title} would be written to {output.location}, where {source.title} is read"
        elif output.exclusive and output.contains(source):
            yield output, source, f"{output.title} would be written to {output.location}, around {source.title}"
    for first, second in combinations(outputs, 2):
        if first.canonical == second.canonical:
            yield second, first, f"{second.title} and {first.title} would both be written to {first.location}"
        elif first.exclusive and first.contains(second):
            yield second, first, f"{second.title} would be written into the folder of {first.title}, {first.location}"
        elif second.exclusive and second.contains(first):
            yield second, first, f"{second.title} would be written around {first.title}, {first.location}"


def _inputs(root: ConfigTable) -> Iterator[_Location]:
    yield from _location("the schema", root, "schema")
    yield from _location("the source", root.values.get("source"), "path")
    for number, table in enumerate(root.values.get("enrichments", ()), 1):
        yield from _location(f"[[enrich]] number {number}", table, "path")
    yield from _location("the file of subscriptions", root.values.get("subscriptions"), "path")
    yield from _location("the index", root.values.get("subscriptions"), "index")
    for table in (root.values.get("subscriptions"), *root.values.get("sinks", ())):
        if table is not None and _is_file(table["store"]):  # a store is an input too, because nothing may overwrite it
            yield from _location("the store", table, "store")


def _outputs(root: ConfigTable) -> Iterator[_Location]:
    for sink in root.values.get("sinks", ()):
        yield from _location(f"sink `{sink['name']}`", sink, "path", exclusive=True)
    yield from _location("dead letters", root.values.get("dead_letters"), "path", exclusive=True)
    yield from _location("the checkpoint", root, "checkpoint")
    yield from _location("the index versions that are kept", root.values.get("subscriptions"), "keep", exclusive=True)
    yield from _location("the JSON metrics", root.values.get("metrics"), "json")
    yield from _location("the Prometheus metrics", root.values.get("metrics"), "prometheus")


def _location(title: str, table: ConfigTable | None, name: str, *, exclusive: bool = False) -> Iterator[_Location]:
    location = None if table is None else table[name]
    if table is not None and location is not None:
        yield _Location(title, table if name in table else None, name, location, _canonical(location), exclusive)


def _canonical(location: str) -> str:
    path = local_path(location)
    if path is not None:
        return os.path.realpath(path).rstrip("/")
    scheme, _, rest = location.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath(rest)}"
