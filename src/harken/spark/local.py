"""A version of an index on the machine that matches: mapped in place, or from a copy that is made once per machine.

Every process of a machine maps the same files, so they share the memory. A process keeps the engines that it opened
last: a Python worker of Spark's is used for many tasks.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tarfile
import tempfile
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from harken.engine import Engine
from harken.errors import HarkenError, SegmentError
from harken.spark.files import files_of, local_path
from harken.spark.index import IndexVersion, fingerprint_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CACHE = "HARKEN_CACHE"
"""The environment variable that names the folder in which copies are kept; by default the one for temporary files."""
_OPEN = 2
_DAY = 86_400
_COPY = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9a-f]{8}")
"""The names of copies: a fingerprint, and while one is made or removed, a dot before it and a random end."""

_engines: OrderedDict[str, Engine] = OrderedDict()


def opened(version: IndexVersion, shipped: str | None = None, spark: SparkSession | None = None) -> Engine:
    """The engine of a version. `shipped` names the file of Spark's that holds it, if it was sent along.

    With a session, which only the driver has, it may also lie where only Spark can reach. Raises SegmentError or
    SourceError if it cannot be had.
    """
    known = _engines.get(version.fingerprint)
    if known is not None:
        _engines.move_to_end(version.fingerprint)
        return known
    engine = _loaded(version, shipped, spark)
    _engines[version.fingerprint] = engine
    while len(_engines) > _OPEN:
        _engines.popitem(last=False)
    return engine


def packed(version: IndexVersion, target: Path) -> Path:
    """A version on this machine as one file, for Spark to send along."""
    root = local_path(version.root)
    assert root is not None, "only what is on this machine is sent along"
    file = target / shipped_name(version)
    with tarfile.open(file, "w") as archive:
        for each in sorted((root / version.folder).iterdir()):
            if each.is_file() and each.name != "lock":
                archive.add(each, each.name)
    return file


def shipped_name(version: IndexVersion) -> str:
    return f"harken-{version.fingerprint}.tar"


def _loaded(version: IndexVersion, shipped: str | None, spark: SparkSession | None) -> Engine:
    """Map a version in place, or from this machine's copy. A copy that is damaged is made again, once."""
    fetch = _fetching(version, shipped, spark)
    if fetch is None:
        return _mapped(_in_place(version))
    place = _copied(version, fetch)
    try:
        return _mapped(place)
    except SegmentError:
        return _mapped(_copied(version, fetch, anew=True))


def _mapped(place: Path) -> Engine:
    return Engine.load(place, rebuild=False, background=False)  # an old index is not rebuilt on every machine


def _fetching(version: IndexVersion, shipped: str | None, spark: SparkSession | None) -> Callable[[Path], None] | None:
    """What brings the files of a version to a folder of this machine; None if they are on it."""
    if shipped is not None:
        return lambda target: _unpack(shipped, target)
    if local_path(version.root) is None:
        return lambda target: files_of(version.root, spark).download(version.folder, target)
    return None


def _in_place(version: IndexVersion) -> Path:
    root = local_path(version.root)
    assert root is not None, "only what is on this machine is mapped in place"
    place = root / version.folder
    found = fingerprint_of(place)
    if found is None:
        raise SegmentError(
            f"version {version.version} of the index is not in {root} on the machine {os.uname().nodename}",
            hint="was it removed? An index that many machines use belongs where all of them can read it",
        )
    if found != version.fingerprint:
        raise _another_version(version, place)
    return place


def _copied(version: IndexVersion, fetch: Callable[[Path], None], anew: bool = False) -> Path:
    """The copy of a version on this machine, made if need be: by one process, while the others wait.

    A folder of that name that holds anything else is replaced. With `anew` the copy is replaced in any case.
    """
    cache = _cache()
    place = cache / version.fingerprint
    with _locked(cache / f"{version.fingerprint}.lock") as log:
        if anew or fingerprint_of(place) != version.fingerprint:
            _remove_old(cache)
            unfinished = _aside(place)
            try:
                fetch(unfinished)
                _require_that_version(version, unfinished)
                _remove_copy(place)
                unfinished.replace(place)
                log.write(f"{datetime.now(UTC).isoformat()} copied by process {os.getpid()} from {version.root}\n")
            except OSError as error:
                raise SegmentError(f"the index cannot be copied to {cache}: {error.strerror or error}") from error
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        os.utime(place)
    return place


def _require_that_version(version: IndexVersion, copy: Path) -> None:
    """Raise SegmentError if what was copied is not the version that was asked for."""
    found = fingerprint_of(copy)
    if found is None:
        raise SegmentError(f"version {version.version} of the index is not in {version.root} any more")
    if found != version.fingerprint:
        raise _another_version(version, f"{version.root}/{version.folder}")


def _another_version(version: IndexVersion, place: object) -> SegmentError:
    hint = "a version never changes: was another index written to this place? Publish it again"
    return SegmentError(f"{place} does not hold version {version.version} of the index as it was published", hint=hint)


def _unpack(name: str, target: Path) -> None:
    from pyspark import SparkFiles

    with tarfile.open(SparkFiles.get(name)) as archive:
        archive.extractall(target, filter="data")


def _cache() -> Path:
    """The folder of this user's copies. It is Harken's own: whatever else the folder around it holds is left alone."""
    cache = Path(os.environ.get(CACHE) or tempfile.gettempdir()) / f"harken-{os.getuid()}"
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
        if cache.stat().st_uid != os.getuid():
            raise PermissionError(f"{cache} belongs to somebody else")
    except OSError as error:
        hint = f"set {CACHE} to a folder that can be written to"
        raise HarkenError(f"there is no place for copies of an index: {error}", hint=hint) from error
    return cache


@contextmanager
def _locked(path: Path) -> Iterator[TextIO]:
    """The file, which is a log of copies too, for one process at a time."""
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def _remove_old(cache: Path) -> None:
    """Remove copies that nobody opened for a day. Who has one open keeps it."""
    for each in cache.iterdir():
        with suppress(OSError):
            if _COPY.fullmatch(each.name) and each.is_dir() and each.stat().st_mtime < time.time() - _DAY:
                _remove_copy(each)


def _remove_copy(place: Path) -> None:
    """Remove a copy, if it is there. It is renamed first: a copy is there as a whole or not at all."""
    going = _aside(place)
    with suppress(FileNotFoundError):
        place.rename(going)
    shutil.rmtree(going, ignore_errors=True)


def _aside(place: Path) -> Path:
    """A name of its own beside a copy, for one that is being made or removed."""
    return place.with_name(f".{place.name.lstrip('.')[:32]}.{uuid.uuid4().hex[:8]}")
