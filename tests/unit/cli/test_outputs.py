"""Output files of `harken match`: their formats, and that they are there as a whole or not at all."""

from __future__ import annotations

import csv
import gzip
import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken.cli.json_output import encodable, to_json, to_text
from harken.events.sources import find_source, opened

from .conftest import EVENTS, PAIRS, Run, Write, lines

FORMATS = ["jsonl", "csv", "parquet"]


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pa.parquet.read_table(path).to_pylist()
        return rows
    return lines(path.read_text())


@pytest.mark.parametrize("format", FORMATS)
def test_the_rows_are_written(run: Run, events: Path, subscriptions: Path, tmp_path: Path, format: str) -> None:
    output = tmp_path / f"out.{format}"
    result = run("match", events, "-s", subscriptions, "-o", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "3 matches" in result.stderr
    rows = read(output)
    assert [(int(row["event"]), row["subscription"]) for row in rows] == PAIRS
    assert rows[0]["owner"] == "Alice"
    assert [row["channel"] for row in rows] == ["mail", "sms", "sms"]
    assert not rows[1].get("owner")


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_compressed_text(run: Run, events: Path, subscriptions: Path, format: str, compression: str) -> None:
    plain = subscriptions.with_name(f"out.{format}")
    packed = subscriptions.with_name(f"out.{format}.{compression}")
    run("match", events, "-s", subscriptions, "-o", plain)
    assert run("match", events, "-s", subscriptions, "-o", packed).exit_code == 0
    with opened(find_source(packed)) as stream:
        assert stream.read() == plain.read_bytes()
    assert packed.read_bytes() != plain.read_bytes()


def test_parquet_is_not_compressed_again(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    result = run("match", events, "-s", subscriptions, "-o", tmp_path / "out.parquet.gz")
    assert result.exit_code == 3
    assert "does not tell what to write" in result.stderr


@pytest.mark.parametrize("format", FORMATS)
def test_without_matches_there_is_a_file_too(run: Run, subscriptions: Path, write: Write, format: str) -> None:
    output = subscriptions.with_name(f"out.{format}")
    events = write("e.jsonl", '{"price": 5, "x": 1}\n')
    assert run("match", events, "-s", subscriptions, "-o", output, "--event-id", "x").exit_code == 0
    assert read(output) == []
    if format == "csv":
        assert output.read_text() == "event,subscription,owner,channel\n"


def test_parquet_has_types_and_several_groups(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harken.cli.outputs._ROWS_IN_A_GROUP", 2)
    records = [
        {"id": "a", "where": "price > 0", "n": 1, "tags": ["x"], "mixed": 1, "hollow": {}},
        {"id": "b", "where": "price > 0", "n": 2.5, "mixed": "one", "big": 2**70},
        {"id": "c", "where": "price > 0", "nothing": None},
    ]
    output = tmp_path / "out.parquet"
    run("match", write("e.jsonl", EVENTS), "-s", write("s.jsonl", records), "-o", output, "--event-id", "order")
    table = pa.parquet.read_table(output)
    types = {field.name: str(field.type) for field in table.schema}
    assert types["event"] == "string"
    assert types["n"] == "double"
    assert types["tags"].startswith("list<")
    assert types["mixed"] == types["big"] == types["hollow"] == types["nothing"] == "string"
    rows = table.to_pylist()
    assert len(rows) == 9
    assert pa.parquet.ParquetFile(output).metadata.num_row_groups == 5
    assert {row["subscription"]: row["mixed"] for row in rows} == {"a": "1", "b": '"one"', "c": None}
    assert rows[1]["big"] == str(2**70)
    assert rows[0]["hollow"] == "{}"


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([7, 8], "int64"),
        ([0.5, 1.5], "double"),
        ([True, False], "bool"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "timestamp[us, tz=UTC]"),
        ([date(2026, 1, 1)], "date32[day]"),
    ],
)
def test_names_of_events_keep_their_type_in_parquet(
    run: Run, write: Write, tmp_path: Path, values: list[Any], type: str
) -> None:
    events, output = tmp_path / "events.parquet", tmp_path / "out.parquet"
    pa.parquet.write_table(pa.table({"name": values}), events)
    subscriptions = write("s.jsonl", [{"id": "a", "where": "name IS NOT NULL"}])
    assert run("match", events, "-s", subscriptions, "-o", output, "--event-id", "name").exit_code == 0
    table = pa.parquet.read_table(output)
    assert str(table.schema.field("event").type) == type
    assert table.column("event").to_pylist() == values


def test_csv_cells(run: Run, write: Write, tmp_path: Path) -> None:
    record = {"id": "a", "where": "price = 7", "on": True, "list": [1, "é"], "text": 'say "hi",\nplease', "null": None}
    output = tmp_path / "out.csv"
    run("match", write("e.jsonl", EVENTS), "-s", write("s.jsonl", [record]), "-o", output)
    (row,) = read(output)
    cells = {"on": "true", "list": '[1, "é"]', "text": 'say "hi",\nplease', "null": ""}
    assert row == {"event": "2", "subscription": "a", **cells}


@pytest.mark.parametrize("format", FORMATS)
def test_lone_surrogates_are_escaped(run: Run, write: Write, tmp_path: Path, format: str) -> None:
    text = json.dumps({"id": "a", "where": "price = 7", "name": "x\ud800"})
    output = tmp_path / f"out.{format}"
    assert run("match", write("e.jsonl", EVENTS), "-s", write("s.jsonl", text), "-o", output).exit_code == 0
    assert read(output)[0]["name"] == "x\\ud800"


# As a whole or not at all


def broken_events(tmp_path: Path) -> Path:
    """Events whose file breaks off after many good ones."""
    whole = gzip.compress(
        b"".join(b'{"price": %d, "salt": "%s"}\n' % (n, os.urandom(20).hex().encode()) for n in range(9_000))
    )
    path = tmp_path / "broken.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_an_error_leaves_no_half_file(run: Run, subscriptions: Path, tmp_path: Path, format: str) -> None:
    output, events = tmp_path / f"out.{format}", broken_events(tmp_path)
    before = set(tmp_path.iterdir())
    result = run("match", events, "-s", subscriptions, "-o", output, "--batch-size", 100)
    assert result.exit_code == 3
    assert "ends in the middle" in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_an_error_keeps_the_old_file(run: Run, subscriptions: Path, write: Write, tmp_path: Path) -> None:
    output = write("out.jsonl", "old\n")
    assert run("match", broken_events(tmp_path), "-s", subscriptions, "-o", output).exit_code == 3
    assert output.read_text() == "old\n"


def test_the_old_file_is_replaced_through_a_link(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old\n")
    link.symlink_to(real)
    run("match", events, "-s", subscriptions, "-o", link)
    assert link.is_symlink()
    assert len(read(real)) == 3


def test_what_cannot_be_written(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path in (tmp_path / "no" / "out.csv", tmp_path / "folder.csv"):
        result = run("match", events, "-s", subscriptions, "-o", path)
        assert (result.exit_code, result.stdout) == (3, "")
        assert f"error: {path} cannot be written" in result.stderr
    result = run("match", events, "-s", subscriptions, "-o", tmp_path / "out.xml")
    assert "the endings for output are .jsonl, .ndjson, .csv, .parquet" in result.stderr
    result = run("match", events, "-s", subscriptions, "--rejected", tmp_path / "no" / "rejected.jsonl")
    assert result.exit_code == 3


# JSON


def test_json_is_strict() -> None:
    value = {"inf": float("inf"), "nan": [float("nan"), 1.5], "day": date(2026, 1, 2), "é": ("x", Decimal("1.5"))}
    assert to_json(value) == '{"inf": null, "nan": [null, 1.5], "day": "2026-01-02", "é": ["x", 1.5]}'
    assert to_json(datetime(2026, 1, 2, tzinfo=UTC)) == '"2026-01-02T00:00:00+00:00"'


def test_texts_of_values() -> None:
    assert [to_text(value) for value in ("a", '"', None, float("inf"), True, 7, 1.5, [1], date(2026, 1, 2))] == [
        "a",
        '"',
        "",
        "",
        "true",
        "7",
        "1.5",
        "[1]",
        "2026-01-02",
    ]


def test_only_lone_surrogates_are_escaped() -> None:
    assert encodable({"é\udc00": ["\ud83d", "😀", 1]}) == {"é\\udc00": ["\\ud83d", "😀", 1]}
