"""Open a version of an index on the machine that matches: map its files in place, or map a local copy.

All processes of a machine map the same files, and so share the memory. A process keeps the engines that it opened last,
because Spark uses a Python worker for many tasks.
"""

from __future__ import annotations

import os
import tarfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harken.engine import Engine
from harken.errors import SegmentError
from harken.spark.index_files import files_of
from harken.spark.index_versions import IndexVersion
from harken.spark.worker_operators import WorkerOperators
from harken.versions.copies import copied
from harken.versions.files import local_path
from harken.versions.folder import fingerprint_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPEN = 2
"""Engines that stay open."""

_engines: OrderedDict[str, Engine] = OrderedDict()


def opened(version: IndexVersion, shipped: str | None = None, spark: SparkSession | None = None) -> Engine:
    """The engine of a version. `shipped` names the file that Spark shipped with the job, if there is one.

    Only the driver has a session, with which the version may also be on a file system that only Spark reaches. Raises
    SegmentError or SourceError.
    """
    key = version.fingerprint + version.plugged.token
    cached = _engines.get(key)
    if cached is not None:
        _engines.move_to_end(key)
        return cached
    engine = _loaded(version, shipped, spark)
    _engines[key] = engine
    while len(_engines) > _OPEN:
        _engines.popitem(last=False)
    return engine


def packed(version: IndexVersion, target: Path) -> Path:
    """Pack a local version into one file, for Spark to ship."""
    root = local_path(version.root)
    assert root is not None, "only a version on this machine is packed"
    file = target / shipped_name(version)
    with tarfile.open(file, "w") as archive:
        for each in sorted((root / version.folder).iterdir()):
            if each.is_file() and each.name != "lock":
                archive.add(each, each.name)
    return file


def shipped_name(version: IndexVersion) -> str:
    return f"harken-{version.fingerprint}.tar"


def _loaded(version: IndexVersion, shipped: str | None, spark: SparkSession | None) -> Engine:
    """Map a version in place, or this machine's copy. A damaged copy is made once more."""
    fetch = _fetching(version, shipped, spark)
    if fetch is None:
        return _mapped(_in_place(version), version.plugged)
    place = copied(version.fingerprint, version.root, fetch)
    try:
        return _mapped(place, version.plugged)
    except SegmentError:
        return _mapped(copied(version.fingerprint, version.root, fetch, again=True), version.plugged)


def _mapped(place: Path, operators: WorkerOperators) -> Engine:
    return operators.loaded(place, rebuild=False)  # do not rebuild an old index on every machine


def _fetching(version: IndexVersion, shipped: str | None, spark: SparkSession | None) -> Callable[[Path], None] | None:
    """A function that copies a version to a local folder; None if the version is local."""
    if shipped is None and local_path(version.root) is not None:
        return None

    def fetch(target: Path) -> None:
        if shipped is not None:
            _unpack(shipped, target)
        else:
            files_of(version.root, spark).download(version.folder, target)
        _require_that_version(version, target)

    return fetch


def _in_place(version: IndexVersion) -> Path:
    root = local_path(version.root)
    assert root is not None, "only a version on this machine is mapped in place"
    place = root / version.folder
    fingerprint = fingerprint_of(place)
    if fingerprint is None:
        raise SegmentError(
            f"version {version.version} of the index is not in {root} on the machine {os.uname().nodename}",
            hint="was it removed? An index that many machines use belongs where all of them can read it",
        )
    if fingerprint != version.fingerprint:
        raise _another_version(version, place)
    return place


def _require_that_version(version: IndexVersion, copy: Path) -> None:
    """Raise SegmentError if a copy is not this version."""
    fingerprint = fingerprint_of(copy)
    if fingerprint is None:
        raise SegmentError(f"version {version.version} of the index is not in {version.root} any more")
    if fingerprint != version.fingerprint:
        raise _another_version(version, f"{version.root}/{version.folder}")


def _another_version(version: IndexVersion, place: object) -> SegmentError:
    hint = "a version never changes: was another index written to this place? Publish it again"
    return SegmentError(f"{place} does not hold version {version.version} of the index as it was published", hint=hint)


def _unpack(name: str, target: Path) -> None:
    from pyspark import SparkFiles

    with tarfile.open(SparkFiles.get(name)) as archive:
        archive.extractall(target, filter="data")
