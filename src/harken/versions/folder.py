"""A local folder of array files, in versions: a complete version is always there, even if a writer is killed.

    manifest.harken              names the files of the current version; written last, and replaced by one rename
    index-00000012.segment       a file, named after its content and the version that it was written for
    lock                         held by the writer, while there is one

A new version is written beside the current one. The files of a version stay until two more are published, so that a
reader of an old manifest can still open them. Open files stay usable after that.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.errors import FolderLockedError, SegmentError
from harken.kernels.checksum import checksum
from harken.versions.array_file import ArrayFile, Seal, check_format, read_arrays, write_arrays, writing
from harken.versions.atomic import sync_folder
from harken.versions.files import LocalFiles
from harken.versions.locks import locked

FORMAT = 1
MANIFEST = "manifest.harken"
LOCK = "lock"
_TITLE = "harken manifest"
log = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
# Names that writers create: files, unfinished files, and unfinished manifests.
_SEGMENT = re.compile(r"[a-z][a-z0-9_]*-(\d{8,})\.segment\Z")
_UNFINISHED = re.compile(rf"\.(?:[a-z][a-z0-9_]*-\d{{8,}}\.segment|{re.escape(MANIFEST)})\.[0-9a-f]{{8}}\.tmp\Z")
_TIME_STEP = 1_000
"""Minimal step of the manifest's modification time, in nanoseconds, so that it differs between versions."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of a version: its name in the folder, and its seal."""

    file: str
    seal: Seal


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files and the metadata of a version."""

    version: int
    """From 1 on."""
    files: Mapping[str, NamedFile]
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """A version, opened."""

    version: int
    files: Mapping[str, ArrayFile]
    meta: Mapping[str, Any]


@dataclass(slots=True)
class VersionDraft:
    """A version that is being written."""

    folder: Path
    version: int
    before: Manifest | None
    """The manifest of the previous version, if there is one."""
    meta: dict[str, Any] = field(default_factory=dict)
    """The metadata of the version; must be JSON-serializable."""
    files: dict[str, NamedFile] = field(default_factory=dict)

    def write(self, name: str, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any] | None = None) -> None:
        """Write a file. Names consist of lower-case letters, digits and underscores, and start with a letter."""
        if not _NAME.match(name) or name in self.files:
            raise ValueError(f"{name!r} is no name for a file, or is taken")
        file = f"{name}-{self.version:08d}.segment"
        self.files[name] = NamedFile(file, write_arrays(self.folder / file, arrays, meta or {}))

    def keep(self, name: str) -> None:
        """Reuse a file of the previous version."""
        if self.before is None:
            raise KeyError(name)
        self.files[name] = self.before.files[name]


class Folder:
    """A folder whose current version can be opened. Many processes may read it; one at a time writes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))  # the process may change its working directory
        self._manifest = self.path / MANIFEST
        self._last_read: tuple[tuple[int, int, int], Manifest] | None = None
        """Identifies the manifest file that was read last, and its content."""
        self._opened: Manifest | None = None
        self._in_use: Manifest | None = None
        """The version in use: the last one that was opened and kept, or published."""
        self._is_gone = False

    def identity(self) -> tuple[int, int]:
        """Device and inode, which identify the folder under any path. (0, 0) if it does not exist."""
        try:
            status = os.stat(self.path)
        except OSError:
            return 0, 0
        return status.st_dev, status.st_ino

    def current(self) -> Manifest:
        """The current version. Raises SegmentError if there is none, or its manifest is damaged."""
        manifest = self._read()
        if manifest is None:
            raise SegmentError(f"{self.path} has no saved index: there is no {MANIFEST} in it")
        return manifest

    def open(self) -> Contents:
        """The current version with its files, all of them checked."""
        manifest = self.current()
        while True:
            try:
                files = {name: self._open(manifest, each) for name, each in manifest.files.items()}
                self._opened = manifest
                return Contents(manifest.version, files, manifest.meta)
            except SegmentError:
                current = self.current()
                if current.version == manifest.version:
                    raise
                manifest = current  # two versions were published meanwhile, which removed the files of this one

    def keep(self) -> None:
        """Mark the version opened last as the one in use, with which `has_changed` compares."""
        self._in_use = self._opened

    def has_changed(self) -> bool:
        """Whether the current version differs from the one in use.

        Reads the manifest only if its file changed. If the manifest is gone, logs a warning once and returns False.
        """
        try:
            if self._last_read is None or _mark(os.stat(self._manifest)) != self._last_read[0]:
                self._read()
        except FileNotFoundError:
            if not self._is_gone:
                log.warning("%s is gone: the index that was loaded from it stays in use", self._manifest)
            self._is_gone = True
            return False
        self._is_gone = False
        return self._last_read is not None and self._last_read[1] != self._in_use

    @contextmanager
    def publishing(self) -> Iterator[VersionDraft]:
        """A draft that becomes the current version when the block ends, and is removed on an error.

        Raises FolderLockedError if another writer holds the lock.
        """
        with self._locked():
            before = self._read()
            self._remove_leftovers()
            draft = VersionDraft(self.path, 1 if before is None else before.version + 1, before)
            try:
                yield draft
                self._write(draft)
            except BaseException:
                self._remove_leftovers()
                raise
            named = {each.file for each in draft.files.values()}
            if before is not None:
                named |= {each.file for each in before.files.values()}
            self._remove(each for each in self._files() if each not in named)
            self._opened = self._in_use = self._read()

    # Reading

    def _read(self) -> Manifest | None:
        try:
            with self._manifest.open("rb") as stream:
                mark = _mark(os.fstat(stream.fileno()))
                text = stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SegmentError(f"{self._manifest} cannot be read: {error.strerror or error}") from error
        manifest = _parsed(self._manifest, text)
        self._last_read = mark, manifest
        return manifest

    def _open(self, manifest: Manifest, wanted: NamedFile) -> ArrayFile:
        path = self.path / wanted.file
        array_file = read_arrays(path)
        if array_file.seal != wanted.seal:
            raise SegmentError(
                f"{path} is not the file that version {manifest.version} was published with",
                hint="files of different folders were mixed: copy a folder as a whole, or save the index again",
            )
        return array_file

    # Writing

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                if not self.path.exists():
                    self.path.mkdir(parents=True, exist_ok=True)
                    sync_folder(self.path.parent)
                lock = stack.enter_context(locked(self.path / LOCK, self._busy))
                lock.truncate(0)
                lock.write(f"{os.getpid()}\n")
                lock.flush()
            except OSError as error:
                raise SegmentError(f"{self.path} cannot be written to: {error.strerror or error}") from error
            yield

    def _busy(self, holder: str) -> FolderLockedError:
        return FolderLockedError(
            f"{self.path} is being written to by another writer (process {holder or 'unknown'})",
            hint="one writer at a time: wait until it has finished, or save to another folder",
        )

    def _write(self, draft: VersionDraft) -> None:
        files = {
            name: {"file": each.file, "size": each.seal.size, "checksum": f"{each.seal.checksum:016x}"}
            for name, each in draft.files.items()
        }
        body = json.dumps({"version": draft.version, "files": files, "meta": draft.meta}, indent=1).encode()
        date = max(time.time_ns(), 0 if self._last_read is None else self._last_read[0][2] + _TIME_STEP)
        with writing(self._manifest) as stream:
            stream.write(f"{_TITLE} {FORMAT} {_checksum(body)}\n".encode())
            stream.write(body)
            stream.flush()
            os.utime(stream.fileno(), ns=(date, date))

    def _files(self) -> list[str]:
        """The files that writers created. Others in the folder are never touched."""
        return [each for each in os.listdir(self.path) if _SEGMENT.match(each) or _UNFINISHED.match(each)]

    def _remove_leftovers(self) -> None:
        """Remove the files of versions that were never published."""
        present = self._read()
        version = 0 if present is None else present.version
        self._remove(each for each in self._files() if _version_of(each) > version)

    def _remove(self, files: Iterator[str]) -> None:
        for each in files:
            with suppress(OSError):  # a leftover file is harmless, and the next writer tries again
                os.unlink(self.path / each)


def fingerprint_of(path: Path) -> str | None:
    """A hash that identifies the saved index in a folder, None if there is none.

    It hashes the manifest, which contains the checksums of all files.
    """
    manifest = LocalFiles(path).read(MANIFEST)
    return None if manifest is None else hashlib.sha256(manifest).hexdigest()[:32]


def _mark(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _version_of(file: str) -> float:
    """The version that a file was written for; infinite for unfinished files."""
    match = _SEGMENT.match(file)
    return float("inf") if match is None else int(match[1])


def _checksum(body: bytes) -> str:
    return f"{checksum(np.frombuffer(body, np.uint8)):016x}"


def _parsed(path: Path, text: bytes) -> Manifest:
    title, _, body = text.partition(b"\n")
    words = title.decode(errors="replace").split(" ")
    if " ".join(words[:2]) != _TITLE or len(words) != 4 or not words[2].isdecimal():
        raise SegmentError(f"{path} is not the manifest of a saved index")
    check_format(path, int(words[2]), FORMAT)
    if _checksum(body) != words[3]:
        raise SegmentError(
            f"{path} does not have the checksum that it was written with",
            hint="it was damaged or edited: save the index again, to another folder",
        )
    try:
        fields = json.loads(body)
        files = {
            name: NamedFile(each["file"], Seal(each["size"], int(each["checksum"], 16)))
            for name, each in fields["files"].items()
        }
        return Manifest(fields["version"], files, fields["meta"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SegmentError(f"{path} cannot be understood ({error})") from error
