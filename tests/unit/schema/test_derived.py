"""Derived attributes: their texts, what they need, and what they give for single values and for all bindings."""

from __future__ import annotations

from typing import Any

import pytest

from harken.schema import Kind, format_path
from harken.schema.derived import (
    call,
    derivation,
    derived_path,
    is_derived,
    needs_of,
    of_attribute,
    of_constant,
    sources_of,
)

PAGE, DELTA, TAGS = of_attribute(("page",)), of_attribute(("a", "delta")), of_attribute(("tags",))


def one(text: str, event: dict[str, Any]) -> Any:
    return derivation(derived_path(text)).of_one(event)


def test_equal_expressions_are_one_attribute() -> None:
    path = derived_path(call("lower", PAGE))
    assert path == derived_path(call("lower", of_attribute(("page",))))
    assert is_derived(path)
    assert not is_derived(("page",))
    assert derived_path(PAGE) == ("page",)
    assert derivation(path) is derivation(("", path[1]))


def test_one_and_one_point_zero_and_true_are_different_constants() -> None:
    assert len({derived_path(call("coalesce", DELTA, of_constant(value))) for value in (1, 1.0, True)}) == 3


@pytest.mark.parametrize(
    ("text", "shown", "sources", "needs"),
    [
        (call("lower", PAGE), "lower(page)", {("page",)}, {("page",)}),
        (
            call("*", call("+", DELTA, "1"), PAGE),
            "(a.delta + 1) * page",
            {("a", "delta"), ("page",)},
            {("a", "delta"), ("page",)},
        ),
        (call("compare", DELTA, PAGE), "a.delta compared with page", {("a", "delta"), ("page",)}, None),
        (call("coalesce", PAGE, '"x"'), "coalesce(page, 'x')", {("page",)}, set()),
        (call("lacks", PAGE, '"string"'), "lacks(page, 'string')", {("page",)}, set()),
        (call("size", TAGS), "size(tags)", {("tags",)}, {("tags",)}),
    ],
)
def test_what_it_looks_at(text: str, shown: str, sources: set[Any], needs: set[Any] | None) -> None:
    path = derived_path(text)
    assert format_path(path) == shown
    assert set(sources_of(path)) == sources
    assert set(needs_of(path)) == (sources if needs is None else needs)


def test_a_path_of_an_event_that_looks_like_one_is_shown_all_the_same() -> None:
    assert format_path(("", "x")) == "``.x"
    assert format_path(("", '["no function",1]')).startswith("``.")


def test_the_kind_of_what_is_needed() -> None:
    assert derivation(derived_path(call("length", PAGE))).needs == {("page",): Kind.STRING}
    assert derivation(derived_path(call("+", PAGE, "1"))).needs == {("page",): Kind.NUMBER}
    assert derivation(derived_path(call("compare", PAGE, DELTA))).needs == {("page",): None, ("a", "delta"): None}


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (2**62, "+", 2**62 - 1, 2**63 - 1),
        (2**62, "+", 2**62, None),
        (2.0**62, "*", 2, None),
        (0.5, "*", 2, 1.0),
        (1e308, "*", 10, None),
        (7, "/", 2, 3.5),
        (7, "/", 0, None),
        (7, "%", 0, None),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (-(2**63), "%", -1, 0),
        (-7.5, "%", 2, -1.5),
        (float("inf"), "-", 1, None),
        (2**53 + 1, "-", 0.0, 2**53 + 1),
        ("7", "+", 1, None),
        (True, "+", 1, None),
    ],
)
def test_arithmetic(left: Any, operator: str, right: Any, result: Any) -> None:
    text = call(operator, of_attribute(("l",)), of_attribute(("r",)))
    found = one(text, {"l": left, "r": right})
    assert found == result
    assert (found is None) is (result is None)


def test_a_single_event_with_several_bindings_gives_a_list() -> None:
    assert isinstance(one(call("lower", TAGS), {"tags": ["A", "B"]}), list)
    assert one(call("size", TAGS), {"tags": ["A", "B"]}) == 2
    assert one(call("size", TAGS), {}) is None


def test_all_bindings_are_tried_up_to_a_limit() -> None:
    pair = derivation(derived_path(call("+", of_attribute(("a",)), of_attribute(("b",)))))
    event = {"a": [1, 2, 3], "b": [10, 20]}
    found = pair.possible(event, 6)
    assert found is not None
    assert sorted(found) == [11, 12, 13, 21, 22, 23]  # type: ignore[type-var]
    assert pair.possible(event, 5) is None
    items = derivation(derived_path(call("*", of_attribute(("i", "p")), of_attribute(("i", "q")))))
    assert items.possible({"i": [{"p": 2, "q": 3}, {"p": 5}, {"q": 7}, {"p": 1, "q": 1}]}, 9) == [1, 6]
