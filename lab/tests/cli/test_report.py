"""`harken report`: its options, the experiments that it runs and keeps, its files, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harken.errors import CapabilityError
from harken_lab.experiments import EXPERIMENTS
from harken_lab.experiments.definition import Experiment, ExperimentResult, Tell
from harken_lab.experiments.findings import Finding
from harken_lab.harness.source_state import source_state
from harken_lab.report.items import all_items
from unit.cli.conftest import Run, lines

ENVIRONMENT = {
    **{"processor": "abacus", "cores": 2, "memory_gib": 4.0, "python": "3.11"},
    **source_state()._asdict(),
}
RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "experiments"


class RecordedRuns:
    """Records experiments in place of running them."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, str, int]] = []
        self.stop_at = ""
        self.error: BaseException = KeyboardInterrupt()

    def measure(self, experiment: Experiment, scale: str, seed: int, tell: Tell) -> ExperimentResult:
        self.runs.append((experiment.name, scale, seed))
        if experiment.name == self.stop_at:
            raise self.error
        tell("measuring")
        rows = [{"workload": "w4", "subscriptions": 10, "entrant": "columnar", "us_per_event": 2.0}]
        finding = Finding("one is quicker", "figure 3", "2 times", True, "so")
        return ExperimentResult(experiment.name, "t", experiment.paper, scale, seed, ENVIRONMENT, {}, rows, [finding])


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> RecordedRuns:
    recorded = RecordedRuns()

    def run(self: Experiment, scale: str, seed: int, tell: Tell, **parameters: Any) -> ExperimentResult:
        return recorded.measure(self, scale, seed, tell)

    monkeypatch.setattr(Experiment, "run", run)
    few = {name: EXPERIMENTS[name] for name in ("topss-counting", "le-subscribe-sizes", "overlap-optimum")}
    for module in ("measuring", "sections"):
        monkeypatch.setattr(f"harken_lab.report.{module}.EXPERIMENTS", few)
    return recorded


def test_experiments_are_run_and_the_pages_written(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    result = run("report", "--seed", 3, "--output", folder)
    assert result.exit_code == 0, result.stderr
    assert [name for name, *_ in recorded.runs] == ["topss-counting", "le-subscribe-sizes", "overlap-optimum"]
    assert {(scale, seed) for _, scale, seed in recorded.runs} == {("laptop", 3)}
    assert sorted(path.name for path in folder.iterdir()) == ["report", "report.html", "report.md", "results"]
    assert (folder / "report" / "topss-counting_time.svg").exists()
    assert "experiment 2 of 3: le-subscribe-sizes" in result.stderr
    assert "23 items of 5 papers: " in result.stdout
    assert f"{folder / 'report.html'}" in result.stdout
    assert f"harken report --seed 3 --output {folder}" in (folder / "report.md").read_text(encoding="utf-8")


def test_a_stopped_run_goes_on(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    recorded.stop_at = "le-subscribe-sizes"
    result = run("report", "--output", tmp_path)
    assert result.exit_code == 130
    assert not (tmp_path / "report.html").exists()
    recorded.stop_at, recorded.runs = "", []
    result = run("report", "--output", tmp_path)
    assert result.exit_code == 0
    assert [name for name, *_ in recorded.runs] == ["le-subscribe-sizes", "overlap-optimum"]
    assert "1 of 3 experiments are measured already: topss-counting" in result.stderr
    recorded.runs = []
    assert run("report", "--output", tmp_path).exit_code == 0
    assert recorded.runs == []
    assert run("report", "--output", tmp_path, "--fresh").exit_code == 0
    assert len(recorded.runs) == 3


def test_one_that_fails_is_told_on_the_page(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    recorded.stop_at, recorded.error = "topss-counting", CapabilityError("there is no abacus")
    result = run("report", "--output", tmp_path)
    assert result.exit_code == 1
    assert "topss-counting could not be measured: there is no abacus" in result.stdout
    assert "there is no abacus" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(recorded.runs) == 3


def test_json(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    result = run("report", "--output", tmp_path, "--json")
    *items, last = lines(result.stdout)
    assert [each["item"] for each in items] == [item.label for item in all_items()]
    assert {each["kind"] for each in items} == {"item"}
    assert [each["verdict"] for each in items if each["item"] == "Figure 3"] == ["holds"]
    assert last["kind"] == "report"
    assert last["files"] == [str(tmp_path / "report.html"), str(tmp_path / "report.md")]
    assert lines(result.stderr)[0]["kind"] == "progress"


@pytest.mark.seconds
def test_results_that_are_there_are_taken_without_measuring(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    options = ("--from", RESULTS, "--benchmarks", RESULTS.parent, "--output", tmp_path)
    result = run("report", "--mixed", *options)
    assert result.exit_code == 0, result.stderr
    assert recorded.runs == []
    assert not (tmp_path / "results").exists()
    assert "benchmark-user" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_results_of_several_commits_are_rejected(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    assert run("report", "--output", tmp_path).exit_code == 0
    path = folder / "topss-counting.json"
    path.write_text(path.read_text(encoding="utf-8").replace(ENVIRONMENT["sources"], "another"), encoding="utf-8")
    result = run("report", "--from", folder, "--output", tmp_path / "new")
    assert result.exit_code == 3
    assert "the results are of different commits of src and lab/src" in result.stderr
    assert "--mixed" in result.stderr
    assert not (tmp_path / "new").exists()
    assert run("report", "--from", folder, "--output", tmp_path / "new", "--mixed").exit_code == 0
    text = (tmp_path / "new" / "report.md").read_text(encoding="utf-8")
    assert "**These results are not of one run**" in text
    assert "harken report --mixed --from" in text


def test_benchmarks_of_other_commits_are_left_out(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    for name, sources in (("wheel", ENVIRONMENT["sources"]), ("lever", "another")):
        data = {"turns": 3, "environment": ENVIRONMENT | {"packages": {}, "sources": sources}}
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    for options, shown in (((), {"wheel"}), (("--mixed",), {"wheel", "lever"})):
        assert run("report", "--benchmarks", folder, "--output", tmp_path, *options).exit_code == 0
        text = (tmp_path / "report.md").read_text(encoding="utf-8")
        assert {name for name in ("wheel", "lever") if f'id="benchmark-{name}"' in text} == shown
        assert ("Left out, as results of other commits than the experiments: `lever`." in text) == (len(shown) == 1)


def test_the_plan_says_how_long_experiments_take(run: Run, recorded: RecordedRuns, tmp_path: Path) -> None:
    result = run("report", "--plan", "--output", tmp_path)
    assert result.exit_code == 0
    assert recorded.runs == []
    assert [line.split()[0] for line in result.stdout.splitlines()[:-1]] == list(EXPERIMENTS)
    assert re.fullmatch(r"together +\d+\.\d minutes at scale laptop", result.stdout.splitlines()[-1])
    rows = lines(run("report", "--plan", "--scale", "smoke", "--output", tmp_path, "--json").stdout)
    assert {each["minutes"] for each in rows} == {None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--scale huge", "there is no huge"),
        ("--seed -1", "--seed"),
        ("--from results --scale smoke", "do not go with it"),
        ("--from results --fresh", "do not go with it"),
        ("--from results --seed 0", "do not go with it"),
        ("everything", "unexpected extra argument"),
    ],
)
def test_wrong_usage(run: Run, recorded: RecordedRuns, options: str, message: str) -> None:
    result = run("report", *options.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert recorded.runs == []


def test_folders_that_cannot_be_used_are_told_before_measuring(
    run: Run, recorded: RecordedRuns, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for options, message in (
        (("--output", tmp_path / "file"), "cannot be written to"),
        (("--from", tmp_path), "has no results of experiments"),
        (("--benchmarks", tmp_path / "nowhere"), "is not a folder"),
    ):
        result = run("report", *options)
        assert result.exit_code == 3
        assert message in result.stderr
    assert recorded.runs == []


def test_help_fits_80_columns_and_has_an_example(run: Run) -> None:
    result = run("report", "--help", env={"COLUMNS": "80"}, prog_name="harken")
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "harken report" in result.stdout.partition("Example")[2]


@pytest.mark.seconds
def test_some_real_ones(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At the smallest scale, from the command to the pages; the long run takes all of them."""
    few = {name: EXPERIMENTS[name] for name in ("topss-counting", "le-subscribe-insertion", "overlap-orders")}
    monkeypatch.setattr("harken_lab.report.measuring.EXPERIMENTS", few)
    _check_smoke(run, tmp_path, len(few))


@pytest.mark.slow
def test_all_real_ones(run: Run, tmp_path: Path) -> None:
    _check_smoke(run, tmp_path, len(EXPERIMENTS))


def _check_smoke(run: Run, folder: Path, count: int) -> None:
    result = run("report", "--scale", "smoke", "--output", folder)
    assert result.exit_code == 0, result.stderr
    assert len(list((folder / "results").glob("*.json"))) == count
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert all(f'href="#{item.key}"' in text for item in all_items())
    assert text.count("<svg") >= count
    assert "tell nothing" in text
    assert result.stderr.count(" took ") == count
