"""All algorithms side by side on four workloads, for the table of docs/algorithms.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken.matchers.algorithm_registry import ALGORITHMS, algorithm_options
from harken_lab.experiments.changing import measure_changes
from harken_lab.experiments.definition import Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.plotting import Dots
from harken_lab.experiments.running import Run, joined
from harken_lab.harness.contestants import Contestant

WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "le-subscribe": ("le-subscribe", {}),
    "w4": ("w4", {}),
    "gryphon": ("gryphon", {}),
    "two attributes": ("gryphon", {"attributes": 2, "values": 200, "popularity": 0.9, "decline": 0.9}),
}
"""Name in the table, workload, and its parameters."""


def measure(run: Run) -> Iterator[Row]:
    # In a database an event takes tenths of a second: topss-dbms measures those algorithms.
    names = [name for name in ALGORITHMS if "database" not in algorithm_options(name)]
    contestants = tuple(map(Contestant.of, names))
    for title, (name, parameters) in WORKLOADS.items():
        workload = run.draw(name, run["size"], **parameters)
        rows = [row | {"workload": title} for row in run.compare(workload, contestants)]
        filled = [each for each, row in zip(contestants, rows, strict=True) if "rejected" not in row]
        changes = {row["entrant"]: row for row in measure_changes(run, workload, filled)}
        for row in rows:
            yield joined(changes.get(row["entrant"], {}), row)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    """No findings: no paper makes a claim about all algorithms."""
    return iter(())


EXPERIMENT = Experiment(
    name="overview",
    title="All algorithms side by side",
    paper="none: it is for docs/algorithms.md",
    scales={
        "smoke": {"size": 1_000, "events": 8, "changes": 5},
        "laptop": {"size": 100_000, "events": 256, "changes": 100},
        "full": {"size": 100_000, "events": 1_000, "changes": 1_000},
    },
    measure=measure,
    judge=judge,
    plots=(
        Dots("time", "Matching one event"),
        Dots("memory", "Memory", "bytes", "bytes"),
        Dots("insert", "Adding one subscription", "insert_us", "µs"),
    ),
)
