"""Measuring for the report: what is there is kept, what was stopped goes on, and one failure does not stop the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.errors import CapabilityError, SourceError
from harken_lab.experiments.definition import Experiment, ExperimentResult, Tell
from harken_lab.harness.source_state import source_state
from harken_lab.report.measuring import measure, read

NAMES = ["topss-tables", "gryphon-tree", "overlap-orders"]


class Runs:
    """Stands in for running experiments."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failing: dict[str, BaseException] = {}
        self.sources = source_state().sources

    def run(self, experiment: Experiment, scale: str, seed: int, tell: Tell) -> ExperimentResult:
        self.names.append(experiment.name)
        if experiment.name in self.failing:
            raise self.failing[experiment.name]
        where = {"sources": self.sources, "commit": self.sources[:3]}
        return ExperimentResult(experiment.name, "t", "p", scale, seed, where, {}, [{"entrant": "a"}])

    def since(self) -> list[str]:
        """What was run since this was asked."""
        names, self.names = self.names, []
        return names


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()

    def run(self: Experiment, scale: str, seed: int, tell: Tell, **parameters: Any) -> ExperimentResult:
        return found.run(self, scale, seed, tell)

    monkeypatch.setattr(Experiment, "run", run)
    return found


def silent(text: str) -> None:
    pass


def test_a_stopped_run_goes_on_where_it_was(runs: Runs, tmp_path: Path) -> None:
    runs.failing["gryphon-tree"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, "smoke", 0, silent, names=NAMES)
    assert runs.since() == NAMES[:2]
    assert [path.name for path in tmp_path.iterdir()] == ["topss-tables.json"], "nothing of the one that was stopped"
    runs.failing.clear()
    told: list[str] = []
    found = measure(tmp_path, "smoke", 0, told.append, names=NAMES)
    assert runs.since() == NAMES[1:]
    assert list(found.results) == NAMES
    assert told[0] == "1 of 3 experiments are measured already: topss-tables"
    assert "experiment 2 of 3: gryphon-tree" in told
    measure(tmp_path, "smoke", 0, silent, names=NAMES)
    assert runs.since() == []


@pytest.mark.parametrize("given", [{"scale": "laptop"}, {"seed": 1}, {"fresh": True}])
def test_a_result_of_another_scale_or_seed_is_not_kept(runs: Runs, tmp_path: Path, given: dict[str, Any]) -> None:
    measure(tmp_path, "smoke", 0, silent, names=NAMES)
    runs.since()
    given = {"scale": "smoke", "seed": 0} | given
    found = measure(tmp_path, tell=silent, names=NAMES, **given)
    assert runs.since() == NAMES
    assert {(each.scale, each.seed) for each in found.results.values()} == {(given["scale"], given["seed"])}


def test_one_that_cannot_be_measured_does_not_stop_the_others(runs: Runs, tmp_path: Path) -> None:
    runs.failing["gryphon-tree"] = CapabilityError("there is no tree", hint="plant one")
    found = measure(tmp_path, "smoke", 0, silent, names=NAMES)
    assert list(found.results) == ["topss-tables", "overlap-orders"]
    assert found.failures == {"gryphon-tree": "there is no tree"}
    runs.since()
    measure(tmp_path, "smoke", 0, silent, names=NAMES)
    assert runs.since() == ["gryphon-tree"], "it is tried again"


def test_a_bug_ends_the_run(runs: Runs, tmp_path: Path) -> None:
    runs.failing["gryphon-tree"] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        measure(tmp_path, "smoke", 0, silent, names=NAMES)


def test_a_file_that_is_no_result_is_told_before_anything_is_measured(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "overlap-orders.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SourceError, match=r"overlap-orders\.json is not the result of an experiment"):
        measure(tmp_path, "smoke", 0, silent, names=NAMES)
    assert runs.since() == []


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_measured(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="cannot be written to"):
        measure(tmp_path / "file" / "results", "smoke", 0, silent, names=NAMES)
    assert runs.since() == []


def test_results_are_read_without_measuring(runs: Runs, tmp_path: Path) -> None:
    measure(tmp_path, "smoke", 0, silent, names=NAMES[:1])
    runs.since()
    assert list(read(tmp_path).results) == NAMES[:1]
    assert runs.since() == []
    with pytest.raises(SourceError, match="has no results of experiments"):
        read(tmp_path / "nowhere")


def test_a_result_of_other_sources_is_measured_again_unless_it_may_be_mixed(runs: Runs, tmp_path: Path) -> None:
    runs.sources = "old"
    measure(tmp_path, "smoke", 0, silent, names=NAMES[:1])
    runs.since()
    measure(tmp_path, "smoke", 0, silent, names=NAMES[:1], mixed=True)
    assert runs.since() == []
    measure(tmp_path, "smoke", 0, silent, names=NAMES[:1])
    assert runs.since() == NAMES[:1]


def test_results_of_several_sources_are_rejected(runs: Runs, tmp_path: Path) -> None:
    for sources, name in (("one", NAMES[0]), ("two", NAMES[1])):
        runs.sources = sources
        measure(tmp_path, "smoke", 0, silent, names=[name])
    with pytest.raises(
        SourceError, match=f"different commits of src and lab/src.*one: {NAMES[0]}; two: {NAMES[1]}"
    ) as e:
        read(tmp_path)
    assert "--mixed" in str(e.value.hint)
    assert list(read(tmp_path, mixed=True).results) == NAMES[:2]


def test_results_that_name_no_sources_are_of_their_own(runs: Runs, tmp_path: Path) -> None:
    runs.sources = ""
    measure(tmp_path, "smoke", 0, silent, names=NAMES[:1])
    assert list(read(tmp_path).results) == NAMES[:1], "one result is mixed with nothing"
    measure(tmp_path, "smoke", 0, silent, names=NAMES[1:2])
    with pytest.raises(SourceError, match="unknown ones"):
        read(tmp_path)
