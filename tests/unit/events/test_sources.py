"""Where rows come from: endings and names of formats, compression, streams, and files that cannot be read."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from harken.errors import SourceError
from harken.events import read_events, read_rows

LINES = b'{"a": 1}\n{"a": 2}\n'
TABLE = pa.table({"a": [1, 2]})
CONTENTS = [{"a": 1}, {"a": 2}]

Write = Callable[[str, bytes | str], Path]


def contents(source: Any, format: str | None = None) -> list[Any]:
    return [row.content for row in read_rows(source, format)]


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(TABLE, sink)
    return sink.getvalue()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def ipc_bytes(stream: bool = False) -> bytes:
    sink = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


BY_ENDING = {
    "x.jsonl": LINES,
    "x.ndjson": LINES,
    "x.json": LINES,
    "y.json": b' \n[{"a": 1}, {"a": 2}]',
    "X.JSONL": LINES,
    "x.csv": b"a\n1\n2\n",
    "x.tsv": b"a\n1\n2\n",
    "x.jsonl.gz": gzip.compress(LINES),
    "x.csv.gz": gzip.compress(b"a\n1\n2\n"),
    "two-members.jsonl.gz": gzip.compress(LINES[:9]) + gzip.compress(LINES[9:]),
    "x.jsonl.xz": lzma.compress(LINES),
    "x.csv.xz": lzma.compress(b"a\n1\n2\n"),
    "x.jsonl.zst": zstd(LINES),
    "X.CSV.ZST": zstd(b"a\n1\n2\n"),
    "two-frames.jsonl.zst": zstd(LINES[:9]) + zstd(LINES[9:]),
    "x.parquet": parquet_bytes(),
    "x.arrow": ipc_bytes(),
    "x.feather": ipc_bytes(),
    "x.ipc": ipc_bytes(stream=True),
}


@pytest.mark.parametrize("name", BY_ENDING)
def test_the_ending_tells_the_format(write: Write, name: str) -> None:
    path = write(name, BY_ENDING[name])
    assert contents(path) == CONTENTS
    assert contents(str(path)) == CONTENTS
    with path.open("rb") as stream:
        assert contents(stream) == CONTENTS
        assert not stream.closed


@pytest.mark.parametrize("name", BY_ENDING)
def test_streams_without_a_name_need_a_format(name: str) -> None:
    format = name.lower().split(".")[1]
    assert contents(io.BytesIO(BY_ENDING[name]), format) == CONTENTS
    assert contents(Pipe(BY_ENDING[name]), format) == CONTENTS


def test_a_stream_is_read_from_where_it_stands() -> None:
    stream = io.BytesIO(b"skipped\na\n1\n2\n")
    stream.readline()
    assert contents(stream, "csv") == CONTENTS


def test_a_stream_is_json_lines_unless_told_otherwise() -> None:
    assert contents(io.BytesIO(LINES)) == CONTENTS


@pytest.mark.parametrize("format", [None, "jsonl", "csv", "parquet"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, format: str | None) -> None:
    data = BY_ENDING[f"x.{format or 'jsonl'}"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(cast(BinaryIO, Pipe(data))))
    assert contents("-", format) == CONTENTS


def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    os.write(writer, LINES)
    rows = read_rows(path)
    assert next(rows).content == {"a": 1}
    os.close(writer)
    assert [row.content for row in rows] == [{"a": 2}]


class TestWhatCannotBeRead:
    """Told at once, by the call and not by the first row."""

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="there is no file"):
            read_rows(tmp_path / "none.jsonl")
        with pytest.raises(SourceError, match="there is no file"):
            read_events(tmp_path / "none.jsonl")

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="is a directory"):
            read_rows(tmp_path, "jsonl")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, write: Write) -> None:
        path = write("x.jsonl", LINES)
        path.chmod(0)
        with pytest.raises(SourceError, match="permission denied"):
            read_rows(path)

    @pytest.mark.parametrize("name", ["x.txt", "x", "x.gz", "x.parquet.gz", "x.zst", ".jsonl"])
    def test_an_unknown_ending(self, name: str, write: Write) -> None:
        with pytest.raises(SourceError, match="does not tell its format") as caught:
            read_rows(write(name, ""))
        assert caught.value.hint is not None
        assert ".jsonl, .ndjson, .json, .csv, .tsv, .parquet, .arrow, .feather, .ipc" in caught.value.hint

    @pytest.mark.parametrize("name", ["gone.txt", ""])
    def test_that_a_file_is_missing_is_told_before_its_ending(self, name: str) -> None:
        with pytest.raises(SourceError, match="there is no file"):
            read_rows(name)

    def test_an_unknown_format(self) -> None:
        with pytest.raises(SourceError, match="'parket' is not a known format") as caught:
            read_rows("-", "parket")
        assert caught.value.hint == "did you mean `parquet`?"

    @pytest.mark.parametrize("source", [io.StringIO("{}"), 7, None, [{"a": 1}]])
    def test_what_is_no_source(self, source: Any) -> None:
        with pytest.raises(SourceError, match="a path or a binary stream"):
            read_rows(source)

    def test_a_name_that_no_file_can_have(self) -> None:
        with pytest.raises(SourceError):
            read_rows("a\0b.jsonl")

    def test_a_name_that_is_not_utf8_can_be_printed(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError) as caught:
            read_rows(os.fsencode(tmp_path).decode() + "/\udcff.jsonl")
        str(caught.value).encode()

    @pytest.mark.parametrize(("ending", "name"), [("gz", "gzip"), ("xz", "xz"), ("zst", "zstd")])
    def test_not_compressed_after_all(self, write: Write, ending: str, name: str) -> None:
        with pytest.raises(SourceError, match=f"ends in .{ending} but is not compressed with {name}"):
            contents(write(f"x.jsonl.{ending}", LINES))

    @pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("zst", zstd)])
    @pytest.mark.parametrize("cut", [8, 12, -9, -1])
    def test_torn(self, write: Write, ending: str, compress: Callable[[bytes], bytes], cut: int) -> None:
        with pytest.raises(SourceError):
            contents(write(f"x.jsonl.{ending}", compress(LINES * 100)[:cut]))

    def test_damaged_gzip(self, write: Write) -> None:
        data = bytearray(gzip.compress(LINES * 1_000))
        data[30] ^= 0xFF
        with pytest.raises(SourceError):
            contents(write("x.jsonl.gz", bytes(data)))

    def test_a_disk_that_fails(self) -> None:
        rows = read_rows(cast(BinaryIO, Failing(LINES)))
        with pytest.raises(SourceError, match="Input/output error"):
            list(rows)


def test_rows_before_a_tear_are_not_lost(write: Write) -> None:
    lines = b"".join(b'{"n": %d}\n' % n for n in range(20_000))
    decoded = read_events(write("x.jsonl.gz", gzip.compress(lines)[:-5]), batch_size=6_000)
    sizes: list[int] = []
    with pytest.raises(SourceError, match="ends in the middle of its compressed data"):
        sizes.extend(len(part.batch) for part in decoded)
    assert sizes[:-1] == [6_000] * (len(sizes) - 1)
    assert sum(sizes) > 19_000


class Pipe(io.RawIOBase):
    """Bytes that come once, a few at a time, and cannot be sought."""

    def __init__(self, data: bytes) -> None:
        self._source = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(min(len(buffer), 7))
        buffer[: len(data)] = data
        return len(data)


class Failing(Pipe):
    """A source that breaks after its last byte."""

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer)
        if size == 0:
            raise OSError(5, "Input/output error")
        return size
