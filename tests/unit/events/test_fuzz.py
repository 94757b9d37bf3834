"""Whatever bytes come, a decoder gives rows, each with its content or its error, or says that the source is broken."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError, SourceError
from harken.events import read_events, read_rows
from harken.limits import Limits

LIMITS = Limits(max_event_bytes=200, max_event_depth=8, max_event_values=50)
TEXTS = ["jsonl", "json", "csv", "tsv"]
TABLE = pa.table(
    {"n": range(50), "s": [f"text {n}" for n in range(50)], "l": [[n] for n in range(50)]}
    | {"d": pa.array(["x", "y"] * 25).dictionary_encode(), "t": pa.array(range(50), pa.timestamp("ns"))}
)


def parquet() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(TABLE, sink)
    return sink.getvalue()


def ipc(make: Any) -> bytes:
    sink = io.BytesIO()
    with make(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


BINARIES = [("parquet", parquet()), ("arrow", ipc(pa.ipc.new_file)), ("arrow", ipc(pa.ipc.new_stream))]


def survives(data: bytes, format: str, limits: Limits = LIMITS) -> None:
    """Reads all of it, and holds every row to what rows promise."""
    try:
        for position, row in enumerate(read_rows(io.BytesIO(data), format, limits)):
            assert row.position == position
            assert (row.content is None) == (row.error is not None)
            assert row.raw is None or len(row.raw) <= 200
            if row.error is not None:
                assert isinstance(row.error, HarkenError)
                json.dumps(row.error.to_dict(), ensure_ascii=False).encode()
        for decoded in read_events(io.BytesIO(data), format, limits=limits):
            for rejected in decoded.rejected:
                json.dumps(rejected.to_dict(), ensure_ascii=False).encode()
    except SourceError as error:
        str(error).encode()


@pytest.mark.parametrize("format", [*TEXTS, "parquet", "arrow"])
@given(data=st.binary(max_size=400))
def test_any_bytes(format: str, data: bytes) -> None:
    survives(data, format)


@pytest.mark.parametrize("format", TEXTS)
@given(text=st.text(max_size=300))
def test_any_text(format: str, text: str) -> None:
    survives(text.encode(errors="surrogatepass"), format)


@pytest.mark.parametrize("format", TEXTS)
@given(text=st.text(st.sampled_from('{}[]:,"\\\n\t\r -0123456789.eEtrufalsnNaIity\0üab\ufeff')))
def test_almost_json_and_almost_csv(format: str, text: str) -> None:
    survives(text.encode(), format)


FRAGMENTS = r"""{"a":1}|{"a":[|{"a":"|NaN|1e999|[|]|]}|,|"|""|\|\ud800|null|x,y|a,b,c|1,2,3""".split("|")
ENDS = ["\n", "\r\n", " ", "\0", "\ufeff"]
LONG = ['{"a": ' * 1_200, "[" * 1_200, "9" * 5_000, "x" * 300]
fragments = st.sampled_from(FRAGMENTS + ENDS + LONG)


@pytest.mark.parametrize("format", TEXTS)
@given(parts=st.lists(fragments, max_size=12))
def test_fragments(format: str, parts: list[str]) -> None:
    survives("".join(parts).encode(), format)


@given(st.lists(fragments, max_size=6), st.integers(0, 60), st.integers(0, 255))
def test_damaged_gzip(parts: list[str], index: int, byte: int) -> None:
    data = bytearray(gzip.compress("".join(parts).encode()))
    data[index % len(data)] = byte
    survives(bytes(data), "jsonl")


@pytest.mark.parametrize(("format", "whole"), BINARIES, ids=["parquet", "ipc file", "ipc stream"])
@given(data=st.data())
def test_damaged_binaries(format: str, whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    survives(bytes(damaged[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))]), format, Limits())
