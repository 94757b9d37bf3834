"""Rules of others and their texts in docs/comparison.md agree on events, and its figures are those of the results.

The evaluators of the others' rules are the plainest that say what their documentation says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from itertools import pairwise, product
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pytest

import harken

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
ROW = re.compile(r"^\| `(\{.+\})` \| `(.+)` \|$", re.MULTILINE)
COMPARISONS = {">": gt, ">=": ge, "<": lt, "<=": le, "gt": gt, "gte": ge, "lt": lt, "lte": le}
ABSENT = object()
FIELDS: dict[str, list[Any]] = {
    "category": ["Toy", "toy", "Lamp", ["Lamp", "Toy"], ["Lamp", "Book"], ABSENT],
    "price": [0, 3, 4.5, 5, 9, [1, 9], ABSENT],
    "title": ["The doll", "The dolls", "a doll", "xa doll", "doll", ABSENT],
    "seller": [{"country": "BE"}, {"country": "FR"}, {}],
    "ip": ["10.1.2.3", "11.1.2.3"],
}

Event = dict[str, Any]


def rules(title: str) -> list[tuple[str, str]]:
    found = ROW.findall(PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0])
    assert found
    return found


def events() -> Iterator[Event]:
    """Every combination of two fields, beside what the others hold first."""
    first = {name: values[0] for name, values in FIELDS.items()}
    names = sorted(FIELDS)
    for one, other in ((a, b) for a in names for b in names if a < b):
        for value, another in product(FIELDS[one], FIELDS[other]):
            event = first | {one: value, other: another}
            yield {name: held for name, held in event.items() if held is not ABSENT}


def values(event: Event, name: str) -> list[Any]:
    held = event.get(name, [])
    return held if isinstance(held, list) else [held]


def percolates(query: dict[str, Any], event: Event) -> bool:
    """Whether a document matches a query. Strings are keywords."""
    ((kind, body),) = query.items()
    if kind == "bool":
        should = body.get("should", [])
        return (
            all(percolates(each, event) for each in body.get("must", []))
            and (not should or any(percolates(each, event) for each in should))
            and not any(percolates(each, event) for each in body.get("must_not", []))
        )
    if kind == "exists":
        return bool(values(event, body["field"]))
    ((name, asked),) = body.items()
    tests: dict[str, Callable[[Any], bool]] = {
        "term": lambda value: value == asked,
        "terms": lambda value: value in asked,
        "range": lambda value: all(COMPARISONS[sign](value, bound) for sign, bound in asked.items()),
        "prefix": lambda value: value.startswith(asked),
        "wildcard": lambda value: fnmatchcase(value, asked),
        "regexp": lambda value: re.fullmatch(asked, value) is not None,
    }
    return any(tests[kind](value) for value in values(event, name))


def patterned(pattern: dict[str, Any], event: Event) -> bool:
    """Whether an event fits a pattern of EventBridge's."""
    for name, asked in pattern.items():
        if name == "$or":
            fits = any(patterned(each, event) for each in asked)
        elif isinstance(asked, dict):
            fits = patterned(asked, event.get(name, {}))
        else:
            fits = any(fits_one(each, values(event, name)) for each in asked)
        if not fits:
            return False
    return True


def fits_one(asked: Any, held: list[Any]) -> bool:
    if not isinstance(asked, dict):
        return asked in held
    ((kind, operand),) = asked.items()
    if kind == "exists":
        return bool(held) is operand
    tests: dict[str, Callable[[Any], bool]] = {
        "prefix": lambda value: value.startswith(operand),
        "suffix": lambda value: value.endswith(operand),
        "wildcard": lambda value: fnmatchcase(value, operand),
        "equals-ignore-case": lambda value: value.lower() == operand.lower(),
        "anything-but": lambda value: value not in operand,
        "cidr": lambda value: ip_address(value) in ip_network(operand),
        "numeric": lambda value: all(COMPARISONS[sign](value, bound) for sign, bound in list(pairwise(operand))[::2]),
    }
    return any(tests[kind](value) for value in held)


CASES = [(percolates, *each) for each in rules("The percolator")] + [
    (patterned, *each) for each in rules("EventBridge")
]


@pytest.mark.parametrize(("judge", "rule", "text"), CASES, ids=[text for _, _, text in CASES])
def test_a_rule_and_its_text_agree(judge: Callable[[Any, Event], bool], rule: str, text: str) -> None:
    engine = harken.Engine()
    engine.subscribe("moved", text)
    given = list(events())
    wanted = [judge(json.loads(rule), event) for event in given]
    found = [count == 1 for count in engine.match_batch(given).counts]
    assert [event for event, one, other in zip(given, wanted, found, strict=True) if one is not other] == []
    assert len(set(wanted)) == 2, "the rule is true of some events and not of others"


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / name).read_text(encoding="utf-8"))


def digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


def join_sentence() -> str:
    found = results("results/spark.json")["found"]["sql_join"]["2 cores"]
    fewer, more = (
        [round(found[size][f"{name}_events_per_second"]["median"], -3) for name in ("join", "match")]
        for size in ("100000", "1000000")
    )
    return (
        f"at 100,000 subscriptions the join reached {fewer[0]:,.0f} events a second and `harken.spark.match` "
        f"{fewer[1]:,.0f}; at 1,000,000 it was {more[0]:,.0f} and {more[1]:,.0f}."
    )


def loop_sentence() -> str:
    found = {each["subscriptions"]: each["us_per_event"] for each in results("results/user.json")["sizes"]}
    told = {
        size: (f"{digits(each['loop']['median'])} µs", f"{digits(each['fresh_match']['median'])} µs")
        for size, each in found.items()
    }
    slowest = f"{found[1_000_000]['loop']['median'] / 1e6:.2f} s"
    return (
        f"ten conditions take {told[10][0]} in the loop and {told[10][1]} by `match`; a hundred take "
        f"{told[100][0]} and {told[100][1]}; a thousand take {told[1_000][0]} and {told[1_000][1]}; a million take "
        f"{slowest} and {told[1_000_000][1]}."
    )


def peer_rows() -> Iterator[str]:
    figures = results("results/matching.json")["figures"]
    own = {
        each["workload"]: each["median"]
        for each in figures
        if (each["name"], each.get("size"), each.get("matcher")) == ("match", 100_000, "columnar")
        and "part" not in each
    }
    peers: dict[str, dict[str, float]] = {"Harken, columnar": own}
    for each in results("peers.json")["peers"]:
        if each["size"] == 100_000 and not each.get("prototype"):
            peers.setdefault(each["peer"], {})[each["workload"]] = each["us_per_event"]
    for name, found in peers.items():
        stock, gryphon = (digits(found[each]) if each in found else "–" for each in ("stock", "gryphon"))
        mark = "measured here: `benchmarks/matching.py`" if found is own else "claim"
        yield f"| {name} | {stock} | {gryphon} | {mark} |"


def test_every_figure_is_that_of_a_committed_result() -> None:
    assert join_sentence() in WORDS
    assert loop_sentence() in WORDS
    assert re.findall(r"^\| .+ \|$", PAGE.partition("\n## Other engines\n")[2], re.MULTILINE)[1:] == list(peer_rows())


MEASURED = re.compile(r"measured here(?:\]\(\.\./benchmarks/results/(\w+)\.json\) by|:) `(benchmarks/\w+\.py)`")
FIGURES = re.compile(r"\d[\d.,]* (?:µs|s|events a second|rules|characters)\b")


def test_every_figure_is_marked_as_measured_here_or_as_a_claim() -> None:
    """Paragraphs and rows with figures are marked, and the script that is named is there and writes the result."""
    text = re.sub(r"^(\|.*\|)$", r"\n\1\n", PAGE, flags=re.MULTILINE)
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    rows = [part for part in parts if re.fullmatch(r"\|.*\| [–\d.,]+ \| [–\d.,]+ \|.*\|", part)]
    figured = [part for part in parts if FIGURES.search(part) and not part.startswith("|")]
    assert len(rows) == len(list(peer_rows()))
    assert len(figured) >= 3
    assert [part for part in (*rows, *figured) if not MEASURED.search(part) and "claim" not in part] == []
    for result, script in MEASURED.findall(PAGE.replace("\n", " ")):
        source = (ROOT / script).read_text(encoding="utf-8")
        assert not result or f'"{result}.json"' in source
