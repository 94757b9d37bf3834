"""Matching as a user calls it: dicts in, ids out, from ten subscriptions to a million, beside a plain Python loop.

Subscriptions are price alerts, `category = 'c7' AND price < 30`; about five of them match an event, at any size. An
engine is fresh (subscribed to, never merged by hand) or reloaded (saved and loaded). The loop has one compiled
function a subscription. All take turns in one process; times are processor time of one thread, so that neighbours on
the machine count less. With --workloads the papers' workloads follow, also after some subscriptions were removed. With
--save the result goes to benchmarks/results/user.json, which README quotes.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import pyarrow as pa

from harken import Engine
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import to_json
from harken_lab.workloads import generate

RESULTS = Path(__file__).parent / "results" / "user.json"
SIZES = (10, 100, 1_000, 4_000, 10_000, 100_000, 1_000_000)
PRICES = 1_000
MOST_LOOPED = 100_000 * 10
"""Most tests in a round of the loop."""

WORKLOADS = ("w4", "le-subscribe", "stock", "gryphon")
MOST_MATCHES = 10_000_000
"""Most matches in a batch of a workload: `.ids` makes a list item of each."""
REMOVED_ONE_IN = 100
"""For the figures after removals, one subscription in this many is unsubscribed."""

Event = dict[str, Any]
Answer = list[list[str]]


def categories(size: int) -> int:
    return max(10, size // 10)


def alerts(size: int, rng: random.Random) -> list[tuple[str, str, int]]:
    """(id, category, price) of each subscription."""
    return [(f"s{n}", f"c{rng.randrange(categories(size))}", rng.randrange(PRICES)) for n in range(size)]


def drawn_events(size: int, count: int, rng: random.Random) -> list[Event]:
    return [{"category": f"c{rng.randrange(categories(size))}", "price": rng.randrange(PRICES)} for _ in range(count)]


def subscribed(drawn: list[tuple[str, str, int]]) -> Engine:
    engine = Engine()
    report = engine.subscribe_many(
        (id, f"category = '{category}' AND price < {price}") for id, category, price in drawn
    )
    assert report.accepted == len(drawn), report.faults[:3]
    return engine


def looped(drawn: list[tuple[str, str, int]]) -> Callable[[Event], list[str]]:
    """A plain loop: one function per subscription, all called for every event."""
    tests = [
        (id, eval(f"lambda event: event['category'] == '{category}' and event['price'] < {price}"))
        for id, category, price in drawn
    ]
    return lambda event: [id for id, test in tests if test(event)]


def microseconds(work: Callable[[], object], events: int) -> float:
    started = process_time()
    work()
    return (process_time() - started) / events * 1e6


def measure(size: int, rounds: int, count: int, folder: Path, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    drawn, events = alerts(size, rng), drawn_events(size, count, rng)
    table = pa.Table.from_pylist(events)
    loop = looped(drawn)
    few = events[: max(1, min(count, MOST_LOOPED // size))]
    engine = subscribed(drawn)
    check([loop(event) for event in few], engine.match_batch(few).ids)
    engine.save(folder / str(size))
    reloaded = Engine.load(folder / str(size))
    check([loop(event) for event in few], reloaded.match_batch(few).ids)

    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        fresh = subscribed(drawn) if size <= 100_000 else engine
        turns: dict[str, tuple[Callable[[], object], int]] = {
            "loop": (lambda: [loop(event) for event in few], len(few)),
            "fresh_first_batch": (lambda fresh=fresh: fresh.match_batch(events).ids, count),
            "fresh_batch": (lambda fresh=fresh: fresh.match_batch(events).ids, count),
            "fresh_arrow": (lambda fresh=fresh: fresh.match_batch(table).arrow_ids(), count),
            "fresh_match": (lambda fresh=fresh: [fresh.match(event).ids for event in events], count),
            "reloaded_batch": (lambda: reloaded.match_batch(events).ids, count),
            "reloaded_arrow": (lambda: reloaded.match_batch(table).arrow_ids(), count),
            "reloaded_match": (lambda: [reloaded.match(event).ids for event in events], count),
        }
        for name, (work, matched) in turns.items():
            times.setdefault(name, []).append(microseconds(work, matched))
    if size > 100_000:
        del times["fresh_first_batch"]  # the engine is the same in all rounds
    matches = sum(engine.match_batch(events).counts) / count
    figures = {name: {"median": round(median(each), 2), "least": round(min(each), 2)} for name, each in times.items()}
    return {"subscriptions": size, "matches_per_event": round(matches, 2), "us_per_event": figures}


def measure_workload(name: str, size: int, rounds: int, count: int, folder: Path, seed: int) -> dict[str, Any]:
    workload = generate(name, subscriptions=size, events=2 * count, seed=seed)
    engine = Engine(background=False)
    assert not engine.subscribe_many(workload.table()).faults
    engine.learn(workload.events.slice(count))
    engine.save(folder / name)
    thinned = Engine.load(folder / name, background=False)
    for number in random.Random(seed).sample(range(size), size // REMOVED_ONE_IN):
        thinned.unsubscribe(f"s{number}")
    matches = sum(engine.match_batch(workload.events.slice(0, 8)).counts) / 8
    table = workload.events.slice(0, max(1, min(count, int(MOST_MATCHES / max(matches, 1)))))
    dicts = [{key: value for key, value in row.items() if value is not None} for row in table.to_pylist()]
    turns: dict[str, Callable[[], object]] = {
        "numbers": lambda: engine.match_batch(table).numbers,
        "numbers_when_thinned": lambda: thinned.match_batch(table).numbers,
        "arrow_ids": lambda: engine.match_batch(table).arrow_ids(),
        "plain_arrow_ids": lambda: engine.match_batch(table).arrow_ids(plain=True),
        "ids": lambda: engine.match_batch(table).ids,
        "match": lambda: [engine.match(event).ids for event in dicts],
    }
    for work in turns.values():
        work()
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for turn, work in turns.items():
            times.setdefault(turn, []).append(microseconds(work, len(dicts)))
    figures = {turn: {"median": round(median(each), 2), "least": round(min(each), 2)} for turn, each in times.items()}
    return {
        "workload": name,
        "subscriptions": size,
        "events": len(dicts),
        "matches_per_event": round(matches, 2),
        "us_per_event": figures,
    }


def check(expected: Answer, answers: Answer) -> None:
    assert [sorted(ids) for ids in expected] == [sorted(ids) for ids in answers], "an engine differs from the loop"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--workloads", nargs="*", choices=WORKLOADS, default=[], help="also measure these workloads of the papers"
    )
    parser.add_argument("--workload-size", type=int, default=1_000_000)
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    arguments = parser.parse_args()
    rows, workloads = [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes:
            rows.append(measure(size, arguments.rounds, arguments.events, Path(folder), arguments.seed))
            print(json.dumps(rows[-1]), flush=True)
        for name in arguments.workloads:
            size = arguments.workload_size
            workloads.append(
                measure_workload(name, size, arguments.rounds, arguments.events, Path(folder), arguments.seed)
            )
            print(json.dumps(workloads[-1]), flush=True)
    result = {
        "what": "µs of processor time an event, dicts or Arrow in, ids out, one thread",
        "events": arguments.events,
        "rounds": arguments.rounds,
        "seed": arguments.seed,
        "sizes": rows,
        "workloads": workloads,
        "environment": environment("numba"),
    }
    if arguments.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
