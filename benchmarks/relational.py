"""Matching inside databases: the papers' two ways and Harken's own, on DuckDB, SQLite and a PostgreSQL server.

The server is the machine's own, started for the run. A query is made for each event, but `relational_anchored` matches
a batch of events in one, and single events as well. All take turns in one process; times are processor time of this
process and of the server's sessions, so that neighbours on the machine count less. Before the turns, which warms up,
the answers are compared with those of the columnar engine and with plain evaluation. With --save the result goes to
benchmarks/results/relational.json, which docs/algorithms.md quotes.
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
from harken_lab.harness.contestants import Contestant, Filled, entries_of, sample_of
from harken_lab.harness.environment import environment
from harken_lab.harness.postgres_server import running_postgres
from harken_lab.harness.processor_clock import ProcessorClock
from harken_lab.harness.result_files import Unavailable, to_json
from harken_lab.harness.verified_answers import verify
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

RESULTS = Path(__file__).parent / "results" / "relational.json"
FLOORS = {"stock": 20, "le-subscribe": 3}
"""How many times as long as `relational_anchored` predicate grouping takes, at least."""
SEQUENTIAL, GROUPING, ANCHORED = "sequential_search", "predicate_grouping", "relational_anchored"
SINGLE = "relational_anchored_single"
EVALUATED = 4
"""Events whose answers are compared with plain evaluation."""

Turn = tuple[Callable[[], object], int]
"""What is timed, and how many events it matches."""


def loaded(
    algorithm: str, database: str, entries: Sequence[Entry], clock: ProcessorClock
) -> tuple[Filled, dict[str, float]]:
    """A matcher with all subscriptions, and what loading them came to. Its session begins with it."""
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
    return Filled(matcher, seconds, forms.__getitem__), figures


def checked(workload: Workload, filled: dict[tuple[str, str], Filled], seed: int) -> float:
    """Compare all answers with those of the columnar engine. Returns the matches of an event."""
    sample = sample_of(workload.name, seed).events
    judge = Contestant.of("columnar").fill(workload, sample).take(workload.events)
    named = {f"{algorithm} on {engine}": each for (algorithm, engine), each in filled.items()}
    verify(workload, {"columnar": judge, **named}, evaluated=EVALUATED)
    return float(judge.found()[0][-1]) / judge.events


def turns(filled: Filled, algorithm: str, workload: Workload, singles: int) -> Iterator[tuple[str, Turn]]:
    yield algorithm, (filled.find, filled.events)
    if algorithm == ANCHORED:
        one_by_one = [filled.on(workload.events.slice(place, 1)) for place in range(singles)]
        yield SINGLE, (lambda: [each.find() for each in one_by_one], singles)


def measure(
    name: str, databases: dict[str, str], clock: ProcessorClock, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    workload = generate(name, given.subscriptions, given.events, given.seed)
    entries = entries_of(workload)
    filled: dict[tuple[str, str], Filled] = {}
    loading: dict[tuple[str, str], dict[str, float]] = {}
    for engine, database in databases.items():
        for algorithm in (SEQUENTIAL, GROUPING, ANCHORED):
            told(f"{name}: loading {algorithm} on {engine}")
            each, loading[algorithm, engine] = loaded(algorithm, database, entries, clock)
            count = given.events if algorithm == ANCHORED else given.few
            filled[algorithm, engine] = each.take(workload.events.slice(0, count))
    told(f"{name}: checking answers")
    matches = checked(workload, filled, given.seed)
    times: dict[tuple[str, str], list[float]] = {}
    for place in range(given.rounds):
        told(f"{name}: round {place + 1} of {given.rounds}")
        for (algorithm, engine), each in filled.items():
            for turn, (work, count) in turns(each, algorithm, workload, given.singles):
                started = clock.now()
                work()
                times.setdefault((turn, engine), []).append((clock.now() - started) / count * 1e6)
    for engine in databases:
        row = {"workload": name, "engine": engine, "matches_per_event": round(matches, 2)}
        mine = {turn: each for (turn, where), each in times.items() if where == engine}
        loads = {algorithm: each for (algorithm, where), each in loading.items() if where == engine}
        yield row | judged(name, mine) | {"loading": loads}


def judged(workload: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """The times of one engine, and whether `relational_anchored` keeps its floor in the median round."""
    ratios = [grouping / anchored for grouping, anchored in zip(times[GROUPING], times[ANCHORED], strict=True)]
    singles = [grouping / single for grouping, single in zip(times[GROUPING], times[SINGLE], strict=True)]
    return {
        "us_per_event": {
            turn: {"median": round(median(each), 1), "least": round(min(each), 1)} for turn, each in times.items()
        },
        "times_grouping": {"median": round(median(ratios), 1), "least": round(min(ratios), 1)},
        "times_grouping_single": {"median": round(median(singles), 1), "least": round(min(singles), 1)},
        "floor": FLOORS[workload],
        "holds": median(ratios) >= FLOORS[workload],
    }


def told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscriptions", type=int, default=100_000)
    options.add_argument("--events", type=int, default=1_000, help="events in a batch of relational_anchored")
    options.add_argument("--few", type=int, default=5, help="events that the papers' ways match in a turn")
    options.add_argument("--singles", type=int, default=20, help="single events in a turn of relational_anchored")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--save", action="store_true", help="write the result over the one that is committed")
    given = options.parse_args()
    with ExitStack() as stack:
        databases, missing = {"duckdb": "duckdb", "sqlite": "sqlite"}, {}
        try:
            databases["postgres"] = stack.enter_context(running_postgres())
        except Unavailable as error:
            missing["postgres"] = str(error)
        clock, rows = ProcessorClock(databases.get("postgres")), []
        for name in FLOORS:
            for row in measure(name, databases, clock, given):
                rows.append(row)
                print(json.dumps(row), flush=True)
        found = {"sqlite": sqlite3.sqlite_version, "postgresql": clock.version()}
    result = {
        "what": "µs of processor time an event, of this process and of the server's sessions",
        **{name: vars(given)[name] for name in ("subscriptions", "events", "few", "singles", "rounds", "seed")},
        "rows": rows,
        "not_measured": missing,
        "environment": environment("duckdb", "psycopg") | {"databases": found},
    }
    if given.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
