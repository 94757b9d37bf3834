"""`harken generate`: files that the other commands read, the same for the same seed, as a whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import ipc

from harken_lab.workloads import WORKLOADS, generate
from unit.cli.conftest import Run, lines

FORMATS = ["jsonl", "parquet", "arrow"]


def rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return lines(path.read_text())
    table = pa.parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def without_nulls(node: Any) -> Any:
    if isinstance(node, list):
        return [without_nulls(each) for each in node]
    if isinstance(node, dict):
        return {name: without_nulls(value) for name, value in node.items() if value is not None}
    return node


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_files_hold_the_workload(run: Run, tmp_path: Path, name: str, format: str) -> None:
    result = run("generate", name, "--to", tmp_path, "-s", 30, "-e", 20, "--seed", 5, "--format", format)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"{name} with seed 5: 30 subscriptions in {tmp_path}" in result.stderr
    workload = generate(name, 30, 20, 5)
    texts = workload.texts().to_pylist()
    language = {} if workload.language == "sql" else {"language": workload.language}
    expected = [{"id": f"s{row}", "where": text, **language} for row, text in enumerate(texts)]
    assert rows(tmp_path / f"subscriptions.{format}") == expected
    events = [without_nulls(each) for each in rows(tmp_path / f"events.{format}")]
    assert events == [without_nulls(each) for each in workload.events.to_pylist()]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["le-subscribe", "nasa"])
def test_match_reads_the_files(run: Run, tmp_path: Path, name: str, format: str) -> None:
    settings = ["--set", "paths=[1, 3]", "--set", "mean=2"] if name == "nasa" else []
    run("generate", name, "--to", tmp_path, "-s", 200, "-e", 50, "--format", format, *settings)
    subscriptions, events = (tmp_path / f"{name}.{format}" for name in ("subscriptions", "events"))
    result = run("match", events, "-s", subscriptions, "--json", "--strict")
    assert result.exit_code == 0
    summary = lines(result.stderr)[-1]
    assert (summary["events"], summary["subscriptions"]) == (50, 200)
    assert summary["matches"] > 0


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_written_as_nothing(run: Run, tmp_path: Path, format: str) -> None:
    assert run("generate", "w4", "--to", tmp_path, "-s", 0, "-e", 0, "--format", format).exit_code == 0
    assert rows(tmp_path / f"subscriptions.{format}") == rows(tmp_path / f"events.{format}") == []


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_predicates_instead_of_texts(run: Run, tmp_path: Path, format: str) -> None:
    assert run("generate", "stock", "--to", tmp_path, "-s", 9, "--predicates", "--format", format).exit_code == 0
    assert rows(tmp_path / f"subscriptions.{format}") == generate("stock", 9, 0).table().to_pylist()


def test_the_same_seed_gives_the_same_files(run: Run, tmp_path: Path) -> None:
    for folder, seed in (("one", 3), ("again", 3), ("other", 4)):
        assert run("generate", "mixed", "--to", tmp_path / folder, "-s", 50, "-e", 9, "--seed", seed).exit_code == 0
    for name in ("subscriptions.jsonl", "events.jsonl"):
        one, again, other = ((tmp_path / folder / name).read_bytes() for folder in ("one", "again", "other"))
        assert one == again != other


def test_parameters_are_set(run: Run, tmp_path: Path) -> None:
    settings = ["--set", "predicates=[2, 2]", "--set", "domains=[[7, 7]]"]
    result = run("generate", "w4", "--to", tmp_path, "-s", 20, "-e", 1, "--json", *settings)
    assert all(each["where"].count(" 7") == 2 for each in rows(tmp_path / "subscriptions.jsonl"))
    (summary,) = lines(result.stderr)
    assert summary["kind"] == "summary"
    assert summary["files"]["events"] == str(tmp_path / "events.jsonl")
    again = generate(summary["workload"], 20, 1, summary["seed"], **summary["parameters"])
    assert again.texts().to_pylist() == [each["where"] for each in rows(tmp_path / "subscriptions.jsonl")]


def test_a_folder_is_made_and_files_are_replaced(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    for count in (5, 3):
        assert run("generate", "w4", "--to", folder, "-s", count, "-e", count).exit_code == 0
        assert len(rows(folder / "subscriptions.jsonl")) == len(rows(folder / "events.jsonl")) == count
    assert sorted(each.name for each in folder.iterdir()) == ["events.jsonl", "subscriptions.jsonl"]


def test_what_fails_leaves_the_old_files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("generate", "w4", "--to", tmp_path, "-s", 5, "-e", 5)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def fails(batch: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harken_lab.workloads.workload_files._json_lines", fails)
    result = run("generate", "w4", "--to", tmp_path, "-s", 9, "-e", 9)
    assert result.exit_code == 3
    assert "No space left on device" in result.stderr
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w4x", "--to", "x"], "there is no workload `w4x`; did you mean `w4`"),
        (
            ["text", "--to", "x", "--predicates", "--format", "arrow"],
            "the subscriptions of text cannot be written as lists of predicates",
        ),
        (["--to", "x"], "name a workload; --list shows them"),
        (["w4"], "name a folder for the files"),
        (["w4", "--to", "x", "--format", "csv"], "choose one of jsonl, parquet, arrow, not csv"),
        (["w4", "--to", "x", "--predicates"], "lists of predicates need --format parquet or arrow"),
        (["w4", "--to", "x", "--set", "carried"], "write NAME=VALUE, not carried"),
        (["w4", "--to", "x", "--set", "carried=ten"], "ten is not JSON"),
        (["w4", "--to", "x", "--set", "carrried=1"], "there is no parameter `carrried`; did you mean `carried`?"),
        (["w4", "--to", "x", "--set", "carried=11"], "`carried` is 0 to 10"),
        (["w4", "--to", "x", "-s", "-1"], "Invalid value for '--subscriptions'"),
    ],
)
def test_wrong_usage(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("generate", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    result = run("generate", "w4", "--to", path, "-s", 1, "-e", 1)
    assert result.exit_code == 3
    assert "cannot be made a folder: File exists" in result.stderr


def test_the_list(run: Run) -> None:
    result = run("generate", "--list", env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for name, recipe in WORKLOADS.items():
        assert any(name in line and recipe.description in line for line in result.stdout.splitlines())


def test_the_list_as_json(run: Run) -> None:
    found = {each["name"]: each for each in lines(run("generate", "--list", "--json").stdout)}
    assert list(found) == list(WORKLOADS)
    for name, recipe in WORKLOADS.items():
        assert found[name]["description"] == recipe.description
        assert found[name]["parameters"] == json.loads(json.dumps(recipe.all_parameters()))


def test_help_fits_80_columns_and_has_an_example(run: Run) -> None:
    result = run("generate", "--help", env={"COLUMNS": "80"}, prog_name="harken")
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "harken generate" in result.stdout.partition("Example")[2]
