"""Arrow and Parquet: every type that an event can hold, those that it cannot, and files that are broken."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken.errors import LimitError, SourceError
from harken.events import Event, read_rows, rows_from_arrow, validate
from harken.limits import Limits

NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
SECONDS = int(NOON.timestamp())
DAY = date(2026, 7, 1)
DAYS = (DAY - date(1970, 1, 1)).days

Write = Callable[[str, bytes | str], Path]


def canonical(array: pa.Array) -> list[Any]:
    """What the cells of a column become in events; None where they are missing."""
    return [Event.of(row.content or {}).attributes.get("a") for row in rows_from_arrow(pa.table({"a": array}))]


def stored(ticks: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(ticks, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


STRUCT = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
MAP = pa.map_(pa.string(), pa.float64())
NESTED = [{"x": 1, "y": ["a"]}, None, {"x": None, "y": []}]
CASES: list[tuple[pa.Array, list[Any]]] = [
    *[
        (pa.array([1, None, 100], kind), [1, None, 100])
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    ],
    *[(pa.array([0.5, None, -0.0], kind), [0.5, None, 0.0]) for kind in (pa.float16(), pa.float32(), pa.float64())],
    (pa.array([float("nan"), 1.0]), [None, 1.0]),
    (pa.array([Decimal("0.10"), None], pa.decimal128(10, 2)), [0.1, None]),
    (pa.array([Decimal("0.10")], pa.decimal256(60, 2)), [0.1]),
    *[
        (pa.array(["ü", None, ""], kind), ["ü", None, ""])
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ],
    (pa.array([True, None, False]), [True, None, False]),
    (pa.nulls(2), [None, None]),
    (stored([DAYS, None, -1], pa.date32()), [DAY, None, date(1969, 12, 31)]),
    (stored([DAYS * 86_400_000 + 1, None], pa.date64()), [DAY, None]),
    (stored([SECONDS, None], pa.timestamp("s")), [NOON, None]),
    (stored([SECONDS * 10**3], pa.timestamp("ms", "Europe/Zurich")), [NOON]),
    (stored([SECONDS * 10**6], pa.timestamp("us", "+05:30")), [NOON]),
    (stored([SECONDS * 10**9 + 999], pa.timestamp("ns", "UTC")), [NOON]),
    (stored([-1], pa.timestamp("ns")), [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]),
    (pa.array(["x", None, "y", "x"]).dictionary_encode(), ["x", None, "y", "x"]),
    (pa.DictionaryArray.from_arrays([0, 1], pa.array(["x", None])), ["x", None]),
    (pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None]), ["x", "x", None]),
    *[
        (pa.array([[1, None], None, [], [2]], kind), [[1], None, None, [2]])
        for kind in (
            pa.list_(pa.int64()),
            pa.large_list(pa.int64()),
            pa.list_view(pa.int64()),
            pa.large_list_view(pa.int64()),
        )
    ],
    (pa.array([[1, None], None, [2, 3]], pa.list_(pa.int64(), 2)), [[1], None, [2, 3]]),
    (pa.array([[[1], []], None, [None, [2]]]), [[[1]], None, [[2]]]),
    (pa.array(NESTED, STRUCT), [{"x": 1, "y": ["a"]}, None, {}]),
    (pa.array([NESTED, None], pa.list_(STRUCT)), [[{"x": 1, "y": ["a"]}, {}], None]),
    (pa.array([{}, None], pa.struct([])), [{}, None]),
    (pa.array([[("x", 1.5), ("y", None)], None, []], MAP), [{"x": 1.5}, None, {}]),
    (pa.array([[("x", DAY)]], pa.map_(pa.string(), pa.date32())), [{"x": DAY}]),
    (pa.array(['{"x": 1}'], pa.json_()), ['{"x": 1}']),
]


@pytest.mark.parametrize(("array", "expected"), CASES, ids=[str(array.type) for array, _ in CASES])
def test_types(array: pa.Array, expected: list[Any]) -> None:
    found = canonical(array)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize(("array", "expected"), CASES, ids=[str(array.type) for array, _ in CASES])
def test_slices(array: pa.Array, expected: list[Any]) -> None:
    for start in range(len(array) + 1):
        for end in range(start, len(array) + 1):
            assert canonical(array.slice(start, end - start)) == expected[start:end]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2**63], pa.uint64()),
        stored([0, 2**62], pa.timestamp("s")),
        stored([0, 253_402_300_800], pa.timestamp("s")),
        stored([0, -62_135_596_801], pa.timestamp("s", "UTC")),
        stored([0, 2**31 - 1], pa.date32()),
        stored([0, -(2**62)], pa.date64()),
        pa.array([[("x", 1.0)], [("x", 1.0), ("x", 2.0)]], MAP),
        pa.array([[], [stored([2**62], pa.timestamp("ms"))[0]]], pa.list_(pa.timestamp("ms"))),
    ],
    ids=str,
)
def test_a_cell_that_python_cannot_hold_rejects_its_event(array: pa.Array) -> None:
    decoded = validate(pa.table({"a": array}))
    assert decoded.batch.positions == (0,)
    assert decoded.rejected[0].position == 1
    assert "attribute `a`" in decoded.rejected[0].error.message
    assert decoded.rejected[0].error.place is None
    assert decoded.rejected[0].raw


def test_the_ends_of_the_calendar() -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert canonical(stored([-62_135_596_800, 253_402_300_799], pa.timestamp("s"))) == [first, last]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_string_that_is_not_utf8_rejects_its_event(kind: pa.DataType) -> None:
    raw = pa.array([b"x", b"\xff", None], pa.binary() if kind == pa.string() else pa.large_binary())
    decoded = validate(pa.table({"a": raw.view(kind)}))
    assert decoded.batch.positions == (0, 2)
    assert decoded.rejected[0].error.message == "attribute `a` is not UTF-8 text"


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x"]),
        pa.array([b"x"], pa.binary(1)),
        pa.array([b"x"], pa.binary_view()),
        pa.array([0], pa.time32("s")),
        pa.array([0], pa.duration("s")),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([b"x"]).dictionary_encode(),
        pa.array([b"0" * 16], pa.uuid()),
    ],
    ids=lambda array: str(array.type),
)
def test_types_that_no_event_can_hold(array: pa.Array) -> None:
    deep = pa.StructArray.from_arrays([array], ["blob"])
    for table, name in ((pa.table({"a": array}), "`a`"), (pa.table({"s": deep}), "`s.blob`")):
        with pytest.raises(SourceError, match=f"the column {name} has the Arrow type ") as caught:
            list(rows_from_arrow(table))
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("drop the column, or cast it")


def test_maps_need_keys_that_are_strings() -> None:
    decoded = validate(pa.table({"a": pa.array([[(1, 2)], []], pa.map_(pa.int64(), pa.int64()))}))
    assert decoded.batch.positions == (1,)


def test_a_column_twice() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(SourceError, match="the column `a` occurs twice"):
        list(rows_from_arrow(table))


def test_types_that_are_too_deep() -> None:
    kind = pa.int64()
    for _ in range(70):
        kind = pa.list_(kind)
    with pytest.raises(LimitError):
        list(rows_from_arrow(pa.table({"a": pa.nulls(1, kind)})))
    assert list(rows_from_arrow(pa.table({"a": pa.nulls(1, kind)}), Limits(max_event_depth=80)))


def test_chunks_batches_and_rows_without_columns() -> None:
    table = pa.concat_tables([pa.table({"a": [1]}), pa.table({"a": [2, 3]}), pa.table({"a": pa.array([], pa.int64())})])
    assert [(row.position, row.content) for row in rows_from_arrow(table)] == [
        (0, {"a": 1}),
        (1, {"a": 2}),
        (2, {"a": 3}),
    ]
    assert [row.content for row in rows_from_arrow(table.select([]))] == [{}, {}, {}]
    many = pa.table({"a": range(10_000)})
    assert [row.content for row in rows_from_arrow(many)] == [{"a": n} for n in range(10_000)]


class TestFiles:
    TABLE = pa.table({"a": range(9_000), "s": [f"text {n}" for n in range(9_000)], "t": [[n] for n in range(9_000)]})

    def parquet(self, **options: Any) -> bytes:
        sink = io.BytesIO()
        pa.parquet.write_table(self.TABLE, sink, **options)
        return sink.getvalue()

    def ipc(self, make: Any, **options: Any) -> bytes:
        sink = io.BytesIO()
        with make(sink, self.TABLE.schema, **options) as writer:
            writer.write_table(self.TABLE, max_chunksize=2_000)
        return sink.getvalue()

    @pytest.mark.parametrize("options", [{}, {"row_group_size": 500}, {"compression": "zstd"}])
    def test_parquet(self, write: Write, options: dict[str, Any]) -> None:
        found = list(read_rows(write("x.parquet", self.parquet(**options))))
        assert [row.content for row in found] == self.TABLE.to_pylist()
        assert [row.position for row in found] == list(range(9_000))

    @pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
    @pytest.mark.parametrize("compression", [None, "lz4"])
    def test_ipc(self, write: Write, make: Any, compression: str | None) -> None:
        data = self.ipc(make, options=pa.ipc.IpcWriteOptions(compression=compression))
        assert [row.content for row in read_rows(write("x.arrow", data))] == self.TABLE.to_pylist()

    @pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
    @pytest.mark.parametrize("content", [b"", b"P", b"PAR1", b"ARROW1", b"ARROW1\0\0", b"PAR1PAR1", b"\xff" * 100])
    def test_what_is_none(self, write: Write, name: str, content: bytes) -> None:
        path = write(name, content)
        with pytest.raises(SourceError, match="cannot be read"):
            list(read_rows(path))

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
    def test_torn(self, write: Write, share: float) -> None:
        for name, data in (("x.parquet", self.parquet()), ("x.arrow", self.ipc(pa.ipc.new_file))):
            with pytest.raises(SourceError, match="cannot be read"):
                list(read_rows(write(name, data[: int(len(data) * share)])))

    def test_damaged_parquet(self, write: Write) -> None:
        data = bytearray(self.parquet(use_dictionary=False, compression="zstd", write_page_checksum=True))
        data[1_000] ^= 1
        with pytest.raises(SourceError, match="cannot be read"):
            list(read_rows(write("x.parquet", bytes(data))))

    def test_offsets_out_of_bounds_are_found_before_they_are_used(self, write: Write) -> None:
        table = pa.table({"s": ["abc", "def"]})
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        offsets = b"\0\0\0\0\3\0\0\0\6\0\0\0"
        assert sink.getvalue().count(offsets) == 1
        broken = sink.getvalue().replace(offsets, b"\0\0\0\0\3\0\0\0\xff\xff\xff\x7f")
        with pytest.raises(SourceError, match="cannot be read"):
            list(read_rows(write("x.arrow", broken)))

    def test_feather_of_the_first_version(self, write: Write) -> None:
        with pytest.raises(SourceError, match="Feather version 1"):
            list(read_rows(write("x.feather", b"FEA1" + bytes(100))))
