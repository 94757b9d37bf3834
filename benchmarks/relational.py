"""Matching inside databases: the papers' two ways and Harken's own, on DuckDB, SQLite and a PostgreSQL server.

The PostgreSQL server is started for the run. The papers' ways make a query for each event; `relational_anchored`
matches batches in one query, and single events as well. All take turns in one process; times are processor time of this
process and of the server's sessions, so that neighbours on the machine count less. Before the turns, as
a warm-up, the answers are compared with those of the columnar engine and with plain evaluation. With --save the result
goes to benchmarks/results/relational.json, which docs/algorithms.md quotes.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from harken.matchers import Entry, create_matcher
from harken_lab.harness.contestants import Contestant, FilledMatcher, entries_of, sample_of
from harken_lab.harness.environment import environment
from harken_lab.harness.postgres_server import running_postgres
from harken_lab.harness.processor_clock import ProcessorClock
from harken_lab.harness.result_files import Unavailable, to_json
from harken_lab.harness.verified_answers import verify
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

RESULTS = Path(__file__).parent / "results" / "relational.json"
LEAST_TIMES = {"stock": 20, "le-subscribe": 3}
"""The target: predicate grouping takes at least this many times as long as `relational_anchored`."""
SEQUENTIAL, GROUPING, ANCHORED = "sequential_search", "predicate_grouping", "relational_anchored"
SINGLE = "relational_anchored_single"
EVALUATED = 4
"""Events whose answers are compared with plain evaluation."""

Turn = tuple[Callable[[], object], int]
"""The function that is timed, and how many events it matches."""


def loaded(
    algorithm: str, database: str, entries: Sequence[Entry], clock: ProcessorClock
) -> tuple[FilledMatcher, dict[str, float]]:
    """A matcher with all subscriptions, and the figures of loading them. It has its own session of the database."""
    forms = {entry.number: entry.compiled.normal_form for entry in entries}
    matcher = create_matcher(algorithm, database=database)
    matcher.add(entries[:1])
    matcher.remove([entries[0].number])
    clock.find_sessions()
    started = clock.now()
    matcher.add(entries)
    seconds = clock.now() - started
    stats = matcher.stats()
    size = sum(stats["memory"].values()) / len(entries)
    figures = {"rows_per_second": round(stats["rows"] / seconds), "bytes_per_subscription": round(size, 1)}
    return FilledMatcher(matcher, seconds, forms.__getitem__), figures


def checked(workload: Workload, filled: dict[tuple[str, str], FilledMatcher], seed: int) -> float:
    """Compare all answers with those of the columnar engine. Returns the matches of an event."""
    sample = sample_of(workload.name, seed).events
    judge = Contestant.of("columnar").fill(workload, sample).take(workload.events)
    named = {f"{algorithm} on {engine}": each for (algorithm, engine), each in filled.items()}
    verify(workload, {"columnar": judge, **named}, evaluated=EVALUATED)
    return float(judge.matches()[0][-1]) / judge.events


def turns(filled: FilledMatcher, algorithm: str, workload: Workload, singles: int) -> Iterator[tuple[str, Turn]]:
    yield algorithm, (filled.find, filled.events)
    if algorithm == ANCHORED:
        one_by_one = [filled.on(workload.events.slice(place, 1)) for place in range(singles)]
        yield SINGLE, (lambda: [each.find() for each in one_by_one], singles)


def measure(
    name: str, databases: dict[str, str], clock: ProcessorClock, arguments: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    workload = generate(name, arguments.subscriptions, arguments.events, arguments.seed)
    entries = entries_of(workload)
    filled: dict[tuple[str, str], FilledMatcher] = {}
    loading: dict[tuple[str, str], dict[str, float]] = {}
    for engine, database in databases.items():
        for algorithm in (SEQUENTIAL, GROUPING, ANCHORED):
            progress(f"{name}: loading {algorithm} on {engine}")
            each, loading[algorithm, engine] = loaded(algorithm, database, entries, clock)
            count = arguments.events if algorithm == ANCHORED else arguments.few
            filled[algorithm, engine] = each.take(workload.events.slice(0, count))
    progress(f"{name}: checking answers")
    matches = checked(workload, filled, arguments.seed)
    times: dict[tuple[str, str], list[float]] = {}
    for place in range(arguments.rounds):
        progress(f"{name}: round {place + 1} of {arguments.rounds}")
        for (algorithm, engine), each in filled.items():
            for turn, (work, count) in turns(each, algorithm, workload, arguments.singles):
                started = clock.now()
                work()
                times.setdefault((turn, engine), []).append((clock.now() - started) / count * 1e6)
    for engine in databases:
        row = {"workload": name, "engine": engine, "matches_per_event": round(matches, 2)}
        of_engine = {turn: each for (turn, where), each in times.items() if where == engine}
        loads = {algorithm: each for (algorithm, where), each in loading.items() if where == engine}
        yield row | judged(name, of_engine) | {"loading": loads}


def judged(workload: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """The times of one engine, and whether `relational_anchored` meets its target in the median round."""
    ratios = [grouping / anchored for grouping, anchored in zip(times[GROUPING], times[ANCHORED], strict=True)]
    singles = [grouping / single for grouping, single in zip(times[GROUPING], times[SINGLE], strict=True)]
    return {
        "us_per_event": {
            turn: {"median": round(median(each), 1), "least": round(min(each), 1)} for turn, each in times.items()
        },
        "times_grouping": {"median": round(median(ratios), 1), "least": round(min(ratios), 1)},
        "times_grouping_single": {"median": round(median(singles), 1), "least": round(min(singles), 1)},
        "floor": LEAST_TIMES[workload],
        "holds": median(ratios) >= LEAST_TIMES[workload],
    }


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000, help="events in a batch of relational_anchored")
    parser.add_argument("--few", type=int, default=5, help="events that the papers' ways match in a turn")
    parser.add_argument("--singles", type=int, default=20, help="single events in a turn of relational_anchored")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        databases, missing = {"duckdb": "duckdb", "sqlite": "sqlite"}, {}
        try:
            databases["postgres"] = stack.enter_context(running_postgres())
        except Unavailable as error:
            missing["postgres"] = str(error)
        clock, rows = ProcessorClock(databases.get("postgres")), []
        for name in LEAST_TIMES:
            for row in measure(name, databases, clock, arguments):
                rows.append(row)
                print(json.dumps(row), flush=True)
        versions = {"sqlite": sqlite3.sqlite_version, "postgresql": clock.version()}
    result = {
        "what": "µs of processor time an event, of this process and of the server's sessions",
        **{name: vars(arguments)[name] for name in ("subscriptions", "events", "few", "singles", "rounds", "seed")},
        "rows": rows,
        "not_measured": missing,
        "environment": environment("duckdb", "psycopg") | {"databases": versions},
    }
    if arguments.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
