"""The loop of closures: it answers as the reference does, for all that workloads ask."""

from __future__ import annotations

from typing import Any

import pytest

from harken.errors import CapabilityError
from harken.language.ast import Attribute, Constant, Expression, Function, Like, Not, Or, RLike
from harken.language.sql.parser import parse
from harken.reference import expressions as reference
from harken_lab.harness import closures
from harken_lab.harness.closures import ClosureLoop, arrays_of
from harken_lab.workloads import WORKLOADS, generate

CASES = [
    "a = 5",
    "a <> 5",
    "NOT a = 5",
    "5 < a",
    "a >= 3 AND a <= 5",
    "NOT (a >= 3 AND a <= 5)",
    "a BETWEEN 3 AND 5",
    "a NOT BETWEEN 3 AND 5",
    "a IN (1, 5) OR s IN ('x', 'axb')",
    "a NOT IN (1, 5)",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "s LIKE '%x%' OR s LIKE '%y%' OR a = 1",
    "NOT (s LIKE '%x%' OR s LIKE '%y%')",
    "s LIKE 'axb'",
    "s LIKE 'a_b'",
    "s LIKE 'a%b%'",
    "s LIKE '%'",
    "a IS NULL OR s IS NULL",
    "a IS NOT NULL",
    "flag AND a > 1",
    "NOT flag",
    "o.p = 1 AND o.q > 2",
    "items.n = 1 AND items.m = 2",
    "items.n = 1 OR items.m = 3 AND a = 5",
    "NOT (items.n = 1)",
    "a = 5 AND items.n = 1 AND (items.m = 2 OR items.m = 4)",
]
EVENTS: list[dict[str, Any]] = [
    {},
    {"a": 5, "s": "axb", "flag": True},
    {"a": 3, "s": "y", "flag": False},
    {"a": 1, "s": "", "o": {"p": 1, "q": 3}},
    {"a": 6, "s": "a\nb", "o": {"p": 1}},
    {"a": None, "s": None, "items": []},
    {"a": 5, "items": [{"n": 1, "m": 1}, {"n": 2, "m": 2}]},
    {"a": 5, "items": [{"n": 1, "m": 2}, {"m": 3}]},
    {"items": [{"n": 2, "m": 4}]},
]


@pytest.mark.parametrize("text", CASES)
def test_it_answers_as_the_reference(text: str) -> None:
    loop = ClosureLoop([("yes", text)], ["items"])
    expected = [["yes"] if reference.matches(parse(text), event) else [] for event in EVENTS]
    assert [loop.match(event) for event in EVENTS] == expected


@pytest.mark.parametrize(
    "name", [name for name, each in WORKLOADS.items() if each.language == "sql" and name != "detections"]
)
def test_it_answers_as_the_reference_for_workloads(name: str) -> None:
    workload = generate(name, 60, 15)
    texts, events = workload.texts().to_pylist(), workload.events.to_pylist()
    loop = ClosureLoop(enumerate(texts), arrays_of(workload.events))
    known = [parse(text) for text in texts]
    for event in events:
        assert loop.match(event) == [row for row, each in enumerate(known) if reference.matches(each, event)]


def test_small_letters_and_regular_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = Function("lower", (Attribute(("s",)),))
    known: dict[str, Expression] = {
        "like": Or((Like(lower, Constant("%ab%")), Like(lower, Constant("x%")))),
        "not": Not(Or((Like(lower, Constant("%ab%")), Like(lower, Constant("x%"))))),
        "regular": RLike(Attribute(("s",)), Constant("[0-9]{2}")),
    }
    monkeypatch.setattr(closures, "parse", known.__getitem__)
    loop = ClosureLoop((name, name) for name in known)
    found = [loop.match({"s": text}) for text in ("1AB", "Xy", "a12", "12")] + [loop.match({})]
    assert found == [["like"], ["like"], ["not", "regular"], ["not", "regular"], []]


def test_some_may_leave() -> None:
    loop = ClosureLoop([("one", "a = 1"), ("two", "a < 2")])
    assert loop.match({"a": 1}) == ["one", "two"]
    loop.remove(["one"])
    assert (loop.match({"a": 1}), len(loop)) == (["two"], 1)


@pytest.mark.parametrize("text", ["a < b", "a CONTAINS 1", "x.n = y.n AND x.n = 1"])
def test_what_it_cannot_say_is_rejected(text: str) -> None:
    with pytest.raises(CapabilityError, match="the loop of closures"):
        ClosureLoop([("id", text)], ["x", "y"])
