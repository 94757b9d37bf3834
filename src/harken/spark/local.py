"""A version of an index on the machine that matches: mapped in place, or from a copy that is made once per machine.

Every process of a machine maps the same files, so they share the memory. A process keeps the engines that it opened
last: a Python worker of Spark's is used for many tasks.
"""

from __future__ import annotations

import fcntl
import os
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
from harken.spark.index import IndexVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CACHE = "HARKEN_CACHE"
"""The environment variable that tells where copies are kept; otherwise it is a folder for temporary files."""
_OPEN = 2
_DAY = 86_400
_MANIFEST = "manifest.harken"

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
    engine = Engine.load(_found(version, shipped, spark), rebuild=False, background=False)  # not on every machine
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


def _found(version: IndexVersion, shipped: str | None, spark: SparkSession | None) -> Path:
    """Where the files of a version are on this machine."""
    root = local_path(version.root)
    if shipped is not None:
        return _copied(version, lambda target: _unpack(shipped, target))
    if root is None:
        return _copied(version, lambda target: files_of(version.root, spark).download(version.folder, target))
    place = root / version.folder
    if not (place / _MANIFEST).is_file():
        raise SegmentError(
            f"version {version.version} of the index is not in {root} on the machine {os.uname().nodename}",
            hint="was it removed? An index that many machines use belongs where all of them can read it",
        )
    return place


def _copied(version: IndexVersion, fetch: Callable[[Path], None]) -> Path:
    """The copy of a version on this machine, made if need be: by one process, while the others wait."""
    cache = _cache()
    place = cache / version.fingerprint
    with _locked(cache / f"{version.fingerprint}.lock") as log:
        if not (place / _MANIFEST).is_file():
            _remove_old(cache)
            unfinished = cache / f".{version.fingerprint}.{uuid.uuid4().hex[:8]}"
            try:
                fetch(unfinished)
                if not (unfinished / _MANIFEST).is_file():
                    raise SegmentError(f"version {version.version} of the index is not in {version.root} any more")
                unfinished.replace(place)
                log.write(f"{datetime.now(UTC).isoformat()} copied by process {os.getpid()} from {version.root}\n")
            except OSError as error:
                raise SegmentError(f"the index cannot be copied to {cache}: {error.strerror or error}") from error
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        os.utime(place)
    return place


def _unpack(name: str, target: Path) -> None:
    from pyspark import SparkFiles

    with tarfile.open(SparkFiles.get(name)) as archive:
        archive.extractall(target, filter="data")


def _cache() -> Path:
    named = os.environ.get(CACHE)
    cache = Path(named) if named else Path(tempfile.gettempdir()) / f"harken-{os.getuid()}"
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not named and cache.stat().st_uid != os.getuid():
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
            if each.is_dir() and each.stat().st_mtime < time.time() - _DAY:
                going = each.with_name(f".{each.name}.{uuid.uuid4().hex[:8]}")
                each.rename(going)  # a copy is there as a whole or not at all
                shutil.rmtree(going, ignore_errors=True)
