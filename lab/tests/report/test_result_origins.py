"""Where results are from: which may stand on one page, and what the page says of their commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.errors import SourceError
from harken_lab.experiments import EXPERIMENTS
from harken_lab.experiments.definition import ExperimentResult
from harken_lab.experiments.run_plan import LAPTOP_MINUTES, planned_minutes
from harken_lab.report.benchmark_tables import BenchmarkResult
from harken_lab.report.report_document import DataTable
from harken_lab.report.result_origins import (
    are_of_one_run,
    of_the_same,
    origin_blocks,
    origin_summary,
    origins,
    reject_mixture,
)

WHERE = {"commit": "0123456789abcdef", "sources": "trees a b", "date": "2026-11-19T20:00:00+00:00", "load": 0.25}


def result(name: str, seconds: float | None = None, scale: str = "laptop", **where: Any) -> ExperimentResult:
    return ExperimentResult(name, "t", "p", scale, 2, where, {}, [], seeds=3, seconds=seconds)


def benchmark(name: str, **where: Any) -> BenchmarkResult:
    return BenchmarkResult(name, Path(f"{name}.json"), {"environment": where})


def test_results_of_the_same_sources_are_of_one_run() -> None:
    later = WHERE | {"commit": "fedcba", "date": "2026-11-20T08:00:00+00:00"}
    results = [result("a", **WHERE), result("b", **later)]
    reject_mixture(results)
    assert are_of_one_run(origins(results))
    assert origin_summary(origins(results)).text.startswith("All results are of commit `0123456789ab`")


def test_results_of_other_sources_are_rejected_and_named() -> None:
    with pytest.raises(SourceError, match=r"0123456789ab: a, c; unknown: b\n"):
        reject_mixture([result("a", **WHERE), result("b"), result("c", **WHERE)])
    with pytest.raises(SourceError):
        reject_mixture([result("a"), result("b")])
    reject_mixture([result("a")])
    reject_mixture([])


def test_a_mixture_is_said_on_top_and_listed_at_the_end() -> None:
    found = origins([result("a", **WHERE), result("b")], [benchmark("user", **WHERE)])
    text = origin_summary(found).text
    assert "**These results are not of one run**: 2 of commit `0123456789ab`; 1 of unknown commits" in text
    assert "[Which is of which](#origins)" in text
    _, table = origin_blocks(found)
    assert isinstance(table, DataTable)
    assert table.rows == (
        ("a", "0123456789ab", "2026-11-19T20:00", "0.25", "laptop, seeds 2 to 4"),
        ("b", "unknown", "–", "–", "laptop, seeds 2 to 4"),
        ("user.json", "0123456789ab", "2026-11-19T20:00", "0.25", "–"),
    )


def test_only_benchmarks_of_the_same_sources_stand_beside() -> None:
    saved = [benchmark("user", **WHERE), benchmark("old"), benchmark("grid", sources="trees c d")]
    same, left_out = of_the_same(saved, [result("a", **WHERE)])
    assert ([each.name for each in same], left_out) == (["user"], ["old", "grid"])


def test_the_plan_of_a_laptop_run_fits_90_minutes() -> None:
    minutes = planned_minutes(EXPERIMENTS, "laptop", [])
    assert set(LAPTOP_MINUTES) <= set(EXPERIMENTS)
    assert len(LAPTOP_MINUTES) >= 16
    assert sum(each for each in minutes.values() if each is not None) <= 90


def test_what_was_measured_replaces_an_estimate() -> None:
    earlier = [result("gryphon-tree", 90.0), result("overview", 30.0, "smoke")]
    minutes = planned_minutes(EXPERIMENTS, "laptop", earlier)
    assert minutes["gryphon-tree"] == 1.5
    assert minutes["overview"] == LAPTOP_MINUTES["overview"]
    assert planned_minutes(["overview", "gryphon-tree"], "smoke", earlier) == {"overview": 0.5, "gryphon-tree": None}
