"""Sources of rows and their formats: files, compressed files, standard input and open streams."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, BinaryIO, cast

from harken.errors import SourceError, did_you_mean

FORMATS = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "xml": "xml",
}
TEXT_FORMATS = frozenset({"jsonl", "json", "csv", "tsv", "xml"})
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of text: its name, the first bytes of every such file, and what opens one to read or write.

    Closing a stream that they return leaves the stream below it open.
    """

    name: str
    magic: bytes
    open: Callable[[Any], Any]
    create: Callable[[Any], Any]


class _Unclosed(io.RawIOBase):
    """Wraps a stream so that closing the wrapper leaves the stream open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size: int = self._stream.write(data)
        return size

    def readinto(self, buffer: Any) -> int:
        size: int = self._stream.readinto(buffer)
        return size


def _open_zstd(raw: Any) -> Any:
    import pyarrow

    return io.BufferedReader(cast(io.RawIOBase, pyarrow.CompressedInputStream(_Unclosed(raw), "zstd")))


def _create_zstd(raw: Any) -> Any:
    import pyarrow

    return io.BufferedWriter(cast(io.RawIOBase, pyarrow.CompressedOutputStream(_Unclosed(raw), "zstd")))


COMPRESSIONS = {
    ".gz": Compression(
        "gzip",
        b"\x1f\x8b",
        lambda raw: gzip.GzipFile(fileobj=raw),
        lambda raw: gzip.GzipFile("", "wb", fileobj=raw, mtime=0),
    ),
    ".xz": Compression("xz", b"\xfd7zXZ\x00", lzma.LZMAFile, partial(lzma.LZMAFile, mode="wb")),
    ".zst": Compression("zstd", b"\x28\xb5\x2f\xfd", _open_zstd, _create_zstd),
}

_KNOWN = (
    f"the known ones are {', '.join(f'.{ending}' for ending in FORMATS)}, "
    f"and after those of text {', '.join(COMPRESSIONS)}"
)
_LONGEST_MAGIC = max(len(each.magic) for each in COMPRESSIONS.values())
_IN_MEMORY = 16_777_216


@dataclass(frozen=True, slots=True)
class Source:
    """A source that can be opened: what to read, its name for messages, and its format."""

    what: str | BinaryIO
    name: str
    format: str

    @property
    def is_text(self) -> bool:
        return self.format in TEXT_FORMATS


def find_source(what: str | os.PathLike[str] | BinaryIO, format: str | None = None) -> Source:
    """The source that a path, `-` or an open binary stream names. Raises SourceError."""
    if isinstance(what, (str, os.PathLike)):
        path = os.fsdecode(what)
        if path == STANDARD_INPUT:
            return Source(path, "standard input", _format_named(format or "jsonl"))
        # Messages with a file name that is not UTF-8 must be printable.
        name = path.encode(errors="backslashreplace").decode()
        _check_readable(path, name)
        return Source(path, name, _format_of(name) if format is None else _format_named(format))
    if isinstance(what, io.TextIOBase) or not hasattr(what, "read"):
        raise SourceError(f"rows are read from a path or a binary stream, not from a {type(what).__name__}")
    own_name = getattr(what, "name", None)
    if not isinstance(own_name, str):
        return Source(what, "stream", _format_named(format or "jsonl"))
    return Source(what, own_name, _format_of(own_name) if format is None else _format_named(format))


@contextmanager
def opened(source: Source, *, seekable: bool = False) -> Iterator[BinaryIO]:
    """The decompressed bytes of the source. Errors of the file itself become SourceError."""
    try:
        with _raw(source) as raw, _decompressed(source, raw) as stream:
            if seekable and not (_is_rewindable(source, raw) and stream.seekable()):
                with _spooled(stream) as copy:
                    yield copy
            else:
                yield stream
    except EOFError:
        raise SourceError(f"{source.name} ends in the middle of its compressed data") from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise _unreadable(source.name, error) from error


@contextmanager
def _raw(source: Source) -> Iterator[Any]:
    if source.what == STANDARD_INPUT:
        yield from _borrowed(sys.stdin.buffer)
    elif isinstance(source.what, str):
        with open(source.what, "rb") as file:
            yield file
    else:
        yield from _borrowed(source.what)


def _borrowed(stream: BinaryIO) -> Iterator[Any]:
    """The caller's stream with `peek`; it stays open afterwards."""
    if isinstance(stream, io.BufferedReader):
        yield stream
        return
    reader = io.BufferedReader(cast(io.RawIOBase, stream))
    try:
        yield reader
    finally:
        reader.detach()


@contextmanager
def _decompressed(source: Source, raw: Any) -> Iterator[BinaryIO]:
    start = raw.peek(_LONGEST_MAGIC) if source.is_text else b""
    for compression in COMPRESSIONS.values():
        if start.startswith(compression.magic):
            with compression.open(raw) as stream:
                yield stream
            return
    expected = COMPRESSIONS.get(_ending(source.what)) if isinstance(source.what, str) else None
    if start and expected is not None:
        raise SourceError(f"{source.name} ends in {_ending(source.name)} but is not compressed with {expected.name}")
    yield raw


def _is_rewindable(source: Source, raw: BinaryIO) -> bool:
    """Only files are read twice: a caller's stream may be seekable and yet start in its middle."""
    return isinstance(source.what, str) and source.what != STANDARD_INPUT and raw.seekable()


@contextmanager
def _spooled(stream: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        shutil.copyfileobj(stream, cast(IO[bytes], copy))
        copy.seek(0)
        yield cast(BinaryIO, copy)


def format_of(path: str) -> str | None:
    """The format that the ending of a path implies; None if it implies none."""
    ending = _ending(path)
    is_compressed = ending in COMPRESSIONS
    if is_compressed:
        ending = _ending(os.path.splitext(path)[0])
    format = FORMATS.get(ending[1:])
    return None if is_compressed and format not in TEXT_FORMATS else format


def _format_of(path: str) -> str:
    format = format_of(path)
    if format is None:
        raise SourceError(f"the ending of {path} does not tell its format", hint=f"{_KNOWN}; or name the format")
    return format


def _ending(path: str) -> str:
    return os.path.splitext(path.lower())[1]


def _format_named(format: str) -> str:
    known_format = FORMATS.get(format.lower())
    if known_format is None:
        known = ", ".join(FORMATS)
        raise SourceError(
            f"{format!r} is not a known format", hint=did_you_mean(format, FORMATS) or f"the known ones are {known}"
        )
    return known_format


def _check_readable(path: str, name: str) -> None:
    try:
        # Do not open the file: that would end a named pipe.
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise IsADirectoryError(path)
        if not os.access(path, os.R_OK):
            raise PermissionError(path)
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceError(f"there is no file {name}")
    if isinstance(error, IsADirectoryError):
        return SourceError(f"{name} is a directory", hint="name a file in it")
    if isinstance(error, PermissionError):
        return SourceError(f"{name} may not be read: permission denied")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"{name} cannot be read: {reason}")
