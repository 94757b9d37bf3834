"""The generated parts of the pages: they are what the generator writes, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harken.errors import CapabilityError
from harken.matchers.algorithm_registry import ALGORITHMS
from harken_lab.experiments import find_experiment
from harken_lab.experiments.definition import ExperimentResult, read_result
from harken_lab.experiments.experiment_pages import main, updated_page
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.judging import main as judge

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "experiments"
ENVIRONMENT = {"processor": "abacus", "cores": 2, "memory_gib": 4.0, "python": "3.11"}


@pytest.mark.parametrize("name", ["algorithms.md", "experiments.md"])
def test_the_committed_pages_are_up_to_date(name: str) -> None:
    """Otherwise run harken_lab.experiments.experiment_pages, as its docstring says."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert "<!-- generated: " in text
    assert updated_page(text, RESULTS) == text


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_committed_findings_follow_from_the_rows(path: Path) -> None:
    """Otherwise run harken_lab.experiments.judging, as its docstring says."""
    result = read_result(path)
    assert result.judged(find_experiment(result.experiment)).findings == result.findings


def test_saved_results_are_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    committed = read_result(RESULTS / "overlap-optimum.json")
    claims = [each.claim for each in committed.findings]
    stale = replace(committed, findings=[replace(committed.findings[0], holds=False), *committed.findings[2:]])
    path = tmp_path / "overlap-optimum.json"
    path.write_text(stale.to_json(), encoding="utf-8")
    judge([str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == [
        f"overlap-optimum: {claims[0]}: does not hold -> holds",
        f"overlap-optimum: {claims[1]}: new -> holds",
    ]
    assert read_result(path) == committed
    judge([str(tmp_path)])
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit, match="usage"):
        judge([])


def test_every_algorithm_has_its_section() -> None:
    text = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    assert [name for name in ALGORITHMS if f"\n### {name}\n" not in text] == []


def part(name: str) -> str:
    return f"before\n<!-- generated: {name} -->\nold\n<!-- end -->\nafter\n"


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    text = updated_page(part("capabilities"), tmp_path)
    assert text.startswith("before\n<!-- generated: capabilities -->\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "| `columnar` (the default) |" in text
    assert all(f"`{name}`" in text for name in ALGORITHMS)
    assert updated_page(text, tmp_path) == text


def test_without_results_the_page_says_how_to_get_them(tmp_path: Path) -> None:
    assert "harken experiment overview" in updated_page(part("measured"), tmp_path)
    assert "harken experiment all" in updated_page(part("findings"), tmp_path)


def test_unknown_parts_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="no part `colours`"):
        updated_page(part("colours"), tmp_path)


def test_measurements_and_findings(tmp_path: Path) -> None:
    rows = [
        {"workload": "w4", "subscriptions": 100, "entrant": "slow", "us_per_event": 250.0, "bytes": 1_000}
        | {"examined_per_event": None, "events": 2, "matches_per_event": 3.0},
        {
            "workload": "w4",
            "subscriptions": 100,
            "entrant": "quick",
            "us_per_event": 1.25,
            "insert_us": 7.0,
            "events": 9,
        }
        | {"matches_per_event": 4.5},
        {"workload": "w4", "subscriptions": 100, "entrant": "none", "rejected": "stopped at max_tree_nodes: many"},
    ]
    finding = Finding("a | b", "3 times", "2 times", False, "so it is")
    for name, findings in (("overview", []), ("topss-tables", [finding])):
        result = ExperimentResult(name, "t", "the paper", "smoke", 0, ENVIRONMENT, {"size": 100}, rows, findings)
        (tmp_path / f"{name}.json").write_text(result.to_json(), encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(part("measured") + part("findings"), encoding="utf-8")
    main([str(page), str(tmp_path)])
    text = page.read_text(encoding="utf-8")
    assert "**w4**, 100 subscriptions, 4.5 matches an event" in text
    assert text.index("| `quick` | 1.25 |  |  | 7 |  |") < text.index("| `slow` | 250 |  | 10 |  |  |")
    assert "- `none`: stopped at max_tree_nodes: many" in text
    assert "0 of 1 claims hold, 1 do not, 0 cannot be told, 0 are not measured." in text
    assert "| a \\| b | 3 times | 2 times | **no** | so it is |" in text
    assert "seed 0, of an unknown commit, on abacus (2 cores, 4 GiB)" in text


def test_usage() -> None:
    with pytest.raises(SystemExit, match="usage"):
        main(["page.md"])
