"""Several files, patterns, folders and standard input on the command line."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken.cli.inputs import event_files, subscription_files
from harken.errors import SourceError

from .conftest import EVENTS, PAIRS, SUBSCRIPTIONS, Run, Write, lines


def pairs(text: str) -> list[tuple[Any, str]]:
    return [(row["event"], row["subscription"]) for row in lines(text)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as Spark and people leave it."""
    top = tmp_path / "day"
    for name in ("b.jsonl", "a/2.csv.gz", "a/1.json", "_SUCCESS", ".hidden.jsonl", "_temporary/0.jsonl", "notes.txt"):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return top


def test_several_files_are_read_as_one(run: Run, events: Path, subscriptions: Path, write: Write) -> None:
    first, second, third = (write(f"{n}.jsonl", [event]) for n, event in enumerate(EVENTS))
    whole = run("match", events, "-s", subscriptions)
    parts = run("match", first, second, third, "-s", subscriptions)
    assert parts.stdout == whole.stdout
    assert "3 events · 2 subscriptions · 3 matches" in parts.stderr


def test_compressed_files_patterns_and_folders(run: Run, subscriptions: Path, tmp_path: Path, write: Write) -> None:
    (tmp_path / "first.jsonl.gz").write_bytes(gzip.compress(b'{"price": 1, "category": "Toy"}\n'))
    (tmp_path / "second.csv.xz").write_bytes(lzma.compress(b"price\n6\n"))
    zstd = pa.Codec("zstd").compress(b'{"price": 7}\n', asbytes=True)
    (tmp_path / "third.jsonl.zst").write_bytes(zstd)
    (tmp_path / "more").mkdir()
    pa.parquet.write_table(pa.table({"price": [8.0]}), tmp_path / "more" / "fourth.parquet")
    result = run("match", tmp_path / "first*", tmp_path / "*.csv.xz", tmp_path / "third.jsonl.zst", tmp_path / "more",
                 "-s", subscriptions)  # fmt: skip
    assert pairs(result.stdout) == [(0, "alice"), (1, "bob"), (2, "bob"), (3, "bob")]


def test_standard_input_among_files_and_standard_output(run: Run, events: Path, subscriptions: Path) -> None:
    result = run("match", events, "-", "-s", subscriptions, "-o", "-", input='{"price": 9}\n')
    assert pairs(result.stdout) == [*PAIRS, (3, "bob")]
    assert run("match", "-", "-", "-s", subscriptions).exit_code == 2


def test_reports_name_the_file(run: Run, subscriptions: Path, write: Write, tmp_path: Path) -> None:
    first = write("first.jsonl", '{"price": 9}\n{\n')
    second = write("second.jsonl", '\n{"price": 9}\n{\n')
    third = tmp_path / "third.parquet"
    pa.parquet.write_table(pa.table({"price": [1.0, 9.0], "order": pa.array([1, None])}), third)
    rejected = tmp_path / "rejected.jsonl"
    result = run("match", first, second, third, "-s", subscriptions, "--rejected", rejected)
    assert pairs(result.stdout) == [(0, "bob"), (2, "bob"), (5, "bob")]
    assert f"✗ {first}, line 2, column 2, event 1\n" in result.stderr
    assert f"✗ {second}, line 3, column 2, event 3\n" in result.stderr
    assert "6 events (2 rejected)" in result.stderr
    kept = lines(rejected.read_text())
    assert [(Path(each["file"]).name, each["position"], each.get("file_position")) for each in kept] == [
        ("first.jsonl", 1, None),
        ("second.jsonl", 3, 1),
    ]
    named = run("match", first, second, third, "-s", subscriptions, "--event-id", "order")
    assert f"✗ {third}, event 5 (1 in this file)\n" in named.stderr


def test_subscriptions_of_several_files(run: Run, events: Path, write: Write) -> None:
    first = write("first.jsonl", SUBSCRIPTIONS)
    second = write("second.jsonl", [{"id": "carol", "where": "price >"}, {"id": "bob", "where": "price > 6"}])
    result = run("match", events, "-s", first, "-s", second)
    assert pairs(result.stdout) == PAIRS
    assert f"✗ {second}, line 1, subscription 'carol'" in result.stderr
    assert f"✗ {second}, line 2, subscription 'bob'\n  the id 'bob' is taken" in result.stderr
    assert "2 subscriptions (2 rejected)" in result.stderr


def test_an_output_that_is_among_the_files(run: Run, subscriptions: Path, tmp_path: Path, write: Write) -> None:
    inside = write("e1.jsonl", EVENTS)
    assert run("match", tmp_path / "e*.jsonl", "-s", subscriptions, "-o", inside).exit_code == 2
    assert inside.read_text()


def test_the_files_of_a_folder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = event_files([str(folder)], None)
    assert [str(Path(file).relative_to(folder)) for file in found] == ["a/1.json", "a/2.csv.gz", "b.jsonl"]
    assert "not read, because the ending tells no format: notes.txt" in caplog.text
    named = event_files([str(folder)], "jsonl")
    assert str(folder / "notes.txt") in named
    assert not any("_" in Path(file).name for file in named)


def test_a_pattern_gives_files_in_order(folder: Path) -> None:
    found = event_files([str(folder / "[ab]" / "*"), str(folder / "*.jsonl")], None)
    assert [Path(file).name for file in found] == ["1.json", "2.csv.gz", "b.jsonl"]


def test_a_name_with_a_bracket_is_a_name_if_there_is_such_a_file(write: Write) -> None:
    path = str(write("log[1].jsonl", EVENTS))
    assert event_files([path], None) == [path]


def test_what_names_no_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file fits the pattern"):
        event_files([str(folder / "*.parquet")], None)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="no file in the folder"):
        event_files([str(empty)], None)


def test_a_saved_engine_stands_alone(run: Run, events: Path, subscriptions: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    run("match", events, "-s", subscriptions, "--save", saved)
    assert subscription_files([str(saved)]) == [str(saved)]
    for arguments in ([events, "-s", saved, "-s", subscriptions], [saved, "-s", subscriptions]):
        result = run("match", *arguments)
        assert result.exit_code == 3
        assert "is a folder with a saved engine" in result.stderr
