"""Intervals with values that every database holds."""

from __future__ import annotations

from math import inf, nextafter

import pytest

from harken.codes.columns import Column
from harken.databases.dialects import Storage
from harken.language.intervals import Cut
from harken.relational.typed_values import first_beyond, first_of, stored_interval
from harken.schema import Kind

NUMBER, TEXT = Column(("x",), Kind.NUMBER), Column(("x",), Kind.STRING)
LARGE = 2**53


@pytest.mark.parametrize(
    ("low", "high", "first", "beyond"),
    [
        ((3, 0), (5, 1), 3.0, nextafter(5, inf)),
        ((3, 1), None, nextafter(3, inf), None),
        (None, (0.1, 0), None, 0.1),
        ((LARGE + 1, 0), None, LARGE + 2.0, None),  # no double is LARGE + 1
        ((LARGE + 1, 1), None, LARGE + 2.0, None),
        (None, (LARGE + 1, 1), None, LARGE + 2.0),
        (None, (LARGE + 3, 0), None, LARGE + 4.0),
    ],
)
def test_numbers_are_doubles(low: Cut | None, high: Cut | None, first: float | None, beyond: float | None) -> None:
    interval, is_exact = stored_interval(0, NUMBER, low, high)
    assert is_exact
    assert (interval.attribute, interval.storage) == (1, Storage.NUMBER)
    assert (first_of(interval), first_beyond(interval)) == (first, beyond)


def test_an_equality_has_a_point_and_no_other_interval_has() -> None:
    assert stored_interval(0, NUMBER, (3, 0), (3, 1))[0].point == 3.0
    assert stored_interval(0, TEXT, ("a", 0), ("a", 1))[0].point == "a"
    assert stored_interval(0, NUMBER, (3, 1), (3, 0))[0].point is None
    assert stored_interval(0, NUMBER, (3, 0), (4, 1))[0].point is None
    assert stored_interval(0, NUMBER, (LARGE + 1, 0), (LARGE + 1, 1))[0].point is None


@pytest.mark.parametrize("text", ["a\0b", "a" * 501, "\ud800"])
def test_a_text_that_not_every_database_holds_is_left_out(text: str) -> None:
    interval, is_exact = stored_interval(0, TEXT, (text, 0), (text, 1))
    assert (interval.low, interval.high, is_exact) == (None, None, False)
    outside, is_exact = stored_interval(0, TEXT, (text, 1), (text, 0))
    assert (outside.low, outside.high, outside.is_outside, is_exact) == (None, None, False, False)


def test_what_is_outside_is_marked() -> None:
    interval, is_exact = stored_interval(0, NUMBER, (5, 1), (3, 0))
    assert (interval.is_outside, is_exact) == (True, True)
