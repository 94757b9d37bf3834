"""Sets of values as intervals: their algebra against plain sets, and one form for what is the same."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import combinations, product
from typing import Any

import pytest

from harken.language.intervals import (
    COMPARISONS,
    EMPTY,
    FULL,
    LINES,
    Intervals,
    between,
    codes,
    integers,
    points,
    prefixed,
)
from harken.schema.values import Kind

SAMPLES = [0, 0.5, 1, 1.5, 2, 2.5, 3]
SETS = [
    EMPTY,
    FULL,
    *(COMPARISONS[operator](value) for operator in COMPARISONS for value in (1, 2)),
    between(1, 2),
    between(2, 1),
    points([1, 3]),
]


def members(intervals: Intervals) -> set[float]:
    return {value for value in SAMPLES if value in intervals}


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("=", {1}),
        ("<>", {0, 0.5, 1.5, 2, 2.5, 3}),
        ("<", {0, 0.5}),
        ("<=", {0, 0.5, 1}),
        (">", {1.5, 2, 2.5, 3}),
        (">=", {1, 1.5, 2, 2.5, 3}),
    ],
)
def test_comparisons(operator: str, expected: set[float]) -> None:
    assert members(COMPARISONS[operator](1)) == expected


def test_between_has_both_ends() -> None:
    assert members(between(1, 2)) == {1, 1.5, 2}
    assert between(2, 1) == EMPTY


def test_points() -> None:
    assert members(points([3, 1, 3])) == {1, 3}
    assert points([]) == EMPTY


def test_the_algebra_is_that_of_sets() -> None:
    for left, right in product(SETS, repeat=2):
        assert members(left.intersection(right)) == members(left) & members(right), (left, right)
        assert members(left.union(right)) == members(left) | members(right), (left, right)
    for each in SETS:
        assert members(each.complement()) == set(SAMPLES) - members(each)


def test_equal_sets_have_equal_cuts() -> None:
    """On the line of numbers, where between two values there is always another."""
    made = [left.intersection(right) for left, right in product(SETS, repeat=2)]
    for left, right in combinations(made, 2):
        assert (left == right) is (members(left) == members(right)), (left, right)


def test_empty_and_full() -> None:
    assert EMPTY.empty
    assert FULL.full
    assert COMPARISONS["<"](1).intersection(COMPARISONS[">"](1)).empty
    assert COMPARISONS["<"](1).union(COMPARISONS[">="](1)).full
    assert not COMPARISONS["<>"](1).full


def test_integers_and_floats_are_held_apart_beyond_2_to_the_53() -> None:
    assert 2**53 + 1 not in COMPARISONS["="](2.0**53)
    assert 2**53 in COMPARISONS["="](2.0**53)


# Prefixes


@pytest.mark.parametrize(
    ("prefix", "text", "expected"),
    [
        ("ab", "ab", True),
        ("ab", "abc", True),
        ("ab", "ab\U0010ffff\U0010ffff", True),
        ("ab", "aa\U0010ffff", False),
        ("ab", "ac", False),
        ("ab", "a", False),
        ("", "", True),
        ("", "anything", True),
        ("a\U0010ffff", "a\U0010ffffx", True),
        ("a\U0010ffff", "b", False),
        ("\U0010ffff", "\U0010ffff", True),
        ("\U0010ffff", "\U0010ffff\U0010ffff", True),
        ("\U0010ffff", "a", False),
        ("\ud7ff", "\ud7ffx", True),
        ("\ud7ff", "\ue000", False),
    ],
)
def test_prefixed(prefix: str, text: str, expected: bool) -> None:
    assert (text in prefixed(prefix)) is expected


# Lines

SMALL = integers(0, 3)


def test_a_line_that_is_counted_has_one_form_for_each_set() -> None:
    by_members: dict[frozenset[int], set[Intervals]] = {}
    made = [COMPARISONS[operator](value) for operator in COMPARISONS for value in (-1, 0, 0.5, 1, 2, 2.5, 3, 4)]
    for left, right in product(made, repeat=2):
        for each in (left.intersection(right), left.union(right)):
            canonical = SMALL.canonical(each)
            inside = frozenset(value for value in range(4) if value in each)
            assert frozenset(value for value in range(4) if value in canonical) == inside
            by_members.setdefault(inside, set()).add(canonical)
    assert len(by_members) > 10
    assert all(len(forms) == 1 for forms in by_members.values())


@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        (Kind.BOOLEAN, False, True),
        (Kind.DATE, date.min, date.max),
        (Kind.TIMESTAMP, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_the_ends_of_a_line(kind: Kind, least: Any, greatest: Any) -> None:
    line = LINES[kind]
    assert line.canonical(COMPARISONS["<"](least)) == EMPTY
    assert line.canonical(COMPARISONS[">"](greatest)) == EMPTY
    assert line.canonical(COMPARISONS[">="](least)) == FULL
    assert line.canonical(COMPARISONS["<="](greatest)) == FULL


def test_no_string_is_before_the_empty_one() -> None:
    line = LINES[Kind.STRING]
    assert line.canonical(COMPARISONS["<"]("")) == EMPTY
    assert line.canonical(COMPARISONS[">="]("")) == FULL
    assert line.canonical(COMPARISONS[">"]("")) == Intervals(False, (("", 1),))


def test_after_a_day_is_before_the_next() -> None:
    day = date(2026, 1, 31)
    line = LINES[Kind.DATE]
    assert line.canonical(COMPARISONS[">"](day)) == line.canonical(COMPARISONS[">="](day + timedelta(days=1)))


def test_codes() -> None:
    assert codes([(1, 1), (2, 2)], SMALL) == codes([(1, 2)], SMALL) == Intervals(False, ((1, 0), (3, 0)))
    assert codes([(0, 3)], SMALL) == FULL
    assert codes([], SMALL) == EMPTY


@pytest.mark.parametrize(
    ("kind", "operator", "value", "expected"),
    [
        (Kind.NUMBER, "=", 5, True),
        (Kind.NUMBER, "<=", 5, False),
        (Kind.NUMBER, "<>", 5, False),
        (Kind.STRING, "=", "x", True),
        (Kind.STRING, "<=", "", True),
        (Kind.STRING, "<=", "a", False),
        (Kind.BOOLEAN, "=", True, True),
        (Kind.BOOLEAN, "=", False, True),
        (Kind.BOOLEAN, "<=", True, False),
        (Kind.DATE, "=", date(2026, 1, 1), True),
        (Kind.DATE, "=", date.min, True),
        (Kind.DATE, "=", date.max, True),
        (Kind.DATE, ">", date(2026, 1, 1), False),
    ],
)
def test_is_point(kind: Kind, operator: str, value: Any, expected: bool) -> None:
    line = LINES[kind]
    assert line.is_point(line.canonical(COMPARISONS[operator](value))) is expected


@pytest.mark.parametrize("value", range(4))
def test_is_point_on_a_short_line(value: int) -> None:
    assert SMALL.is_point(SMALL.canonical(points([value])))
    assert not SMALL.is_point(SMALL.canonical(points([value]).complement()))


def test_nothing_and_everything_are_no_points() -> None:
    assert not SMALL.is_point(EMPTY)
    assert not SMALL.is_point(FULL)
