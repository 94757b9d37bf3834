"""The cost of the first use on a machine that has compiled no kernels: processor time up to the first answers.

Each scenario runs in its own process with an empty folder for kernels, and once more with the kernels compiled.
Processor time is that of the process from its start, imports included. With --save the result goes to
benchmarks/results/first_use.json, which docs/python.md quotes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

RESULTS = Path(__file__).parent / "results" / "first_use.json"
SUBSCRIPTIONS = 20_000
EVENTS = 1_000
XPATHS = 300
TEXTS = (
    "category = 'c{category}' AND price < {price}",
    "category = 'c{category}' AND price BETWEEN {price} AND {more} AND stock > {stock}",
    "brand = 'b{brand}' AND category = 'c{category}'",
    "category IN ('c{category}', 'c1') AND price >= {price}.5",
)


def texts(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """(id, where) of plain subscriptions, of four shapes."""
    drawn = []
    for number in range(count):
        price = rng.randrange(500)
        values = {"category": rng.randrange(200), "price": price, "more": price + rng.randrange(100)}
        values |= {"stock": rng.randrange(100), "brand": rng.randrange(1_000)}
        drawn.append((f"s{number}", TEXTS[number % len(TEXTS)].format(**values)))
    return drawn


def events(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "category": f"c{rng.randrange(210)}",
            "price": rng.randrange(500) / 2,
            "stock": rng.randrange(100),
            "brand": f"b{rng.randrange(1_000)}",
        }
        for _ in range(EVENTS)
    ]


def plain() -> int:
    """20,000 subscriptions in plain SQL; a dict, 1,000 dicts, and an Arrow table."""
    import pyarrow as pa

    from harken import Engine

    rng = random.Random(1)
    engine = Engine()
    report = engine.subscribe_many(texts(SUBSCRIPTIONS, rng))
    assert report.accepted == SUBSCRIPTIONS, report.faults[:3]
    batch = events(rng)
    one = engine.match(batch[0]).ids
    many = engine.match_batch(batch).ids
    table = engine.match_batch(pa.Table.from_pylist(batch))
    assert sorted(many[0]) == sorted(one)
    assert list(map(sorted, table.ids)) == list(map(sorted, many))
    return len(table.arrow_ids())


def small() -> int:
    """100 subscriptions, a dict."""
    from harken import Engine

    rng = random.Random(1)
    engine = Engine()
    engine.subscribe_many(texts(100, rng))
    return len([engine.match(event).ids for event in events(rng)])


def documents() -> int:
    """300 XPath subscriptions, 200 XML documents."""
    from harken import Engine

    engine = Engine()
    engine.subscribe_many(
        {"id": f"x{n}", "where": f"/a[b = 'v{n}']/c < {n}", "language": "xpath"} for n in range(XPATHS)
    )
    return len(engine.match_batch([b"<a><b>v%d</b><c>0</c></a>" % n for n in range(200)]).ids)


def everything() -> int:
    """`harken warm-up`."""
    from harken import warm_up

    return warm_up()


SCENARIOS: dict[str, Callable[[], int]] = {
    "plain": plain,
    "small": small,
    "documents": documents,
    "everything": everything,
}


def child(name: str) -> None:
    """Run a scenario and print its processor time and its number of compiled kernels."""
    from numba.core import event

    compiled: list[str] = []

    class Listener(event.Listener):
        def on_start(self, started: Any) -> None:
            compiled.append(started.data["dispatcher"].py_func.__qualname__)

        def on_end(self, ended: Any) -> None:
            pass

    event.register("numba:compile", Listener())
    assert SCENARIOS[name]()
    print(json.dumps({"seconds": process_time(), "kernels": len(set(compiled)), "compiled": len(compiled)}))


def run(name: str, folder: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", name],
        env={**os.environ, "NUMBA_CACHE_DIR": folder},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(name: str, rounds: int) -> dict[str, Any]:
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="harken-first-use-") as folder:
            cold.append(run(name, folder))
            warm.append(run(name, folder))
    assert not any(each["compiled"] for each in warm), "kernels were compiled again"
    return {
        "scenario": name,
        "what": (SCENARIOS[name].__doc__ or "").strip(),
        "cold_seconds": spread([each["seconds"] for each in cold]),
        "kept_seconds": spread([each["seconds"] for each in warm]),
        "kernels": cold[0]["kernels"],
        "compiled": cold[0]["compiled"],
    }


def spread(seconds: list[float]) -> dict[str, float]:
    return {"median": round(median(seconds), 2), "least": round(min(seconds), 2), "most": round(max(seconds), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    parser.add_argument("--child", choices=SCENARIOS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    from harken_lab.harness.environment import environment
    from harken_lab.harness.result_files import to_json

    rows = []
    for name in arguments.scenarios:
        rows.append(measure(name, arguments.rounds))
        print(json.dumps(rows[-1]), flush=True)
    result = {
        "what": "seconds of processor time of a process, imports included, with an empty folder for kernels and again",
        "subscriptions": SUBSCRIPTIONS,
        "events": EVENTS,
        "rounds": arguments.rounds,
        "scenarios": rows,
        "environment": environment("numba"),
    }
    if arguments.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
