"""The whole way: from sources to batches, there and back again, and the data set that nobody here wrote."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import InvalidValueError, Place, SourceError
from harken.events import Event, read_events, validate
from harken.schema import BUILT_IN, Schema
from harken.schema.values import INT64_MAX, INT64_MIN


def test_batches_keep_positions_over_rejections() -> None:
    lines = "".join(f'{{"n": {n}}}\n' if n % 3 else "oops\n" for n in range(10))
    parts = list(read_events(io.BytesIO(lines.encode()), batch_size=4))
    assert [part.batch.positions for part in parts] == [(1, 2), (4, 5, 7), (8,)]
    assert [[rejected.position for rejected in part.rejected] for part in parts] == [[0, 3], [6], [9]]
    assert [event.attributes["n"] for part in parts for event in part.batch] == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize("count", [0, 3, 4, 5, 8])
def test_batches_are_full_but_the_last(count: int) -> None:
    sizes = [len(part.batch) for part in read_events(io.BytesIO(b"{}\n" * count), batch_size=4)]
    assert sum(sizes) == count
    assert all(size == 4 for size in sizes[:-1])
    assert 0 not in sizes


def test_a_batch_holds_something() -> None:
    with pytest.raises(ValueError, match="at least one"):
        read_events(io.BytesIO(b""), batch_size=0)


def test_a_schema_reads_and_rejects() -> None:
    schema = Schema(attributes={("at",): BUILT_IN["timestamp"]})
    lines = b'{"at": "2026-07-01T12:00:00"}\n{"at": "soon"}\n{"at": null}\n'
    (decoded,) = read_events(io.BytesIO(lines), schema=schema)
    assert [event.attributes for event in decoded.batch] == [{"at": datetime(2026, 7, 1, 12, tzinfo=UTC)}, {}]
    (rejected,) = decoded.rejected
    assert isinstance(rejected.error, InvalidValueError)
    assert rejected.error.place == Place(2, None, "stream")
    assert rejected.to_dict()["line"] == 2
    assert rejected.raw == '{"at": "soon"}'


def test_importing_the_room_does_not_import_arrow() -> None:
    code = "import sys, harken.events; sys.exit(bool({'pyarrow', 'numpy'} & set(sys.modules)))"
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=here).returncode == 0


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(INT64_MIN, INT64_MAX),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
    pa.string(): TEXT,
    pa.bool_(): st.booleans(),
}
JSON_VALUES = st.recursive(
    st.one_of(*SCALARS.values()),
    lambda inner: st.lists(inner, min_size=1, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
JSON_OBJECTS = st.lists(st.dictionaries(TEXT, JSON_VALUES, max_size=4), max_size=4)
ARROW_FIELDS = {str(kind): kind for kind in SCALARS} | {f"{kind}s": pa.list_(kind) for kind in SCALARS}
ARROW_CELLS = {str(kind): cell for kind, cell in SCALARS.items()} | {
    f"{kind}s": st.lists(cell, min_size=1) for kind, cell in SCALARS.items()
}
ARROW_OBJECTS = st.lists(st.fixed_dictionaries({"row": st.fixed_dictionaries({}, optional=ARROW_CELLS)}), max_size=4)


class TestThereAndBack:
    @given(JSON_OBJECTS, st.booleans())
    def test_json_lines(self, objects: list[dict[str, Any]], ascii_only: bool) -> None:
        lines = "".join(json.dumps(raw, ensure_ascii=ascii_only) + "\n" for raw in objects)
        assert _read(lines, "jsonl") == objects

    @given(JSON_OBJECTS, st.none() | st.integers(0, 2))
    def test_json_array(self, objects: list[dict[str, Any]], indent: int | None) -> None:
        assert _read(json.dumps(objects, indent=indent), "json") == objects

    @given(ARROW_OBJECTS)
    def test_arrow(self, objects: list[dict[str, Any]]) -> None:
        table = pa.Table.from_pylist(objects, pa.schema({"row": pa.struct(list(ARROW_FIELDS.items()))}))
        assert [event.attributes for event in validate(table).batch] == objects

    @given(st.lists(st.fixed_dictionaries({"t": st.datetimes(timezones=st.just(UTC)), "d": st.dates()}), min_size=1))
    def test_times(self, objects: list[dict[str, Any]]) -> None:
        table = pa.Table.from_pylist(objects, pa.schema({"t": pa.timestamp("us", "UTC"), "d": pa.date32()}))
        assert [event.attributes for event in validate(table).batch] == objects
        schema = Schema(attributes={("t",): BUILT_IN["timestamp"], ("d",): BUILT_IN["date"]})
        lines = "".join(json.dumps(raw, default=lambda value: value.isoformat()) + "\n" for raw in objects)
        (decoded,) = read_events(io.BytesIO(lines.encode()), schema=schema)
        assert list(decoded.batch) == [Event.of(raw) for raw in objects]


def _read(text: str, format: str) -> list[dict[str, Any]]:
    parts = list(read_events(io.BytesIO(text.encode()), format))
    assert not any(part.rejected for part in parts)
    return [event.attributes for part in parts for event in part.batch]


@pytest.mark.skipif("HARKEN_DATA" not in os.environ, reason="HARKEN_DATA is not set")
def test_edits_of_wikipedia() -> None:
    path = Path(os.environ["HARKEN_DATA"]) / "wikiticker-2015-09-12-sampled.json.gz"
    parts = list(read_events(path))
    assert sum(len(part.batch) for part in parts) == 39_244
    assert sum(len(part.rejected) for part in parts) == 0
    assert parts[0].batch[0].values(("page",)) == ["Talk:Oswald Tilghman"]


class TestColumns:
    """Files that have columns stay columns: no row becomes Python."""

    TABLE = pa.table({"n": range(10), "s": [{"x": f"{n}", "l": [n] * (n % 3)} for n in range(10)]})

    def written(self, format: str, table: pa.Table, rows: int) -> io.BytesIO:
        file = io.BytesIO()
        if format == "parquet":
            pyarrow.parquet.write_table(table, file, row_group_size=rows)
        else:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=rows)
        file.seek(0)
        return file

    @pytest.mark.parametrize("format", ["parquet", "arrow"])
    @pytest.mark.parametrize("rows", [1, 3, 4, 10])
    @pytest.mark.parametrize("size", [1, 4, 5, 10, 100])
    def test_batches_are_full_but_the_last(self, format: str, rows: int, size: int) -> None:
        parts = list(read_events(self.written(format, self.TABLE, rows), format, batch_size=size))
        assert [len(part.batch) for part in parts] == [size] * (10 // size) + [10 % size] * bool(10 % size)
        assert all(part.batch.is_lazy for part in parts)
        assert [position for part in parts for position in part.batch.positions] == list(range(10))
        assert [event for part in parts for event in part.batch] == list(validate(self.TABLE.to_pylist()).batch)

    @pytest.mark.parametrize("format", ["parquet", "arrow"])
    def test_a_bad_row_is_rejected_alone(self, format: str) -> None:
        table = pa.table({"n": pa.array([1, 2, 2**63, 4, 5], pa.uint64())})
        first, second = read_events(self.written(format, table, 5), format, batch_size=4)
        assert (list(first.batch.positions), list(second.batch.positions)) == ([0, 1, 3], [4])
        assert [each.position for each in first.rejected] == [2]
        assert (first.batch.is_lazy, second.batch.is_lazy) == (False, True)

    @pytest.mark.parametrize("format", ["parquet", "arrow"])
    def test_no_rows(self, format: str) -> None:
        assert list(read_events(self.written(format, self.TABLE[:0], 5), format)) == []

    def test_what_comes_before_a_break_is_not_lost(self) -> None:
        data = self.written("arrow", self.TABLE, 3).getvalue()
        batches = read_events(io.BytesIO(data[: len(data) * 2 // 3]), "arrow", batch_size=2)
        found: list[Event] = []
        with pytest.raises(SourceError):
            found.extend(event for part in batches for event in part.batch)
        assert 0 < len(found) < 10
        assert len(found) % 3 == 0
        assert found == list(validate(self.TABLE.to_pylist()).batch)[: len(found)]


class TestNames:
    """Only what is named is read of a file, whatever else is in it."""

    TABLE = pa.table({"a": [1, 2], "a.b": [b"1", b"2"], "s": [{"b": 1}, {"b": None}], "blob": [[b"1"], None]})

    @pytest.mark.parametrize("names", [{"a"}, {"a", "s"}, {"s"}, {"gone"}, set()])
    @pytest.mark.parametrize("format", ["parquet", "arrow"])
    def test_columns(self, names: set[str], format: str) -> None:
        file = io.BytesIO()
        if format == "parquet":
            pyarrow.parquet.write_table(self.TABLE, file)
        else:
            with pa.ipc.new_file(file, self.TABLE.schema) as writer:
                writer.write(self.TABLE)
        file.seek(0)
        (decoded,) = read_events(file, format, names=frozenset(names))
        expected = [{name: row[name] for name in names & row.keys()} for row in self.TABLE.to_pylist()]
        assert decoded.batch == validate(expected).batch
        file.seek(0)
        with pytest.raises(SourceError, match="`blob` has the Arrow type binary"):
            list(read_events(file, format, names=frozenset({"blob"})))

    def test_a_column_whose_name_is_a_path(self) -> None:
        file = io.BytesIO()
        pyarrow.parquet.write_table(pa.table({"a": [{"b": 1}], "a.b": [2]}), file)
        for name, value in (("a", {"b": 1}), ("a.b", 2)):
            file.seek(0)
            (decoded,) = read_events(file, "parquet", names=frozenset({name}))
            assert [event.attributes for event in decoded.batch] == [{name: value}]

    def test_json(self) -> None:
        lines = b'{"a": 1, "b": 36893488147419103232}\n{"a": 2, "b": {"c": []}}\n{"a": 3, "b"}\n'
        (decoded,) = read_events(io.BytesIO(lines), names=frozenset("a"))
        assert [event.attributes for event in decoded.batch] == [{"a": 1}, {"a": 2}]
        assert [rejected.position for rejected in decoded.rejected] == [2]
