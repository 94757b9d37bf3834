"""`harken experiment`: its options, and what it runs, shows, writes and draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken_lab.experiments import EXPERIMENTS
from harken_lab.experiments.definition import Experiment, ExperimentResult, Tell
from harken_lab.experiments.findings import Finding
from unit.cli.conftest import Run, lines

ENTRANTS = (("columnar", 2.0), ("scan", 90.0))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """The runs, which are recorded and not measured."""
    runs: list[tuple[str, str, int]] = []

    def measure(self: Experiment, scale: str, seed: int, tell: Tell, **parameters: Any) -> ExperimentResult:
        runs.append((self.name, scale, seed))
        tell("measuring")
        rows = [
            {
                "workload": "w4",
                "subscriptions": 10,
                "equality": 0.5,
                "predicates": 5,
                "entrant": name,
                "algorithm": name,
            }
            | {"us_per_event": time, "insert_us": time, "bytes": 100}
            for name, time in ENTRANTS
        ]
        rows.append(
            {"workload": "w4", "subscriptions": 10, "entrant": "gough", "rejected": "stopped at max_tree_nodes"}
        )
        findings = [Finding("one is quicker", "3 times", "2 times", holds, "so") for holds in (True, False, None)]
        return ExperimentResult(self.name, self.title, self.paper, scale, seed, {}, {}, rows, findings)

    monkeypatch.setattr(Experiment, "run", measure)
    return runs


def test_list(run: Run) -> None:
    result = run("experiment", "--list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in EXPERIMENTS)
    found = lines(run("experiment", "--list", "--json").stdout)
    assert [each["name"] for each in found] == list(EXPERIMENTS)
    assert set(found[0]["scales"]) == {"smoke", "laptop", "full"}


def test_one_is_run_and_shown(run: Run, recorded: list[tuple[str, str, int]]) -> None:
    result = run("experiment", "topss-tables", "--seed", 9)
    assert result.exit_code == 0, result.stderr
    assert recorded == [("topss-tables", "laptop", 9)]
    assert "measuring" in result.stderr
    text = " ".join(result.stdout.split())
    assert "columnar 2 scan 90 gough rejected" in text
    assert "gough: stopped at max_tree_nodes" in text
    for verdict in ("holds: one is quicker", "does not hold: one is quicker", "cannot be told: one is quicker"):
        assert verdict in text
    assert "paper: 3 times here: 2 times why: so" in text


def test_all_are_written_into_a_folder(run: Run, recorded: list[tuple[str, str, int]], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "results"
    assert run("experiment", "all", "--scale", "smoke", "--output", folder).exit_code == 0
    assert [name for name, _, _ in recorded] == list(EXPERIMENTS)
    assert sorted(path.stem for path in folder.iterdir()) == sorted(EXPERIMENTS)
    assert json.loads((folder / "overview.json").read_text(encoding="utf-8"))["scale"] == "smoke"


def test_one_is_written_to_a_file_or_into_a_folder(
    run: Run, recorded: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    assert run("experiment", "overview", "--output", tmp_path / "o.json").exit_code == 0
    assert run("experiment", "overview", "--output", tmp_path).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.json", "overview.json"]


def test_what_was_written_is_shown_and_drawn(run: Run, recorded: list[tuple[str, str, int]], tmp_path: Path) -> None:
    first = run("experiment", "le-subscribe-equality", "--output", tmp_path / "r.json")
    again = run("experiment", "--show", tmp_path / "r.json", "--plots", tmp_path / "plots")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == first.stdout
    assert len(recorded) == 1
    assert (tmp_path / "plots" / "le-subscribe-equality_time.svg").exists()
    assert "plots: " in again.stderr


def test_json(run: Run, recorded: list[tuple[str, str, int]]) -> None:
    result = run("experiment", "gryphon-tree", "--json")
    found = lines(result.stdout)
    assert [each["kind"] for each in found] == ["row"] * 3 + ["finding"] * 3
    assert found[0]["us_per_event"] == 2.0
    assert [each["holds"] for each in found[3:]] == [True, False, None]
    assert lines(result.stderr)[0]["kind"] == "progress"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "name an experiment: "),
        ("topss", "there is no topss"),
        ("overview --scale huge", "there is no huge"),
        ("overview --seed -1", "--seed"),
    ],
)
def test_wrong_usage(run: Run, recorded: list[tuple[str, str, int]], options: str, message: str) -> None:
    result = run("experiment", *options.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert not recorded


def test_an_output_that_cannot_be_written_is_told_before_measuring(
    run: Run, recorded: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for name, output in (("overview", tmp_path / "no" / "r.json"), ("all", tmp_path / "file" / "results")):
        result = run("experiment", name, "--output", output)
        assert result.exit_code == 3
        assert "cannot be written" in result.stderr
    assert not recorded


def test_a_missing_file(run: Run) -> None:
    result = run("experiment", "--show", "nowhere.json")
    assert result.exit_code == 3
    assert "nowhere.json cannot be read" in result.stderr


def test_a_real_one(run: Run, tmp_path: Path) -> None:
    result = run("experiment", "le-subscribe-insertion", "--scale", "smoke", "--output", tmp_path / "r.json")
    assert result.exit_code == 0, result.stderr
    assert "Adding one subscription" in result.stdout
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["experiment"] == "le-subscribe-insertion"
