"""Files below a root, which is a local path or a URL that pyarrow can reach.

pyarrow supports `s3:`, `gs:`, `hdfs:` and a few more. For other URLs, callers may pass their own back end.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from harken.errors import SourceError
from harken.versions.atomic import replacing, sync_folder
from harken.versions.locks import Busy, locked

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Files(ABC):
    """The files below a root. Names are relative to it, with slashes."""

    root: str

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """The content of a file, None if it does not exist."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file."""

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """The names in a folder; empty if it does not exist."""

    @abstractmethod
    def download(self, folder: str, target: Path) -> None:
        """Copy the files of a folder to a local one, without its subfolders."""

    @abstractmethod
    def upload(self, source: Path, folder: str) -> None:
        """Copy the files of a local folder to a folder below the root, the manifest last."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        """A local folder to write to; when the block ends, its files are in `folder`."""
        with tempfile.TemporaryDirectory(prefix="harken-index-") as place:
            yield Path(place)
            self.upload(Path(place), folder)

    @contextmanager
    def locked(self, name: str, busy: Busy | None = None) -> Iterator[None]:
        """Hold a lock, as `locks.locked` does. For remote files this does nothing."""
        yield


def files_of(root: str | os.PathLike[str], elsewhere: Callable[[str], Files] | None = None) -> Files:
    """The files below a root. `elsewhere` makes the back end for URLs that pyarrow does not know.

    Raises SourceError if the root cannot be reached.
    """
    text = os.fspath(root)
    local = local_path(text)
    if local is not None:
        return LocalFiles(local)
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(text)
    except Exception as error:  # each file system's library raises its own types
        if elsewhere is not None:
            return elsewhere(text)
        hint = "use a path, or a URL that pyarrow or Spark can read"
        raise SourceError(f"cannot reach {text}: {error}", hint=hint) from error
    return ArrowFiles(text, system, path)


def local_path(root: str) -> Path | None:
    """The path of a local root, None for a remote one."""
    if not _SCHEME.match(root):
        return Path(root).absolute()
    parts = urlsplit(root)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


class LocalFiles(Files):
    """Local files. `write` flushes the file, and all folders from the root down to it, to disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = str(path)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path / name, error) from error

    def write(self, name: str, data: bytes) -> None:
        target = self.path / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                stream.write(data)
            for folder in (target.parent, *target.parent.parents):
                sync_folder(folder)
                if folder == self.path:
                    break
        except OSError as error:
            raise _unwritable(target, error) from error

    def names(self, folder: str = "") -> list[str]:
        try:
            return sorted(os.listdir(self.path / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def download(self, folder: str, target: Path) -> None:
        try:
            target.mkdir(parents=True, exist_ok=True)
            for each in files_in(self.path / folder):
                shutil.copyfile(self.path / folder / each, target / each)
        except OSError as error:
            raise _unreadable(self.path / folder, error) from error

    def upload(self, source: Path, folder: str) -> None:
        LocalFiles(source).download("", self.path / folder)

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self.path / name).unlink()
        shutil.rmtree(self.path / name, ignore_errors=True)

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        yield self.path / folder

    @contextmanager
    def locked(self, name: str, busy: Busy | None = None) -> Iterator[None]:
        lock = self.path / name
        with ExitStack() as stack:
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(lock, busy))
            except OSError as error:
                raise _unwritable(lock.parent, error) from error
            yield


class ArrowFiles(Files):
    """Files that pyarrow can reach."""

    def __init__(self, root: str, system: Any, path: str) -> None:
        self.root = root
        self._system = system
        self._path = path.rstrip("/")

    def read(self, name: str) -> bytes | None:
        try:
            with self._system.open_input_stream(self._at(name)) as stream:
                data: bytes = stream.readall()
                return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self._at(name), error) from error

    def write(self, name: str, data: bytes) -> None:
        target = self._at(name)
        try:
            self._system.create_dir(target.rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(target) as stream:
                stream.write(data)
        except OSError as error:
            raise _unwritable(target, error) from error

    def names(self, folder: str = "") -> list[str]:
        return sorted(each.base_name for each in self._infos(folder))

    def download(self, folder: str, target: Path) -> None:
        from pyarrow import fs

        target.mkdir(parents=True, exist_ok=True)
        try:
            for each in _manifest_last(each.base_name for each in self._infos(folder) if each.is_file):
                source = f"{self._at(folder)}/{each}"
                fs.copy_files(source, str(target / each), self._system, fs.LocalFileSystem())
        except OSError as error:
            raise _unreadable(self._at(folder), error) from error

    def upload(self, source: Path, folder: str) -> None:
        from pyarrow import fs

        target = self._at(folder)
        try:
            self._system.create_dir(target, recursive=True)
            for each in files_in(source):
                fs.copy_files(str(source / each), f"{target}/{each}", fs.LocalFileSystem(), self._system)
        except OSError as error:
            raise _unwritable(target, error) from error

    def remove(self, name: str) -> None:
        from pyarrow import fs

        kind = self._system.get_file_info(self._at(name)).type
        if kind == fs.FileType.Directory:
            self._system.delete_dir(self._at(name))
        elif kind == fs.FileType.File:
            self._system.delete_file(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}".rstrip("/")

    def _infos(self, folder: str) -> list[Any]:
        from pyarrow import fs

        infos: list[Any] = self._system.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
        return infos


def files_in(folder: Path) -> list[str]:
    """The names of the files in a local folder, manifest last: copied so, a folder with a manifest is complete."""
    return _manifest_last(each.name for each in folder.iterdir() if each.is_file())


def _manifest_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (not name.endswith(".segment"), name))


def _unreadable(path: object, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read: {error.strerror or error}")


def _unwritable(path: object, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be written: {error.strerror or error}")
