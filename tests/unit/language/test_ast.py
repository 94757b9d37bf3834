"""The nodes: checked when they are made, compared by content, and walked in the order of the text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from harken.language.ast import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Holds,
    In,
    Like,
    Not,
    Or,
    Variable,
    arithmetic_depth,
    attributes,
    conjunction,
    disjunction,
    leaves,
    like_pieces,
    predicates,
)
from harken.language.sql import parse

A, B, C = (Attribute((name,)) for name in "abc")
ONE = Constant(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute(()), "an attribute needs a name"),
        (lambda: Constant(2**63), "does not fit in 64 bits"),
        (lambda: Constant(-(2**63) - 1), "does not fit in 64 bits"),
        (lambda: Constant(float("inf")), "finite"),
        (lambda: Constant(float("nan")), "finite"),
        (lambda: Comparison(A, "==", ONE), "'==' is not a comparison"),
        (lambda: Comparison(A, "!=", ONE), "'!=' is not a comparison"),
        (lambda: Arithmetic(A, "#", ONE), "'#' is not an arithmetic operator"),
        (lambda: In(A, ()), "IN needs at least one value"),
        (lambda: Like(A, Constant("x"), ""), "an escape is one character"),
        (lambda: Like(A, Constant("x"), "ab"), "an escape is one character"),
        (lambda: Like(A, Constant("\\x")), "the escape before 'x' is stray"),
        (lambda: Like(A, Constant("x\\")), "ends with an escape"),
        (lambda: And((Holds(A),)), "two or more items"),
        (lambda: And((Holds(A), And((Holds(A), Holds(B))))), "none of them And"),
        (lambda: Or((Holds(A),)), "two or more items"),
        (lambda: Or((Or((Holds(A), Holds(B))), Holds(C))), "none of them Or"),
    ],
)
def test_what_cannot_be_made(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(None), "NoneType is not a kind of value"),  # type: ignore[arg-type]
        (lambda: Constant(Decimal(1)), "Decimal is not a kind of value"),  # type: ignore[arg-type]
        (lambda: Like(A, ONE), "a pattern is a string"),
        (lambda: Holds(ONE), "1 is not a condition"),
    ],
)
def test_what_is_of_the_wrong_type(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "number"),
        (1.5, "number"),
        ("x", "string"),
        (True, "boolean"),
        (date(2026, 1, 1), "date"),
        (datetime(2026, 1, 1, tzinfo=UTC), "timestamp"),
    ],
)
def test_the_kind_of_a_constant(value: Any, kind: str) -> None:
    assert Constant(value).kind == kind


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), (1, True), (0, False), ("1", 1)])
def test_constants_of_different_types_are_different(left: Any, right: Any) -> None:
    assert Constant(left) != Constant(right)
    assert len({Constant(left), Constant(right)}) == 2


def test_the_place_takes_no_part_in_comparison() -> None:
    assert Attribute(("a",), 3) == Attribute(("a",), 9)
    assert Constant(1, 3) == Constant(1, 9)
    assert hash(Constant(1, 3)) == hash(Constant(1, 9))
    assert Variable("x", 3) == Variable("x", 9)


def test_a_constant_equals_nothing_but_constants() -> None:
    assert Constant(1) != 1


# Patterns


@pytest.mark.parametrize(
    ("pattern", "escape", "pieces"),
    [
        ("", "\\", []),
        ("a%_b", "\\", ["a", None, "", "b"]),
        ("\\%\\_\\\\", "\\", ["%", "_", "\\"]),
        ("!%\\", "!", ["%", "\\"]),
        ("%%", "%", ["%"]),
    ],
)
def test_pieces_of_a_pattern(pattern: str, escape: str, pieces: list[str | None]) -> None:
    assert list(like_pieces(pattern, escape)) == pieces


# Making and walking


def test_conjunction_and_disjunction_flatten_and_let_one_stand_for_itself() -> None:
    a, b, c = map(Holds, (A, B, C))
    assert conjunction([a]) is a
    assert disjunction([a]) is a
    assert conjunction([And((a, b)), c]) == And((a, b, c))
    assert disjunction([a, Or((b, c))]) == Or((a, b, c))
    assert conjunction([Or((a, b)), c]) == And((Or((a, b)), c))


def test_predicates_come_in_the_order_of_the_text_with_their_depth() -> None:
    expression = parse("a AND (b OR NOT c) AND d = 1")
    assert [(next(iter(leaves(each))).path, depth) for each, depth in predicates(expression)] == [  # type: ignore[union-attr]
        (("a",), 1),
        (("b",), 2),
        (("c",), 3),
        (("d",), 1),
    ]


def test_a_lone_predicate_has_depth_nought() -> None:
    assert list(predicates(Holds(A))) == [(Holds(A), 0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", ["a", "b"]),
        ("a BETWEEN 1 AND b", ["a", 1, "b"]),
        ("a IN (1, 2)", ["a", 1, 2]),
        ("a LIKE 'x'", ["a", "'x'"]),
        ("a IS NULL", ["a"]),
        ("a CONTAINS 1", ["a", 1]),
        ("a", ["a"]),
        ("near(a, 1, ?x)", ["a", 1, "?x"]),
        ("?x - 2 * ?y < a", ["?x", 2, "?y", "a"]),
    ],
)
def test_leaves_come_in_the_order_of_the_text(text: str, expected: list[Any]) -> None:
    def shown(leaf: Any) -> Any:
        if isinstance(leaf, Attribute):
            return leaf.name
        if isinstance(leaf, Variable):
            return f"?{leaf.name}"
        return f"'{leaf.value}'" if isinstance(leaf.value, str) else leaf.value

    assert [shown(leaf) for leaf in leaves(parse(text))] == expected  # type: ignore[arg-type]


def test_attributes_are_told_once() -> None:
    assert attributes(parse("b = 1 AND a.c < b OR NOT `a.c`")) == [("b",), ("a", "c"), ("a.c",)]


@pytest.mark.parametrize(
    ("text", "depth"),
    [("a = 1", 0), ("a = ?x", 0), ("a = ?x + 1", 1), ("a = ?x + ?y * 2", 2), ("1 BETWEEN a AND ?x - (?y - ?z)", 2)],
)
def test_arithmetic_depth(text: str, depth: int) -> None:
    assert arithmetic_depth(parse(text)) == depth  # type: ignore[arg-type]


def test_nodes_do_not_change() -> None:
    with pytest.raises(AttributeError):
        Not(Holds(A)).item = Holds(B)  # type: ignore[misc]
