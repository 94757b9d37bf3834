"""The forms of a workload mean the same: its predicates, its texts through the engine, and its table."""

from __future__ import annotations

import operator as python
from typing import Any

import numpy as np
import pytest

from harken import Engine
from harken_lab.workloads import WORKLOADS, generate
from harken_lab.workloads.conditions import OPERATORS, Conditions, on_strings
from harken_lab.workloads.listing import Listing

from .brute_force import BruteForce, bindings, is_true, rows_of, value_at

# At small domains more of it matches, and every operator meets values on both of its sides.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("w0", {"domains": ((1, 6),), "predicates": (1, 4), "attributes": 12, "carried": 7}),
    ("w1", {"predicates": (1, 3)}),
    ("w2", {"predicates": (1, 3)}),
    ("w3", {"predicates": (1, 3), "attributes": 9, "carried": 9}),
    ("w4", {}),
    ("le-subscribe", {"string_values": 4, "number_values": 9}),
    ("le-subscribe", {}),
    ("stock", {"symbols": 3}),
    ("gryphon", {}),
    ("orders", {}),
    ("orders", {"countries": 2, "skus": 3, "prices": 4, "items": (0, 3), "unknown": 0.5}),
    ("ranges", {"attributes": 4, "predicates": 3, "values": 20}),
    ("attributes-many", {"kinds": 3, "attributes": 6, "predicates": (1, 3), "values": 4}),
    ("mixed", {}),
    ("mixed", {"kinds": ("stock", "orders")}),
]


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_texts_mean_what_the_predicates_say(name: str, parameters: dict[str, Any]) -> None:
    workload = generate(name, 300, 60, 3, **parameters)
    engine = Engine(algorithm="naive")
    ids = [f"s{row}" for row in range(300)]
    report = engine.subscribe_many(list(zip(ids, workload.texts().to_pylist(), strict=True)))
    assert report.faults == []
    subscriptions = rows_of(workload)
    brute_force = BruteForce(workload)
    found = 0
    answers = engine.match_batch(workload.events).ids
    for event, answer in zip(workload.events.to_pylist(), answers, strict=True):
        expected = [
            row
            for row, predicates in enumerate(subscriptions)
            if any(
                all(is_true(predicate, value_at(binding, path)) for path, predicate in predicates.items())
                for binding in bindings(event)
            )
        ]
        assert sorted(answer) == sorted(ids[row] for row in expected)
        assert brute_force.matches(event).tolist() == expected
        found += len(expected)
    assert found > 0, "nothing was compared"


@pytest.mark.parametrize("name", [name for name, each in WORKLOADS.items() if each.has_table])
def test_the_table_says_what_the_texts_say(name: str) -> None:
    workload = generate(name, 300, 0)
    texts = [" AND ".join(map(written, row)) for row in workload.table()["predicates"].to_pylist()]
    assert texts == workload.texts().to_pylist()


def written(predicate: dict[str, Any]) -> str:
    assert (predicate["integer"] is None) is not (predicate["string"] is None)
    value = str(predicate["integer"]) if predicate["string"] is None else f"'{predicate['string']}'"
    return f"{predicate['attribute']} {predicate['operator']} {value}"


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator(operator: str) -> None:
    """Against Python's own comparison."""
    meaning = dict(zip(OPERATORS, (python.eq, python.ne, python.lt, python.le, python.gt, python.ge), strict=True))
    code = np.array([OPERATORS.index(operator)], np.uint8)
    zero = np.zeros(1, np.int32)
    predicates = Conditions("a", np.array([5]), zero, code, zero).as_predicates()
    cuts = [None if cut[0] < 0 else 5 for cut in (predicates.low, predicates.high)]
    found = (cuts[0], int(predicates.low_side[0]), cuts[1], int(predicates.high_side[0]))
    assert [is_true(found, value) for value in (4, 5, 6)] == [meaning[operator](value, 5) for value in (4, 5, 6)]


def test_quotes_in_strings_are_doubled() -> None:
    conditions = on_strings("a", np.array([0], np.int32), np.array([0]), ["it's"])
    assert Listing([conditions], 1).texts(0, 1).to_pylist() == ["a = 'it''s'"]
