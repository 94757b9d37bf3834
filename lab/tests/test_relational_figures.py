"""The figures of docs/algorithms.md on matching inside a database are those of the committed result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECTION = (
    (ROOT / "docs" / "algorithms.md")
    .read_text(encoding="utf-8")
    .partition("\n## Inside a database\n")[2]
    .partition("\n## ")[0]
)
RESULT = json.loads((ROOT / "benchmarks" / "results" / "relational.json").read_text(encoding="utf-8"))
ENGINES = ("duckdb", "sqlite", "postgres")
WORKLOADS = ("stock", "le-subscribe")
ALGORITHMS = ("sequential_search", "predicate_grouping", "relational_anchored")
SINGLE = "relational_anchored_single"


def row(workload: str, engine: str) -> dict[str, Any]:
    (found,) = (each for each in RESULT["rows"] if (each["workload"], each["engine"]) == (workload, engine))
    return dict(found)


def table_lines() -> Iterator[str]:
    yield f"| {RESULT['subscriptions']:,} subscriptions, µs per event | DuckDB | SQLite | PostgreSQL |"
    yield "|---|---|---|---|"
    for workload in WORKLOADS:
        for name in (*ALGORITHMS, SINGLE):
            told = "`relational_anchored`, single events" if name == SINGLE else f"`{name}`"
            figures = (f"{row(workload, engine)['us_per_event'][name]['median']:,.0f}" for engine in ENGINES)
            yield f"| {workload}: {told} | {' | '.join(figures)} |"
    yield "| loading: rows a second, bytes a subscription | DuckDB | SQLite | PostgreSQL |"
    yield "|---|---|---|---|"
    for workload in WORKLOADS:
        for name in ALGORITHMS:
            loads = (row(workload, engine)["loading"][name] for engine in ENGINES)
            figures = (f"{each['rows_per_second']:,}, {each['bytes_per_subscription']:,.0f}" for each in loads)
            yield f"| {workload}: `{name}` | {' | '.join(figures)} |"


def sentences() -> Iterator[str]:
    for workload in WORKLOADS:
        times = [row(workload, engine)["times_grouping"]["median"] for engine in ENGINES]
        yield f"{min(times):,.0f} to {max(times):,.0f} times as long as `relational_anchored` on {workload}"
    yield f"The median of {RESULT['rounds']} rounds"
    yield f"one batch of {RESULT['events']:,} events"
    yield f"on {RESULT['few']} events, with a query for each"


def test_the_tables_are_those_of_the_result() -> None:
    assert [line for line in SECTION.splitlines() if line.startswith("|")] == list(table_lines())


def test_the_sentences_are_those_of_the_result() -> None:
    told = " ".join(SECTION.split())
    assert [each for each in sentences() if each not in told] == []


def test_every_floor_is_kept() -> None:
    assert RESULT["not_measured"] == {}
    assert RESULT["subscriptions"] == 100_000
    assert [(each["workload"], each["engine"]) for each in RESULT["rows"] if not each["holds"]] == []
    assert {each["workload"]: each["floor"] for each in RESULT["rows"]} == {"stock": 20, "le-subscribe": 3}
    for each in RESULT["rows"]:
        assert each["holds"] is (each["times_grouping"]["median"] >= each["floor"])
