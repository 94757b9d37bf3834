"""Properties of an operator, and sets of operators."""

from __future__ import annotations

import pickle
from datetime import datetime
from typing import Any

import pytest

import harken
from harken.errors import CapabilityError, OperatorError
from harken.operators import OperatorSet, operators_of
from harken.schema import Kind


@harken.operator(cost=3, reads=("position",))
def near(event: Any, place: str, since: datetime, limit: float = 5.0, distance: Any = harken.FREE) -> Any:
    """An operator at the head of a module."""
    return [1.0]


several = [near, harken.operator(name="far")(lambda event: True)]


def test_its_signature_is_that_of_the_function() -> None:
    assert [(each.name, each.kind) for each in near.signature.parameters] == [
        ("place", Kind.STRING),
        ("since", Kind.TIMESTAMP),
        ("limit", Kind.NUMBER),
        ("distance", None),
    ]
    assert [each.may_be_free for each in near.signature.parameters] == [False, False, False, True]
    assert near.signature.least == 3
    assert str(near.signature) == "near(place, since, limit, ?distance)"
    assert near({}, "x", None) == [1.0]


def test_without_parentheses_the_name_is_that_of_the_function() -> None:
    @harken.operator
    def glows(event: Any) -> bool:
        return True

    assert glows.name == "glows"


def test_free_is_one_object_everywhere() -> None:
    assert pickle.loads(pickle.dumps(harken.FREE)) is harken.FREE
    assert not harken.FREE
    assert repr(harken.FREE) == "harken.FREE"


@pytest.mark.parametrize(
    ("options", "function", "message"),
    [
        ({}, lambda: True, "'<lambda>' is no name of an operator"),
        ({"name": "f"}, lambda: True, "the operator `f` takes no event"),
        ({"name": "lower"}, lambda event: True, "`lower` is a function of the language already"),
        ({"name": "contains"}, lambda event: True, "`contains` is a function of the language already"),
        ({"name": "true"}, lambda event: True, "`true` is a word of the language"),
        ({"name": "Between"}, lambda event: True, "`Between` is a word of the language"),
        ({"name": "f"}, lambda event, *rest: True, "the operator `f` has the argument `*rest`"),
        ({"name": "f", "cost": 0}, lambda event: True, "the cost of the operator `f` cannot be 0"),
        ({"name": "f", "timeout": -1}, lambda event: True, "the timeout of the operator `f` cannot be -1"),
        ({"name": "f", "selectivity": 2}, lambda event: True, "is between 0 and 1, not 2"),
    ],
)
def test_a_wrong_declaration_is_an_error(options: dict[str, Any], function: Any, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        harken.operator(**options)(function)
    assert message in caught.value.message


def test_operators_are_loaded_by_module_and_name() -> None:
    assert operators_of([f"{__name__}:near"])["near"] is near
    assert set(operators_of([f"{__name__}:several"])) == {"near", "far"}
    assert operators_of(near)["near"] is near


def test_operators_are_loaded_by_entry_point() -> None:
    assert operators_of(["matches"])["matches"].name == "matches"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no_such_package:f", "cannot be loaded"),
        (f"{__name__}:nothing", "cannot be loaded"),
        (f"{__name__}:pytest", "is no operator, but a module"),
        ("nowhere", "no installed package has an operator `nowhere`"),
        (len, "is no operator"),
    ],
)
def test_anything_but_an_operator_is_an_error(given: Any, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        operators_of([given])
    assert message in caught.value.message


def test_two_operators_cannot_have_one_name() -> None:
    with pytest.raises(OperatorError, match="two operators are called `near`"):
        OperatorSet([near, harken.operator(name="near")(lambda event: True)])


def test_the_attributes_that_operators_read() -> None:
    assert OperatorSet([near]).reads() == {"position"}
    assert OperatorSet(several).reads() is None


def test_an_unknown_order_is_an_error() -> None:
    with pytest.raises(CapabilityError) as caught:
        harken.Engine(operators=[near], order="adaptiv")
    assert caught.value.hint == "did you mean `adaptive`?"
