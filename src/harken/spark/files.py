"""Files below a root, wherever it is: on this machine, where pyarrow can reach, or where only Spark's Java can.

A root is a path or a URL. pyarrow knows `file:`, `s3:`, `gs:`, `hdfs:` and a few more; of all others the file systems
that Hadoop has in Spark are asked, which only the driver can do.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from harken.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Files(Protocol):
    """What there is to do with files. Names are relative to the root, their parts divided by slashes."""

    root: str

    def read(self, name: str) -> bytes | None:
        """What a file holds, None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place of another, if there is one."""

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, none if there is no folder."""

    def download(self, folder: str, target: Path) -> None:
        """Copy a folder of files, without those inside folders of it."""

    def upload(self, source: Path, folder: str) -> None:
        """Copy a folder to here, its manifest last."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""


def files_of(root: str | os.PathLike[str], spark: SparkSession | None = None) -> Files:
    """The files below a root. Raises SourceError if nobody here can reach it."""
    text = os.fspath(root)
    local = local_path(text)
    if local is not None:
        return LocalFiles(local)
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(text)
    except Exception as error:  # whatever a file system's own library raises
        if spark is not None and getattr(spark, "_jvm", None) is not None:
            return HadoopFiles(text, spark)
        hint = "use a path, or a URL that pyarrow or Spark can read"
        raise SourceError(f"nothing here can reach {text}: {error}", hint=hint) from error
    return ArrowFiles(text, system, path)


def local_path(root: str) -> Path | None:
    """The path that a root is on this machine, None if it is a URL of something else."""
    if not _SCHEME.match(root):
        return Path(root).absolute()
    parts = urlsplit(root)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


class LocalFiles:
    """Files on this machine."""

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
        unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            unfinished.replace(target)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise _unwritable(target, error) from error

    def names(self, folder: str = "") -> list[str]:
        try:
            return sorted(os.listdir(self.path / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def download(self, folder: str, target: Path) -> None:
        try:
            target.mkdir(parents=True, exist_ok=True)
            for each in _manifest_last([each.name for each in (self.path / folder).iterdir() if each.is_file()]):
                shutil.copyfile(self.path / folder / each, target / each)
        except OSError as error:
            raise _unreadable(self.path / folder, error) from error

    def upload(self, source: Path, folder: str) -> None:
        LocalFiles(source).download("", self.path / folder)

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self.path / name).unlink()
        shutil.rmtree(self.path / name, ignore_errors=True)


class ArrowFiles:
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
            for each in _manifest_last([each.base_name for each in self._infos(folder) if each.is_file]):
                source = f"{self._at(folder)}/{each}"
                fs.copy_files(source, str(target / each), self._system, fs.LocalFileSystem())
        except OSError as error:
            raise _unreadable(self._at(folder), error) from error

    def upload(self, source: Path, folder: str) -> None:
        from pyarrow import fs

        target = self._at(folder)
        try:
            self._system.create_dir(target, recursive=True)
            for each in _manifest_last([each.name for each in source.iterdir() if each.is_file()]):
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

        found: list[Any] = self._system.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
        return found


class HadoopFiles:
    """Files that a file system of Hadoop's, inside Spark's Java, can reach. Only the driver can use them."""

    def __init__(self, root: str, spark: SparkSession) -> None:
        self.root = root
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.hadoop.io.IOUtils
        self._bytes = jvm.java.io.ByteArrayOutputStream
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        try:
            self._system = self._path(root).getFileSystem(configuration)
        except Exception as error:  # Java's, which py4j wraps
            raise SourceError(f"neither pyarrow nor Spark can reach {root}: {_java_reason(error)}") from error

    def read(self, name: str) -> bytes | None:
        place = self._path(self._at(name))
        if not self._system.exists(place):
            return None
        buffer = self._bytes()
        stream = self._system.open(place)
        self._io.copyBytes(stream, buffer, 65_536, True)
        return bytes(buffer.toByteArray())

    def write(self, name: str, data: bytes) -> None:
        stream = self._system.create(self._path(self._at(name)), True)
        try:
            stream.write(data)
        finally:
            stream.close()

    def names(self, folder: str = "") -> list[str]:
        place = self._path(self._at(folder))
        if not self._system.exists(place):
            return []
        return sorted(each.getPath().getName() for each in self._system.listStatus(place))

    def download(self, folder: str, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for status in self._system.listStatus(self._path(self._at(folder))):
            if status.isFile():
                name = status.getPath().getName()
                self._system.copyToLocalFile(False, status.getPath(), self._path(str(target / name)), True)

    def upload(self, source: Path, folder: str) -> None:
        self._system.mkdirs(self._path(self._at(folder)))
        for each in _manifest_last([each.name for each in source.iterdir() if each.is_file()]):
            place = self._path(f"{self._at(folder)}/{each}")
            self._system.copyFromLocalFile(False, True, self._path(str(source / each)), place)

    def remove(self, name: str) -> None:
        self._system.delete(self._path(self._at(name)), True)

    def _at(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}".rstrip("/")


def _manifest_last(names: list[str]) -> list[str]:
    """A folder that has its manifest has everything."""
    return sorted(names, key=lambda name: (not name.endswith(".segment"), name))


def _unreadable(path: object, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read: {error.strerror or error}")


def _unwritable(path: object, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be written: {error.strerror or error}")


def _java_reason(error: Exception) -> str:
    """What Java has to say, without its stack."""
    cause = getattr(error, "java_exception", None)
    return str(cause.getMessage() if cause is not None else error)
