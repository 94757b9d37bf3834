"""The figures of docs/benchmarks.md are those of the committed results: every number in "How fast" is derived here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
HOW_FAST = PAGE.partition("\n## How fast\n")[2].partition("\n## ")[0]
FEATURES = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
WORKLOADS = {"w4": "w4 (dense)", "le-subscribe": "le-subscribe", "stock": "stock", "gryphon": "gryphon"}
MILLION = 1_000_000
# Numbers that are no figures: what is measured, not what it came to.
NO_FIGURES = ("category = 'c7' AND price < 30", "`match_batch` of 1,000 dicts", "after 1 % unsubscribed")


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def digits(value: float) -> str:
    """A value to two digits, but with all that stand before the point."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


def medians(name: str, size: int) -> dict[tuple[str, str], float]:
    """The figures of the columnar engine by workload and name."""
    figures = results(name)["figures"]
    chosen = [each for each in figures if each.get("size") == size and each.get("matcher") == "columnar"]
    return {(each["workload"], each["name"]): each["median"] for each in chosen if "part" not in each}


def user_rows() -> Iterator[str]:
    names = ("loop", "fresh_match", "reloaded_match", "fresh_batch", "fresh_arrow")
    for row in results("user.json")["sizes"]:
        figures = [f"{digits(row['us_per_event'][name]['median'])} µs" for name in names]
        yield f"| {row['subscriptions']:,} | {' | '.join(figures)} |"


def workload_rows() -> Iterator[str]:
    names = ("numbers", "numbers_when_thinned", "arrow_ids", "ids", "match")
    for row in results("user.json")["workloads"]:
        assert row["subscriptions"] == MILLION
        figures = [f"{digits(row['us_per_event'][name]['median'])} µs" for name in names]
        yield f"| {row['workload']} | {row['matches_per_event']:,.0f} | {' | '.join(figures)} |"


SHAPES = ("detections", "text", "disjunctive", "ranges", "orders", "attributes-many")


def grid_rows() -> Iterator[str]:
    cells = results("grid.json")["cells"]
    yield "10,000 events a call"
    yield "| shape | loop, 1,000 | Harken | loop, 10,000 | Harken |"
    for shape in SHAPES:
        figures: list[str] = []
        for size in (1_000, 10_000):
            wanted = (shape, size, 10_000, "dicts")
            (cell,) = (each for each in cells if (each["shape"], each["size"], each["call"], each["given"]) == wanted)
            figures += [f"{digits(cell[name]['median'])} µs" for name in ("closures", "harken")]
        yield f"| {shape} | {' | '.join(figures)} |"
    yield f"meets its speed target in {sum(each['holds'] for each in cells)} of {len(cells)} cases"


def document_rows() -> Iterator[str]:
    names = ("lxml", "fresh_match", "fresh_batch", "reloaded_batch", "parse")
    for row in results("documents.json")["sizes"]:
        found = row["documents_per_second"]
        figures = [f"{digits(found[name]['median'])}" if name in found else "-" for name in names]
        yield f"| {row['subscriptions']:,} | {' | '.join(figures)} |"


def kernel_rows() -> Iterator[str]:
    found = medians("matching.json", MILLION)
    for workload, told in WORKLOADS.items():
        names = ("matches", "match", "speedup", "bytes", "insert", "load")
        matches, match, speedup, size, insert, load = (found[workload, name] for name in names)
        speedup = round(speedup, -1 if speedup >= 1_000 else 0)
        yield (
            f"| {told} | {matches:,.0f} | {digits(match)} µs | {speedup:,.0f} times as long "
            f"| {size:.0f} | {insert:.0f} µs | {load:.0f} ms |"
        )


def sentences() -> Iterator[str]:
    found = medians("matching.json", MILLION)
    w4, le_subscribe, gryphon = (1 / found[workload, "to_copy"] for workload in ("w4", "le-subscribe", "gryphon"))
    yield f"takes {w4:.2f} of that on w4, {le_subscribe:.2f} on le-subscribe and {gryphon:.2f} on gryphon"
    *first, last = (digits(found[workload, "match_first"]) for workload in WORKLOADS)
    yield f"none of the index in the caches, takes {', '.join(first)} and {last} µs an event"
    large = {name: value for (_, name), value in medians("matching_le_subscribe_5m.json", 5 * MILLION).items()}
    yield (
        f"{large['matches']:,.0f} matches an event, matching takes {large['match']:.0f} µs, "
        f"{large['to_copy']:.2f} of what copying them takes, and counting_lists {large['speedup']:.0f} times as long"
    )
    verdicts = checked_targets()
    yield f"{sum(each['yes'] for each in verdicts)} of {len(verdicts)} are reached"


def spark_sentences() -> Iterator[str]:
    found = {name: each["2 cores"] for name, each in results("spark.json")["found"].items()}
    names = ("stock_pairs", "le_subscribe_pairs", "le_subscribe_lists")
    stock, pairs, lists = (found[name]["share_of_passing_on"]["median"] for name in names)
    per_second = round(found["stock_pairs"]["events_per_second"]["median"], -3)
    yield f"{per_second:,.0f} events a second, {stock:.0%} of what a stage reaches"
    yield f"reaches {pairs:.0%} of it in pairs, and {lists:.0%} in lists"
    fewer, more = (found["sql_join"][size]["times_the_join"]["median"] for size in ("100000", "1000000"))
    yield f"{fewer:.1f} times as quick at 100,000 subscriptions of stock and {more:.0f} times at 1,000,000"
    assert found["counting_join"]["times_the_join"] > 100_000
    yield "over 100,000 times as quick"


def server_sentences() -> Iterator[str]:
    found = results("server.json")
    assert found["subscriptions"] == MILLION
    rates = {name: round(each["median"], -2) for name, each in found["per_second"].items()}
    yield f"{found['matches_per_event']:.0f} matches an event"
    yield f"takes {rates['single']:,.0f} single events a second from 64 connections"
    yield f"{found['single_of_journal']['median']:.0%} of what it takes if it only keeps them"
    yield f"{rates['batch']:,.0f} events a second in batches of 1,000"
    yield f"{found['batch_of_empty']['median']:.0%} of what it takes without subscriptions"
    stream = found["stream_ms"]
    yield f"{stream['median']:.1f} ms at the median and {stream['p99']:.0f} ms for all but one in a hundred"
    yield f"A subscription is on disk and matches after {found['subscribe_ms']['median']:.1f} ms"
    yield f"ready again after {found['restart_seconds']:.1f} s"


def checked_targets() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "harken", "bench", "--check", "benchmarks/results/matching.json", "--json"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [json.loads(line) for line in printed.splitlines()]


def test_every_figure_is_that_of_a_committed_result() -> None:
    left = " ".join(HOW_FAST.split())
    for quoted in (
        *user_rows(),
        *workload_rows(),
        *grid_rows(),
        *document_rows(),
        *kernel_rows(),
        *sentences(),
        *spark_sentences(),
        *server_sentences(),
        *NO_FIGURES,
    ):
        assert quoted in left, f"the page does not say: {quoted}"
        left = left.replace(quoted, "", 1)
    left = re.sub(r"\]\([^)]*\)|`[^`]*`|\bw4\b", "", left)  # addresses, code, the workload
    assert re.findall(r"[^ ]* ?\d[\d.,]*[^ ]*", left) == [], "no result has these figures"


def test_parsing_rate() -> None:
    result = results("shape_cache.json")
    rate = round(result["texts_per_second"]["with"]["median"], -3)
    quoted = f"{rate:,.0f} texts a second, {result['ratio']['median']:.1f} times as many as without"
    assert quoted in " ".join(FEATURES.split())
