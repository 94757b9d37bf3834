"""Files below a root that only Spark's Java can reach, by Hadoop's file systems."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError
from harken.versions import files
from harken.versions.files import Files, files_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files_of(root: str | os.PathLike[str], spark: SparkSession | None = None) -> Files:
    """The files below a root. With a session, which only the driver has, by Hadoop where pyarrow cannot reach them.

    Raises SourceError if neither can reach the root.
    """
    if spark is None or getattr(spark, "_jvm", None) is None:
        return files.files_of(root)
    return files.files_of(root, lambda text: HadoopFiles(text, spark))


class HadoopFiles(Files):
    """Files on a file system of Hadoop, reached through Spark's Java. Only the driver can use them."""

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
        for each in files_in(source):
            place = self._path(f"{self._at(folder)}/{each}")
            self._system.copyFromLocalFile(False, True, self._path(str(source / each)), place)

    def remove(self, name: str) -> None:
        self._system.delete(self._path(self._at(name)), True)

    def _at(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}".rstrip("/")


def _java_reason(error: Exception) -> str:
    """The message of a Java error, without the stack trace."""
    cause = getattr(error, "java_exception", None)
    return str(cause.getMessage() if cause is not None else error)
