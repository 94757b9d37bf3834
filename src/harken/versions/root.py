"""Versions below a root, local or remote. A version is a folder that never changes, so readers need no lock.

current.json                     describes the current version; written last
version-00000002-3f6c…/          a version, with its description in version.json
pins/NAME                        the number of a version to keep, for a reader or a replay
lock                             held by a process that publishes or pins, if the root is local
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from harken.errors import SegmentError
from harken.versions.files import Files, LocalFiles
from harken.versions.leases import is_left_behind

KEPT = 10
"""Number of the latest versions that are kept, besides pinned ones."""
Write = Callable[[Path], Mapping[str, Any]]
"""Writes a version to a local folder, and returns the fields of its description."""
_FORMAT = 1
_CURRENT = "current.json"
_OWN = "version.json"
_PINS = "pins"
_LOCK = "lock"
_FOLDER = re.compile(r"version-(\d{8,})-[0-9a-f]{8}\Z")


class Described(Protocol):
    """The description of a version, which can be read without opening it."""

    @property
    def folder(self) -> str:
        """The folder of the version, relative to the root."""

    @property
    def version(self) -> int:
        """The number of the version, from 1."""


V = TypeVar("V", bound=Described)


class Root(Generic[V]):
    """The versions below a root. Many processes on any machines may read; one at a time publishes.

    On a local root, a second writer waits for a lock. Remote roots have no lock.
    """

    how_to_publish: ClassVar[str | None] = None
    """The hint of the error for a root without versions."""

    def __init__(self, files: Files) -> None:
        self.files = files

    @property
    def root(self) -> str:
        """The path or URL of the root."""
        return self.files.root

    def current(self) -> V:
        """The current version. Raises SegmentError if there is none."""
        description = self._read(_CURRENT)
        if description is None:
            hint = self.how_to_publish
            raise SegmentError(f"{self.root} has no index: there is no {_CURRENT} in it", hint=hint)
        return description

    def version(self, number: int) -> V:
        """A version by its number. Raises SegmentError if it does not exist, or was removed."""
        for folder in self._folders().get(number, []):
            description = self._read_folder(folder)
            if description is not None:
                return description
        hint = f"existing versions: {', '.join(map(str, self.versions())) or 'none'}"
        raise SegmentError(f"{self.root} does not have version {number} of the index", hint=hint)

    def versions(self) -> list[int]:
        """The numbers of all versions, ascending."""
        return sorted(self._folders())

    def pin(self, name: str, version: int) -> None:
        """Keep a version until `name` pins another one or is unpinned."""
        with self._locked():
            self.files.write(f"{_PINS}/{name}", str(version).encode())

    def unpin(self, name: str) -> None:
        """Release the version that `name` has pinned."""
        self.files.remove(f"{_PINS}/{name}")

    def pinned(self) -> dict[str, int]:
        """The pinned versions, by name. Removes leases of dead processes of this machine."""
        pins = {}
        for name in self.files.names(_PINS):
            text = self.files.read(f"{_PINS}/{name}")
            if is_left_behind(name):
                self.unpin(name)
            elif (
                text is not None and text.isdigit() and not name.startswith(".")
            ):  # else the writer of the pin was killed
                pins[name] = int(text)
        return pins

    def _locked(self) -> AbstractContextManager[None]:
        """The lock of all writers below the root."""
        return self.files.locked(_LOCK)

    def _parsed(self, plain: dict[str, Any]) -> V:
        """A description from its JSON. Raises KeyError, TypeError or ValueError if the JSON is invalid."""
        raise NotImplementedError

    def _publish(self, write: Write, keep: int) -> V:
        """Write the next version, make it current, and remove all versions but the pinned ones and the last `keep`.

        After an error before current.json is replaced, the previous version stays current, and no files are left.
        """
        with self._locked():
            before = self._read(_CURRENT)
            number = max([0 if before is None else before.version, *self._folders()]) + 1
            folder = f"version-{number:08d}-{secrets.token_hex(4)}"
            try:
                text = self._store(folder, number, write)
                self.files.write(_CURRENT, text)
            except BaseException:
                current = self._read(_CURRENT)
                if current is None or current.folder != folder:  # else the version was published before the error
                    self.files.remove(folder)
                raise
            self._remove_old(keep, number)
            return self._understood(_CURRENT, text)

    def _store(self, folder: str, number: int, write: Write) -> bytes:
        """Write a version and its description to a folder below the root. Returns the description."""
        with self.files.filling(folder) as place:
            plain = {"format": _FORMAT, "folder": folder, "version": number, **write(place)}
            text = json.dumps(plain, indent=1).encode()
            LocalFiles(place).write(_OWN, text)
        return text

    def _read_folder(self, folder: str) -> V | None:
        return self._read(f"{folder}/{_OWN}")

    def _read(self, name: str) -> V | None:
        text = self.files.read(name)
        return None if text is None else self._understood(name, text)

    def _understood(self, name: str, text: bytes) -> V:
        try:
            plain = json.loads(text)
            if plain.pop("format") != _FORMAT:
                raise SegmentError(f"{self.root}/{name} is of a format that this Harken does not know")
            return self._parsed(plain)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SegmentError(f"{self.root}/{name} cannot be understood: {error}") from error

    def _folders(self) -> dict[int, list[str]]:
        """The folders of versions, by number. Concurrent writers to a remote root may take the same number."""
        folders: dict[int, list[str]] = {}
        for name in self.files.names():
            match = _FOLDER.match(name)
            if match:
                folders.setdefault(int(match[1]), []).append(name)
        return folders

    def _remove_old(self, keep: int, newest: int) -> None:
        folders = self._folders()
        needed = {newest, *sorted(folders)[-max(keep, 1) :], *self.pinned().values()}
        for number in set(folders) - needed:
            for folder in folders[number]:
                self.files.remove(folder)
