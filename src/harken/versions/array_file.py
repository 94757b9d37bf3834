"""A file of named arrays: written once, checked whenever it is opened, and mapped into memory.

    0    the magic                       8 bytes
    8    the version of the format       4 bytes, and 4 of zeros
    16   the length of the header        8 bytes
    24   the length of the file          8 bytes
    32   the checksum of everything up to the end of the header, computed with this field zeroed
    64   the header: JSON with the writer's metadata and, for every array, its name, type, shape, offset (from the end
         of the header) and checksum
         the arrays

All numbers are little endian. The header and each array start at a multiple of 64 bytes. The gaps are filled with
zeros, which the checksums cover too, so no bit of a file can change unnoticed.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.errors import SegmentError
from harken.kernels.checksum import LINE, checksum
from harken.versions.atomic import replacing

FORMAT = 1
_MAGIC = b"\x89HARKEN\n"
_PREFIX = struct.Struct("<8sIIQQQ24x")
_CHECKSUM_AT = 32
_TYPES = frozenset("|b1 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 <f4 <f8".split())
_DAMAGED = "the file was damaged after it was written, or not written to its end: save the index again"


class Seal(NamedTuple):
    """Identifies the content of a file: the checksum is the header's, which covers those of the arrays."""

    size: int
    checksum: int


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """The arrays of a file, and its metadata.

    The arrays are private: writing to them changes neither the file nor what other processes see. Unmodified pages are
    shared with all processes that have the file open.
    """

    arrays: Mapping[str, NDArray[Any]]
    meta: Mapping[str, Any]
    seal: Seal


class _Section(NamedTuple):
    """An array in the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    checksum: str
    readonly: bool
    """Whether to mark the array read-only when it is read: compiled code treats that as another type."""

    @property
    def size(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Seal:
    """Write a file, atomically and durably. `meta` must be JSON-serializable. Raises SegmentError."""
    sections: list[_Section] = []
    contents: list[NDArray[np.uint8]] = []
    offset = 0
    for name, array in arrays.items():
        if array.dtype.str not in _TYPES:
            raise TypeError(f"{name} is an array of {array.dtype}, which files do not hold")
        content = _bytes_of(array)
        digest = f"{checksum(content):016x}"
        sections.append(_Section(name, array.dtype.str, array.shape, offset, digest, not array.flags.writeable))
        contents.append(content)
        offset += _padded(len(content))
    header = json.dumps({"meta": meta, "sections": [each._asdict() for each in sections]}).encode()
    size = _PREFIX.size + _padded(len(header)) + offset
    head = _head(header, size, 0)
    seal = Seal(size, checksum(np.frombuffer(head, np.uint8)))
    with writing(path) as stream:
        stream.write(_head(header, size, seal.checksum))
        for content in contents:
            stream.write(content.data)
            stream.write(bytes(_padded(len(content)) - len(content)))
    return seal


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Replace a file of a saved index, durably, when the block ends. Raises SegmentError."""
    try:
        with replacing(path, durable=True) as stream:
            yield stream
    except OSError as error:
        raise SegmentError(f"{path} cannot be written: {error.strerror or error}") from error


def read_arrays(path: Path) -> ArrayFile:
    """Map a file into memory. Raises SegmentError if any bit of it has changed."""
    content = _mapped(path)
    seal, first, header = _read_header(path, content)
    arrays: dict[str, NDArray[Any]] = {}
    end = first
    try:
        meta = header["meta"]
        for fields in header["sections"]:
            section = _Section(**{**fields, "shape": tuple(fields["shape"])})
            if first + section.offset != end:
                raise ValueError(f"{section.name} does not start where the previous array ends")
            arrays[section.name], end = _read_section(path, content, end, section)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SegmentError(f"{path}: its header cannot be understood ({error})") from error
    if end != seal.size:
        raise SegmentError(f"{path}: {seal.size - end} bytes of it belong to no array")
    return ArrayFile(arrays, meta, seal)


def _padded(size: int) -> int:
    return -(-size // LINE) * LINE


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.ctypes.data % 8:
        flat = flat.copy()
    return flat.view(np.uint8)


def _head(header: bytes, size: int, header_checksum: int) -> bytes:
    """Everything in front of the arrays."""
    return _PREFIX.pack(_MAGIC, FORMAT, 0, len(header), size, header_checksum) + header.ljust(
        _padded(len(header)), b"\0"
    )


def _mapped(path: Path) -> NDArray[np.uint8]:
    try:
        with path.open("rb") as stream:
            if not os.fstat(stream.fileno()).st_size:
                raise SegmentError(f"{path} is empty", hint=_DAMAGED)
            return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
    except (OSError, ValueError) as error:
        raise SegmentError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _read_header(path: Path, content: NDArray[np.uint8]) -> tuple[Seal, int, Any]:
    """The seal of the file, the offset where its header ends, and the header's JSON."""
    start = content[: len(_MAGIC)].tobytes()
    if not _MAGIC.startswith(start):
        raise SegmentError(f"{path} is not a file of arrays that Harken wrote")
    if len(content) < _PREFIX.size:
        raise _torn(path, f"it has {len(content)} bytes, which is not even the beginning of a header")
    _, version, _, length, size, header_checksum = _PREFIX.unpack(content[: _PREFIX.size].tobytes())
    check_format(path, version, FORMAT)
    end = _PREFIX.size + _padded(length)
    if end > len(content):
        raise _torn(path, f"it has {len(content)} bytes, and its header alone takes {end}")
    head = content[:end].copy()
    head[_CHECKSUM_AT : _CHECKSUM_AT + 8] = 0
    if checksum(head) != header_checksum:
        raise SegmentError(f"{path}: its header does not have the checksum that it was written with", hint=_DAMAGED)
    if size != len(content):
        raise _torn(path, f"it has {len(content)} bytes, and {size} were written")
    try:
        return Seal(size, header_checksum), end, json.loads(head[_PREFIX.size : _PREFIX.size + length].tobytes())
    except ValueError as error:
        raise SegmentError(f"{path}: its header cannot be understood ({error})") from error


def check_format(path: Path, version: int, supported: int) -> None:
    """Raise SegmentError unless the version of a format is the supported one."""
    if version == supported:
        return
    newer = version > supported
    raise SegmentError(
        f"{path} has version {version} of its format, and this Harken reads version {supported}",
        hint="it was written by a newer Harken: upgrade, or save the index again" if newer else _DAMAGED,
    )


def _read_section(path: Path, content: NDArray[np.uint8], start: int, section: _Section) -> tuple[NDArray[Any], int]:
    """An array, and the offset of the next one."""
    if section.dtype not in _TYPES or min(section.shape, default=0) < 0:
        raise ValueError(f"{section.name} is of {section.dtype}, {section.shape}")
    end = start + _padded(section.size)
    if end > len(content):
        raise ValueError(f"{section.name} ends at {end}, behind the end of the file")
    if f"{checksum(content[start:end]):016x}" != section.checksum:
        raise SegmentError(
            f"{path}: the array {section.name} does not have the checksum that it was written with", hint=_DAMAGED
        )
    array = content[start : start + section.size].view(section.dtype).reshape(section.shape)
    array.flags.writeable = not section.readonly
    return array, end


def _torn(path: Path, reason: str) -> SegmentError:
    return SegmentError(f"{path} is torn: {reason}", hint=_DAMAGED)
