"""Files of arrays: what was written comes back, as arrays like those that are built, and no damage goes unnoticed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harken.errors import SegmentError
from harken.kernels import checksum as kernels
from harken.kernels.checksum import checksum
from harken.versions import array_file as files
from harken.versions.array_file import read_arrays, write_arrays

RNG = np.random.default_rng(3)
ARRAYS: dict[str, NDArray[Any]] = {
    "ids": np.arange(1_000, dtype=np.int32),
    "fields": RNG.integers(-9, 9, (7, 3)),
    "bits": RNG.integers(0, 2**64 - 1, 33, np.uint64),
    "flags": RNG.integers(0, 2, 101).astype(np.bool_),
    "narrow": RNG.integers(0, 2**16, 5).astype(np.uint16),
    "part": RNG.random(9),
    "share": RNG.random(3).astype(np.float32),
    "empty": np.empty(0, np.uint32),
    "no rows/of eight": np.empty((0, 8), np.int64),
    "größe": np.array([1, 2], np.uint8),
}
META = {"columns": [{"path": ["a.b", "\ud800"], "kind": None}], "size": 2**70, "share": 0.1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.segment"
    write_arrays(path, ARRAYS, META)
    return path


# What comes back


def test_arrays_and_what_else_there_is_come_back(path: Path) -> None:
    found = read_arrays(path)
    assert found.meta == META
    assert list(found.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert np.array_equal(found.arrays[name], array), name


def test_arrays_are_like_those_that_are_built(path: Path) -> None:
    """Numba goes by type, order, alignment and whether they can be written to."""
    for array in read_arrays(path).arrays.values():
        assert type(array) is np.ndarray
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0 or not array.size


def test_writing_to_an_array_leaves_file_and_other_readers_alone(path: Path) -> None:
    before = path.read_bytes()
    mine, other = read_arrays(path), read_arrays(path)
    mine.arrays["ids"][:] = -1
    assert np.array_equal(other.arrays["ids"], ARRAYS["ids"])
    assert np.array_equal(read_arrays(path).arrays["ids"], ARRAYS["ids"])
    assert path.read_bytes() == before


def test_what_is_read_only_is_so_again(tmp_path: Path) -> None:
    array = np.frombuffer(b"abcdefgh" * 3, np.uint8)
    write_arrays(tmp_path / "x", {"data": array}, {})
    assert not read_arrays(tmp_path / "x").arrays["data"].flags.writeable


def test_arrays_in_any_order_and_at_any_place_of_memory(tmp_path: Path) -> None:
    odd = np.frombuffer(b"_" + bytes(range(80)), np.uint8)[1:]
    given = {"column first": np.asfortranarray(ARRAYS["fields"]), "every third": ARRAYS["ids"][::3], "odd": odd}
    write_arrays(tmp_path / "x", given, {})
    found = read_arrays(tmp_path / "x").arrays
    assert all(np.array_equal(found[name], array) for name, array in given.items())


def test_file_without_arrays(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {}, {"a": 1})
    assert read_arrays(tmp_path / "x").meta == {"a": 1}


def test_objects_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="names is an array of object"):
        write_arrays(tmp_path / "x", {"names": np.array(["a", None], object)}, {})
    assert not list(tmp_path.iterdir())


def test_replacing_a_file_leaves_those_who_have_it_open_alone(path: Path) -> None:
    opened = read_arrays(path)
    write_arrays(path, {"ids": np.zeros(1, np.int32)}, {})
    assert np.array_equal(opened.arrays["ids"], ARRAYS["ids"])
    assert read_arrays(path).arrays["ids"].tolist() == [0]


def test_failed_writing_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SegmentError, match=r"some\.segment cannot be written: No space left on device"):
        write_arrays(path, {}, {})
    monkeypatch.undo()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert read_arrays(path).meta == META


def test_reading_copies_nothing(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {"ids": RNG.integers(0, 2**31, 500_000)}, {})
    tracemalloc.start()
    try:
        read_arrays(tmp_path / "x")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 400_000, "a tenth of the file"


# Damage


def rejected(path: Path, content: bytes) -> str:
    """What is said of a file with this content."""
    path.write_bytes(content)
    with pytest.raises(SegmentError) as caught:
        read_arrays(path)
    assert str(path) in caught.value.message
    return caught.value.message


def places(size: int) -> list[int]:
    """The whole beginning, with the header's fields, and many places behind it."""
    return sorted({*range(72), *range(72, size, 97), size - 1})


def test_truncated_file(path: Path) -> None:
    content = path.read_bytes()
    for size in places(len(content)):
        told = rejected(path, content[:size])
        assert ("empty" if size == 0 else "torn") in told, size


def test_flipped_bits(path: Path) -> None:
    content = path.read_bytes()
    for place in places(len(content)):
        for bit in (0, 3, 7):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            rejected(path, bytes(damaged))


def test_every_bit_of_a_small_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {"a": np.array([5], np.int16)}, {})
    content = (tmp_path / "x").read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            rejected(tmp_path / "x", bytes(damaged))


def test_longer_file(path: Path) -> None:
    assert "torn: it has" in rejected(path, path.read_bytes() + bytes(64))


def test_zeroed_and_swapped_lines(path: Path) -> None:
    content = path.read_bytes()
    start = content.index(ARRAYS["ids"].tobytes())
    first, second = content[start : start + 64], content[start + 64 : start + 128]
    swapped = content[:start] + second + first + content[start + 128 :]
    assert "the array ids does not have the checksum" in rejected(path, swapped)
    assert "the array ids" in rejected(path, content[:start] + bytes(64) + content[start + 64 :])


def test_damaged_header_is_told(path: Path) -> None:
    content = path.read_bytes()
    assert "its header does not have the checksum" in rejected(path, content.replace(b'"meta"', b'"neta"'))


@pytest.mark.parametrize("content", [b"PAR1" * 100, b"{}", b"\x89PNG\r\n\x1a\n" + bytes(200), bytes(4_096), b"H"])
def test_foreign_file(path: Path, content: bytes) -> None:
    assert "is not a file of arrays that Harken wrote" in rejected(path, content)


def test_newer_format(path: Path) -> None:
    content = path.read_bytes()
    newer = content[:8] + struct.pack("<I", files.FORMAT + 1) + content[12:]
    assert f"has version {files.FORMAT + 1} of its format, and this Harken reads" in rejected(path, newer)
    with pytest.raises(SegmentError, match="written by a newer Harken: upgrade"):
        read_arrays(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(SegmentError, match="none cannot be read: No such file"):
        read_arrays(tmp_path / "none")
    with pytest.raises(SegmentError, match="cannot be read: Is a directory"):
        read_arrays(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        '{"meta": {}}',
        '{"meta": {}, "sections": [{"name": "a"}]}',
        '{"meta": {}, "sections": 3}',
        "{",
        *(
            json.dumps({"meta": {}, "sections": [{"name": "a", "checksum": "", "readonly": False, **more}]})
            for more in (
                {"dtype": "|O", "shape": [1], "offset": 0},
                {"dtype": "<i8", "shape": [-1], "offset": 0},
                {"dtype": "<i8", "shape": [2**40], "offset": 0},
                {"dtype": "<i8", "shape": [1], "offset": 64},
                {"dtype": "<i8", "shape": "x", "offset": 0},
            )
        ),
    ],
)
def test_header_that_no_writer_wrote(tmp_path: Path, header: str) -> None:
    """Checksums are right, and the rest is not."""
    plain = header.encode()
    size = len(files._head(plain, 0, 0))
    seen = checksum(np.frombuffer(files._head(plain, size, 0), np.uint8))
    assert "header cannot be understood" in rejected(tmp_path / "x", files._head(plain, size, seen))


def test_bytes_of_no_array(tmp_path: Path) -> None:
    plain = b'{"meta": {}, "sections": []}'
    size = len(files._head(plain, 0, 0)) + 64
    seen = checksum(np.frombuffer(files._head(plain, size, 0), np.uint8))
    assert "64 bytes of it belong to no array" in rejected(tmp_path / "x", files._head(plain, size, seen) + bytes(64))


# Checksums


@pytest.mark.parametrize("size", [0, 1, 8, 63, 64, 65, 1_000, 200_000])
def test_compiled_and_plain_checksums_agree(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = RNG.integers(0, 256, size, np.uint8)
    compiled = checksum(data)
    monkeypatch.setattr(kernels, "_sum", kernels.sum_of_mixtures_plain)
    assert checksum(data) == compiled


def test_checksum_goes_by_place() -> None:
    data = np.zeros(512, np.uint64)
    seen = {checksum(data.view(np.uint8))}
    for place in range(512):
        data[:] = 0
        data[place] = 1 << 63
        seen.add(checksum(data.view(np.uint8)))
        data[(place + 2) % 512] = 1 << 63  # the highest bits of two words, which plain sums do not tell from none
        seen.add(checksum(data.view(np.uint8)))
    assert len(seen) == 1 + 2 * 512


def test_files_are_read_without_compilation_too(path: Path) -> None:
    program = f"""
import warnings; warnings.simplefilter("error")
from pathlib import Path
from harken.versions.array_file import read_arrays, write_arrays
found = read_arrays(Path({str(path)!r}))
assert write_arrays(Path({str(path)!r} + "2"), found.arrays, found.meta) == found.seal
"""
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True)
    assert read_arrays(path.with_name("some.segment2")).meta == META
