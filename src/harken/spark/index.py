"""An index that lies in versions below a root: whoever holds a version can use it as long as the query lives.

current.json                     the version that counts, written last
version-00000002-3f6c…/          a saved engine, never changed: manifest.harken, *.segment, version.json
version-00000002-3f6c…/shards-4/ the same cut in parts, made when it is first asked for
pins/NAME                        a version that somebody may need again: a reader, or a replay
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.engine import Engine
from harken.errors import HarkenError, SegmentError, SourceError
from harken.spark.files import Files, LocalFiles, files_of
from harken.spark.leases import Batch, is_left_behind, lease_name, take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = 10
"""Versions that stay, besides those that are pinned."""
_FORMAT = 1
_CURRENT = "current.json"
_OWN = "version.json"
_MANIFEST = "manifest.harken"
_PINS = "pins"
_LOCK = "lock"
_FOLDER = re.compile(r"version-(\d{8,})-[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A version of an index: where it lies, and what is to be known of it without opening it."""

    root: str
    folder: str
    version: int
    fingerprint: str
    """Of all that is in it: versions that have the same are the same."""
    subscriptions: int
    nbytes: int
    """Of its files."""
    attributes: tuple[str, ...] | None = None
    """The columns that an event needs, None for all of them."""
    favourite: str | None = None
    """The column by which most subscriptions are found, if there is such a one."""
    built: float = 0.0
    """When, in seconds since 1970."""
    source: str | None = None
    """What it was built from, if whoever built it said so."""
    asks: tuple[tuple[tuple[str, ...], str | None], ...] | None = None
    """The paths of the attributes that subscriptions ask for, each with the kind of its values, None for any. None if
    that is not known: the index has to be opened."""

    def files(self, spark: SparkSession | None = None) -> Files:
        return files_of(self.root, spark)


class Index:
    """The versions below a root. Many may read, on any machine; one at a time publishes."""

    def __init__(self, root: str | PathLike[str], spark: SparkSession | None = None) -> None:
        self.files = files_of(root, spark)
        self.root = self.files.root
        self._spark = spark

    def current(self) -> IndexVersion:
        """The version that counts now. Raises SegmentError if there is none."""
        found = self._read(_CURRENT)
        if found is None:
            hint = "harken.spark.build_index(subscriptions, path) publishes one"
            raise SegmentError(f"{self.root} has no index: there is no {_CURRENT} in it", hint=hint)
        return found

    def version(self, number: int) -> IndexVersion:
        """A version by its number. Raises SegmentError if it is not there, or not any more."""
        for folder in self._folders().get(number, []):
            found = self._read(f"{folder}/{_OWN}")
            if found is not None:
                return found
        hint = f"it has {', '.join(map(str, self.versions())) or 'none'}"
        raise SegmentError(f"{self.root} does not have version {number} of the index", hint=hint)

    def versions(self) -> list[int]:
        """The numbers of all versions that are there, ascending."""
        return sorted(self._folders())

    def publish(self, engine: Engine, *, source: str | None = None, keep: int = KEPT) -> IndexVersion:
        """Save an engine as the next version, and make it the one that counts.

        Raises SegmentError or SourceError: then the version before still counts.
        """
        with self._publishing():
            before = self._read(_CURRENT)
            number = max([0 if before is None else before.version, *self._folders()]) + 1
            folder = f"version-{number:08d}-{uuid.uuid4().hex[:8]}"
            try:
                published = _stored(engine, self.files, folder, number, source)
                self.files.write(_CURRENT, _text(published))
            except BaseException:
                counts = self._read(_CURRENT)
                if counts is None or counts.folder != folder:  # else it was written before something failed
                    self.files.remove(folder)
                raise
            self._remove_old(keep, number)
            return published

    def pin(self, name: str, version: int) -> None:
        """Keep a version until the same name pins another one, or lets go of it."""
        with self._publishing():
            self.files.write(f"{_PINS}/{name}", str(version).encode())

    def unpin(self, name: str) -> None:
        """Let go of what a name has pinned."""
        self.files.remove(f"{_PINS}/{name}")

    def hold(self, version: int, batch: Batch | None = None) -> None:
        """Keep a version as long as its reader needs it, where the index can be written to.

        The reader is a streaming query, in a batch of its own, or this process: see `harken.spark.leases`.
        """
        name = lease_name(version, batch)
        with suppress(HarkenError, OSError):
            self.pin(name, version)
            take(self.root, name, batch, partial(self.unpin, name))

    def pinned(self) -> dict[str, int]:
        """What is pinned, by name. What a process of this machine held that is no more is let go of."""
        found = {}
        for name in self.files.names(_PINS):
            text = self.files.read(f"{_PINS}/{name}")
            if is_left_behind(name):
                self.unpin(name)
            elif text is not None and text.isdigit():
                found[name] = int(text)
        return found

    def cut(self, version: IndexVersion, parts: int) -> list[IndexVersion]:
        """A version in parts, each an index of its own. They are made once, and kept beside it."""
        from harken.spark.local import opened

        folders = [f"{version.folder}/shards-{parts}/part-{place:04d}" for place in range(parts)]
        with self._publishing():
            found = [self._read(f"{folder}/{_OWN}") for folder in folders]
            if not all(found):
                self.files.remove(f"{version.folder}/shards-{parts}")
                engines = opened(version, spark=self._spark).cut(parts)
                for folder, engine in zip(folders, engines, strict=True):
                    _stored(engine, self.files, folder, version.version, None)
                found = [self._read(f"{folder}/{_OWN}") for folder in folders]
        # Every part judges the whole event, so that all of them refuse the same ones.
        return [replace(each, attributes=version.attributes) for each in found if each is not None]

    def _read(self, name: str) -> IndexVersion | None:
        text = self.files.read(name)
        if text is None:
            return None
        try:
            plain = json.loads(text)
            if plain.pop("format") != _FORMAT:
                raise SegmentError(f"{self.root}/{name} is of a format that this Harken does not know")
            attributes, asks = plain.pop("attributes"), plain.pop("asks", None)
            plain["attributes"] = None if attributes is None else tuple(attributes)
            plain["asks"] = None if asks is None else tuple((tuple(path), kind) for path, kind in asks)
            return IndexVersion(self.root, **plain)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SegmentError(f"{self.root}/{name} cannot be understood: {error}") from error

    def _folders(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in self.files.names():
            match = _FOLDER.match(name)
            if match:
                found.setdefault(int(match[1]), []).append(name)
        return found

    def _remove_old(self, keep: int, newest: int) -> None:
        folders = self._folders()
        needed = {newest, *sorted(folders)[-max(keep, 1) :], *self.pinned().values()}
        for number in set(folders) - needed:
            for folder in folders[number]:
                self.files.remove(folder)

    @contextmanager
    def _publishing(self) -> Iterator[None]:
        """One at a time, where the files are on this machine; elsewhere nobody can tell."""
        if not isinstance(self.files, LocalFiles):
            yield
            return
        import fcntl

        try:
            self.files.path.mkdir(parents=True, exist_ok=True)
            stream = (self.files.path / _LOCK).open("a")
        except OSError as error:
            raise SourceError(f"{self.root} cannot be written: {error.strerror or error}") from error
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _stored(engine: Engine, files: Files, folder: str, number: int, source: str | None) -> IndexVersion:
    """Save an engine below a root."""
    if isinstance(files, LocalFiles):
        return _described(engine, files, folder, files.path / folder, number, source)
    with tempfile.TemporaryDirectory(prefix="harken-index-") as place:
        described = _described(engine, files, folder, Path(place) / "saved", number, source)
        files.upload(Path(place) / "saved", folder)
        return described


def _described(engine: Engine, files: Files, folder: str, place: Path, number: int, source: str | None) -> IndexVersion:
    """Save an engine to a place on this machine, with its description beside it."""
    engine.export(place)
    attributes, asks = engine.attributes(), engine.asks()
    described = IndexVersion(
        root=files.root,
        folder=folder,
        version=number,
        fingerprint=_fingerprint((place / _MANIFEST).read_bytes()),
        subscriptions=len(engine),
        nbytes=sum(each.stat().st_size for each in place.iterdir() if each.suffix == ".segment"),
        attributes=None if attributes is None else tuple(sorted(attributes)),
        favourite=engine.favourite(),
        built=round(time.time(), 3),
        source=source,
        asks=None if asks is None else tuple((path, None if kind is None else str(kind)) for path, kind in asks),
    )
    LocalFiles(place).write(_OWN, _text(described))
    return described


def fingerprint_of(place: Path) -> str | None:
    """The fingerprint of the version in a folder of this machine, None if there is none.

    The manifest has the checksums of all files, which are verified when they are opened.
    """
    manifest = LocalFiles(place).read(_MANIFEST)
    return None if manifest is None else _fingerprint(manifest)


def _fingerprint(manifest: bytes) -> str:
    return hashlib.sha256(manifest).hexdigest()[:32]


def _text(version: IndexVersion) -> bytes:
    plain: dict[str, Any] = {"format": _FORMAT, **asdict(version)}
    del plain["root"]  # an index may be copied to elsewhere
    return json.dumps(plain, indent=1).encode()
