"""Verification: constraints, presence, residuals, and bindings, where one element has to meet all that share it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from harken.errors import ContradictionError, LimitError
from harken.events import Event
from harken.language import normalise
from harken.language.sql import parse
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.verify import is_match
from harken.schema import Schema, parse_schema
from unit.deadline import without_hanging


def matches(where: str, event: dict[str, Any], schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> bool:
    return is_match(normalise(parse(where), schema), Event.of(event, schema), limits)


# The truth of one predicate


@pytest.mark.parametrize(
    ("text", "value", "truth"),
    [
        ("a < 5", 3, True),
        ("a < 5", None, None),
        ("a BETWEEN 1 AND 5", 5, True),
        ("a BETWEEN 1 AND 5", 6, False),
        ("a BETWEEN 1 AND 5", "x", None),
        ("a BETWEEN 1 AND 'x'", 0, False),
        ("a BETWEEN 1 AND 'x'", 2, None),
        ("a IN (1, 2)", 2, True),
        ("a IN (1, 2)", 3, False),
        ("a IN (1, 'x')", 1, True),
        ("a IN (1, 'x')", 2, None),
        ("a IN (1, 2)", None, None),
        ("a LIKE 'x%'", "xy", True),
        ("a LIKE 'x%'", "y", False),
        ("a LIKE 'x%'", 5, None),
        ("a LIKE '%'", None, None),
    ],
)
def test_a_predicate_is_true_false_or_unknown(text: str, value: Any, truth: bool | None) -> None:
    event = {"a": value}
    assert [is_true(text, event), is_true(f"NOT ({text})", event)] == [truth is True, truth is False]


def is_true(where: str, event: dict[str, Any]) -> bool:
    try:
        return matches(where, event)
    except ContradictionError:
        return False


# Constraints


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"a": 3}, True),
        ({"a": 5}, False),
        ({"a": 4.9}, True),
        ({"a": "3"}, False),
        ({"a": True}, False),
        ({"a": None}, False),
        ({}, False),
        ({"a": {"b": 3}}, False),
        ({"a": [7, 3]}, True),
        ({"a": [7, 8]}, False),
        ({"a": []}, False),
        ({"a": [[7], [8, [3]]]}, True),
    ],
)
def test_a_constraint(event: dict[str, Any], expected: bool) -> None:
    assert matches("a < 5", event) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"a": {"b": 1}}, True),
        ({"a": {"b": 2}}, False),
        ({"a": {"c": 1}}, False),
        ({"a": 1}, False),
        ({"a.b": 1}, False),
        ({"a": [{"b": 2}, {"b": 1}]}, True),
        ({"a": [1, {"b": 1}]}, True),
        ({"a": [{"b": [2, 1]}]}, True),
        ({"a": [[{"b": 1}]]}, True),
        ({"a": [{"c": 1}]}, False),
    ],
)
def test_a_path(event: dict[str, Any], expected: bool) -> None:
    assert matches("a.b = 1", event) is expected


def test_one_conjunction_is_enough() -> None:
    assert matches("a = 1 OR b = 1", {"a": 2, "b": 1})
    assert not matches("a = 1 OR b = 1", {"a": 2, "b": 2})


def test_a_conjunction_asks_for_all() -> None:
    assert matches("a = 1 AND b < 2", {"a": 1, "b": 1})
    assert not matches("a = 1 AND b < 2", {"a": 1})


def test_one_that_asks_nothing_is_met_by_every_event() -> None:
    assert matches("TRUE", {})


# Presence


@pytest.mark.parametrize(
    ("event", "is_null"),
    [
        ({}, True),
        ({"a": None}, True),
        ({"a": float("nan")}, True),
        ({"a": []}, True),
        ({"a": [None]}, True),
        ({"a": 0}, False),
        ({"a": ""}, False),
        ({"a": [None, 1]}, False),
        ({"a": {}}, False),
    ],
)
def test_presence(event: dict[str, Any], is_null: bool) -> None:
    assert matches("a IS NULL", event) is is_null
    assert matches("a IS NOT NULL", event) is not is_null


def test_presence_asks_about_the_whole_event_and_not_about_one_element() -> None:
    event = {"items": [{"a": 1}, {"b": 1}]}
    assert matches("items.a = 1 AND items.b IS NOT NULL", event)
    assert not matches("items.a = 1 AND items.b IS NULL", event)


# Residuals


@pytest.mark.parametrize(
    ("where", "event", "expected"),
    [
        ("a < b", {"a": 1, "b": 2}, True),
        ("a < b", {"a": 2, "b": 2}, False),
        ("a < b", {"a": 1}, False),
        ("NOT a < b", {"a": 2, "b": 2}, True),
        ("NOT a < b", {"a": 1}, False),
        ("a < b", {"a": 1, "b": "x"}, False),
        ("a <> b", {"a": 1, "b": "x"}, False),
        ("a < b", {"a": [5, 1], "b": [0, 2]}, True),
        ("a < b", {"a": [5, 3], "b": [0, 2]}, False),
        ("a <= a", {"a": [1, 2]}, True),
        ("s LIKE '%x'", {"s": "ax"}, True),
        ("s LIKE '%x'", {"s": 5}, False),
        ("s NOT LIKE '%x'", {"s": "xa"}, True),
        ("s NOT LIKE '%x'", {"s": 5}, False),
        ("s NOT LIKE '%x'", {}, False),
        ("s LIKE '%x'", {"s": ["a", "x"]}, True),
        ("s LIKE '%x' AND s LIKE '%y%'", {"s": ["x", "y"]}, False),
        ("s LIKE '%x' AND s LIKE '%y%'", {"s": ["x", "yx"]}, True),
    ],
)
def test_residuals(where: str, event: dict[str, Any], expected: bool) -> None:
    assert matches(where, event) is expected


@pytest.mark.parametrize(
    ("event", "contains", "contains_not"),
    [
        ({"a": [1, 2]}, True, False),
        ({"a": 1}, True, False),
        ({"a": [2, 3]}, False, True),
        ({"a": ["x", 1]}, True, False),
        ({"a": ["x", 2]}, False, False),
        ({}, False, False),
    ],
)
def test_contains(event: dict[str, Any], contains: bool, contains_not: bool) -> None:
    assert matches("a CONTAINS 1", event) is contains
    assert matches("a NOT CONTAINS 1", event) is contains_not


def test_contains_looks_at_the_whole_set_and_not_at_the_binding() -> None:
    assert matches("a CONTAINS 1 AND a CONTAINS 2 AND a = 3", {"a": [1, 2, 3]})


def test_the_order_of_two_attributes_is_their_domain_s() -> None:
    schema = parse_schema(
        '[domains.size]\ntype = "enumerated"\nvalues = ["small", "large", "other"]\norder = [["small", "large"]]\n'
        '[attributes]\na = "size"\nb = "size"\n'
    )
    assert matches("a < b", {"a": "small", "b": "large"}, schema)
    assert not matches("a < b", {"a": "large", "b": "small"}, schema)
    assert not matches("a < b", {"a": "small", "b": "other"}, schema)
    assert not matches("NOT a < b", {"a": "small", "b": "other"}, schema)


# Bindings

ITEMS = {"items": [{"price": 4, "qty": 1, "size": [1, 2]}, {"price": 1, "qty": 2, "size": [3]}]}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("items.price = 4 AND items.qty = 1", True),
        ("items.price = 4 AND items.qty = 2", False),
        ("items.price = 1 AND items.size = 3", True),
        ("items.price = 1 AND items.size = 2", False),
        ("items.price > items.qty", True),
        ("items.price > items.qty AND items.size = 3", False),
        ("items.price = items.size", False),
        ("items.qty = items.size", True),
        ("NOT items.price = items.qty AND items.size > 2", True),
        ("items.price <> 4 AND items.qty <> 2", False),
    ],
)
def test_one_element_meets_all_that_goes_through_its_array(where: str, expected: bool) -> None:
    assert matches(where, ITEMS) is expected


def test_arrays_apart_are_bound_apart() -> None:
    event = {"a": [{"x": 1}, {"x": 2}], "b": [{"y": 1}, {"y": 2}]}
    assert matches("a.x = 1 AND b.y = 2", event)
    assert matches("a.x = 2 AND b.y = 1", event)


def test_a_comparison_ties_two_arrays() -> None:
    event = {"a": [{"x": 1, "k": "p"}, {"x": 2, "k": "q"}], "b": [{"y": 1, "m": "r"}, {"y": 2, "m": "s"}]}
    assert matches("a.x = b.y AND a.k = 'p' AND b.m = 'r'", event)
    assert not matches("a.x = b.y AND a.k = 'p' AND b.m = 's'", event)


def test_arrays_tied_through_a_third_are_one_group() -> None:
    event = {"a": [1, 2, 3], "b": [2, 3], "c": [3]}
    assert matches("a < b AND b < c", event)
    assert not matches("a < b AND b < c AND a > 1", event)


def test_the_elements_tried_are_a_sum_and_not_a_product() -> None:
    names = [f"a{n}" for n in range(20)]
    event = {name: list(range(10)) for name in names}
    where = " AND ".join(f"{name} = 9" for name in names)
    assert matches(where, event, limits=Limits(max_bindings=300))


def test_an_alternative_that_shares_no_array_is_not_tried_again() -> None:
    event = {name: list(range(10)) for name in "abc"} | {"d": [0]}
    assert not matches("a = 9 AND b = 9 AND c = 9 AND d = 1", event, limits=Limits(max_bindings=50))


def test_a_puzzle_that_takes_too_long_is_given_up_by_a_named_limit() -> None:
    event = {name: list(range(10)) for name in "abcd"}
    with pytest.raises(LimitError, match="no binding was found in 50 tests") as caught:
        matches("a < b AND b < c AND c < d AND d < a", event, limits=Limits(max_bindings=50))
    assert caught.value.limit == "max_bindings"


@pytest.mark.seconds
def test_a_long_chain_of_arrays_is_settled_or_given_up_in_good_time() -> None:
    count = 400
    event = {f"a{n}": [n] for n in range(count + 1)} | {"a0": [0, 0.5]}
    where = " AND ".join(f"a{n} < a{n + 1}" for n in range(count))
    with without_hanging(), suppress(LimitError):
        assert matches(where, event)


def test_one_budget_serves_all_conjunctions_of_a_subscription() -> None:
    forks = " AND ".join(f"(f{n} = 1 OR g{n} = 1)" for n in range(6))
    form = normalise(parse(f"a < b AND b < c AND c < a AND {forks}"))
    event = Event.of({name: list(range(12)) for name in "abc"} | {f"{x}{n}": 1 for x in "fg" for n in range(6)})
    alone = normalise(parse("a < b AND b < c AND c < a"))
    assert not is_match(alone, event, Limits(max_bindings=20_000))
    with pytest.raises(LimitError):
        is_match(form, event, Limits(max_bindings=20_000))


@pytest.mark.seconds
def test_one_long_array_is_no_puzzle() -> None:
    form = normalise(parse("x > 5 AND x LIKE '%z' OR x = 99999 AND x <> 7 AND x > 4 OR x < 0"))
    assert is_match(form, Event.of({"x": list(range(99_990))}), Limits(max_bindings=10)) is False
