"""All experiments at the smallest scale: they measure, judge what they measured, and can be drawn and written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harken.errors import CapabilityError, SourceError
from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import SCALES, Experiment, ExperimentResult, read_result
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.plotting import Plot, chart, draw
from harken_lab.experiments.result_tables import tables
from harken_lab.experiments.running import PACES

pytestmark = pytest.mark.seconds

# How much is timed is all that smoke may differ in from the scales that count.
NAMES = list(EXPERIMENTS)
FIGURES = ("us_per_event", "insert_us", "evaluated_per_event")
DEFAULTS = {"xml": "xpath", "overlap": "adaptive"}
"""What the engine uses, by what the name of an experiment begins with."""


@pytest.mark.parametrize("name", NAMES)
def test_smoke(name: str) -> None:
    told: list[str] = []
    experiment = find_experiment(name)
    result = experiment.run("smoke", 0, told.append)
    assert all(text.startswith(f"{name}: ") for text in told)
    assert told
    assert result.rows
    for row in result.rows:
        assert "no algorithm" not in row.get("rejected", "")
        assert "rejected" in row or any(row.get(figure, 0) > 0 for figure in FIGURES)
    default = DEFAULTS.get(name.partition("-")[0], "columnar")
    own = [row for row in result.rows if row["algorithm"] == default]
    assert own, "what the engine uses stands beside the others"
    assert not any("rejected" in row for row in own)
    for finding in result.findings:
        assert finding.claim
        assert finding.paper_figure
        assert finding.ours
        assert finding.why
    assert ExperimentResult.from_dict(json.loads(result.to_json())) == result
    assert result.judged(experiment).findings == result.findings
    for plot in experiment.plots:
        assert chart(plot, result.rows).to_dict()
    assert all(table.cells for table in tables(experiment, result))


def test_three_seeds_are_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACES, "laptop", PACES["smoke"])
    experiment = find_experiment("le-subscribe-all-equal")
    result = experiment.run("laptop", 4, lambda _: None, sizes=[200, 400], events=8)
    assert (result.seed, result.seeds, result.drawn) == (4, 3, "seeds 4 to 6")
    assert len(result.rows) == 2 * 6
    rounds = PACES["smoke"].rounds
    assert {len(row["rounds"]["us_per_event"]) for row in result.rows} == {3 * rounds}
    assert result.seconds is not None
    assert set(result.environment) >= {"commit", "sources", "date", "load"}
    assert result.judged(experiment).findings == result.findings


@pytest.mark.parametrize("name", NAMES)
def test_every_scale_has_the_same_parameters(name: str) -> None:
    experiment = find_experiment(name)
    assert experiment.name == name
    assert list(experiment.scales) == list(SCALES)
    assert len({frozenset(parameters) for parameters in experiment.scales.values()}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_nothing_measured_is_nothing_told(name: str) -> None:
    assert all(finding.holds is None for finding in find_experiment(name).judge(WorkloadRows([])))


def test_unknown_names_have_a_hint() -> None:
    with pytest.raises(CapabilityError) as caught:
        find_experiment("topss-table")
    assert "topss-tables" in str(caught.value.hint)
    with pytest.raises(CapabilityError, match="no scale `huge`"):
        find_experiment("overview").run("huge", 0, print)


def test_results_can_be_read_again(tmp_path: Path) -> None:
    result = ExperimentResult(
        "overview", "t", "p", "smoke", 0, {}, {"size": 5}, [{"entrant": "a"}], [Finding(*"abc", None, "d")]
    )
    path = tmp_path / "overview.json"
    path.write_text(result.to_json(), encoding="utf-8")
    assert read_result(path) == result
    assert list(json.loads(result.to_json())) == [
        *("experiment", "title", "paper", "scale", "seed", "environment", "parameters", "rows", "findings"),
        *("seeds", "seconds"),
    ]
    path.write_text('{"rows": []}', encoding="utf-8")
    with pytest.raises(SourceError, match="is not the result of an experiment"):
        read_result(path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_result(tmp_path / "none.json")


# Plots and tables

ROWS: list[Row] = [
    {"workload": name, "subscriptions": size, "entrant": entrant, "us_per_event": size * factor}
    for name in ("w0", "w1")
    for size in (10, 1_000)
    for entrant, factor in (("lists", 0.5), ("table", 0.1))
]
ROWS.append({"workload": "w1", "subscriptions": 1_000, "entrant": "gough", "rejected": "stopped at max_tree_nodes: …"})
DRAWN = Experiment("drawn", "Drawn", "none", {}, lambda run: ROWS, lambda rows: (), (Plot("time", "Time of an event"),))
RESULT = ExperimentResult("drawn", "Drawn", "none", "smoke", 0, {}, {}, ROWS)


def test_plots_are_drawn(tmp_path: Path) -> None:
    paths = draw(DRAWN, RESULT, tmp_path / "plots")
    assert [path.name for path in paths] == ["drawn_time.svg", "drawn_time.png"]
    text = paths[0].read_text(encoding="utf-8")
    for word in ("Time of an event", "µs per event", "subscriptions", "lists", "table", "w0", "w1"):
        assert word in text, word


def test_what_there_are_no_figures_for_is_not_drawn() -> None:
    assert chart(Plot("memory", "Memory", y="bytes"), ROWS) is None
    assert chart(Plot("time", "Time", entrants=("nobody",)), ROWS) is None
    assert chart(Plot("time", "Time", where={"workload": "w1"}, facet=None), ROWS) is not None


def test_tables_say_what_plots_show() -> None:
    first, second = tables(DRAWN, RESULT)
    assert first.title == "Time of an event, w0: µs per event, by subscriptions"
    assert first.headings == ["", "10", "1,000"]
    assert first.cells == [["lists", "5", "500"], ["table", "1", "100"]]
    assert second.cells == [["lists", "5", "500"], ["table", "1", "100"], ["gough", "–", "rejected"]]


def test_bytes_are_told_in_units() -> None:
    rows = [{"subscriptions": size, "entrant": "a", "bytes": size} for size in (12, 3_456, 7_890_000, 12_000_000_000)]
    drawn = replace(DRAWN, plots=(Plot("memory", "Memory", y="bytes", y_title="bytes", facet=None),))
    (table,) = tables(drawn, replace(RESULT, rows=rows))
    assert table.cells == [["a", "12 B", "3.46 kB", "7.89 MB", "12 GB"]]
