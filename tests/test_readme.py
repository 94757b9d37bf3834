"""README is short, and each number in it follows from a committed result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOW_FAST = README.partition("\n## How fast\n")[2].partition("\n## ")[0]
LONGEST = 150
IMAGE_BYTES = 150_000


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def microseconds(value: float) -> str:
    """A value to two digits, but with all that stand before the point."""
    return f"{value:,.0f} µs" if value >= 9.95 else f"{value:.1f} µs"


def alerts() -> dict[int, dict[str, float]]:
    """The times of price alerts by how many there are."""
    sizes = results("user.json")["sizes"]
    return {
        each["subscriptions"]: {name: times["median"] for name, times in each["us_per_event"].items()} for each in sizes
    }


def detections() -> dict[str, float]:
    wanted = {"shape": "detections", "size": 10_000, "call": 10_000, "given": "dicts"}
    (cell,) = (each for each in results("grid.json")["cells"] if wanted.items() <= each.items())
    return {name: cell[name]["median"] for name in ("closures", "harken")}


def rows() -> Iterator[str]:
    few, many = alerts()[10], alerts()[1_000_000]
    rules = detections()
    spark = results("spark.json")["found"]["sql_join"]["2 cores"]["1000000"]
    matched, joined = (1e6 / spark[f"{name}_events_per_second"]["median"] for name in ("match", "join"))
    served = results("server.json")
    assert served["subscriptions"] == 1_000_000
    single, stored = (1e6 / served["per_second"][name]["median"] for name in ("single", "journal"))
    for what, harken, beside, other in (
        ("10 price alerts, a dict at a time", few["fresh_match"], "the loop", few["loop"]),
        ("10,000 detection rules, dicts in batches", rules["harken"], "the loop", rules["closures"]),
        ("1,000,000 price alerts, dicts in batches", many["fresh_batch"], "the loop", many["loop"]),
        (
            "1,000,000 stock alerts, inside Spark",
            matched,
            "the best join in Spark SQL that we could write",
            joined,
        ),
        (
            "1,000,000 stock alerts, a request an event over HTTP",
            single,
            "the same server, which only stores the event",
            stored,
        ),
    ):
        yield f"| {what} | {microseconds(harken)} | {beside}: {microseconds(other)} |"


def test_the_table_is_that_of_the_committed_results() -> None:
    assert re.findall(r"^\| .*\|$", HOW_FAST, re.MULTILINE)[1:] == list(rows())
    prose = re.sub(r"^\|.*\|$", "", HOW_FAST, flags=re.MULTILINE)
    assert re.findall(r"\d[\d.,]*", prose) == [], "no result has these figures"


def test_statements_about_speed() -> None:
    """What the page says in words: microseconds with a million, and a loop is quicker up to a hundred."""
    times = alerts()
    assert times[1_000_000]["fresh_match"] < 100
    assert [size for size, each in times.items() if each["loop"] < each["fresh_match"]] == [10, 100]


def test_the_time_to_compile() -> None:
    cold = {each["scenario"]: each["cold_seconds"]["median"] for each in results("first_use.json")["scenarios"]}
    assert f"now ({cold['everything']:.0f} s), not at the first match ({cold['plain']:.0f} s)" in README


def test_it_is_short() -> None:
    assert len(README.splitlines()) < LONGEST


def test_its_pictures_are_small() -> None:
    pictures = [ROOT / name for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)]
    assert pictures
    assert [each.name for each in pictures if each.stat().st_size > IMAGE_BYTES] == []
