"""Findings: computed from rows, by ratios, with a margin that is told."""

from __future__ import annotations

import math

import pytest

from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, about, alike, exponent, less, less_everywhere, pairs

CLAIM = Claim("a is quicker than b", "figure 1", "because", "otherwise")


def row(entrant: str, size: int, time: float | None = None, **more: object) -> Row:
    made: Row = {"entrant": entrant, "subscriptions": size, **more}
    return made if time is None else made | {"us_per_event": time}


ROWS = WorkloadRows(
    [
        row("a", 10, 1.0),
        row("b", 10, 3.0),
        row("a", 100, 2.0),
        row("b", 100, 2.1),
        row("a", 1_000, 5.0),
        row("b", 1_000, rejected="stopped at max_rows: too many", limit="max_rows"),
    ]
)


def test_the_largest_size_that_both_have_decides() -> None:
    finding = less(CLAIM, ROWS, "a", "b")
    assert finding.holds is False
    assert finding.why == "otherwise"
    assert finding.ours == "a 2 µs, b 2.1 µs: 1.05 times, at 100 subscriptions (holds from 1.1)"
    assert less(CLAIM, ROWS, "a", "b", margin=1.0).holds is True
    assert less(CLAIM, ROWS.where(subscriptions=10), "a", "b").why == "because"


def test_every_size_is_told() -> None:
    finding = less_everywhere(CLAIM, ROWS, "a", "b")
    assert finding.holds is False
    assert "10: 3, 100: 1.05" in finding.ours
    assert less_everywhere(CLAIM, ROWS.where(subscriptions=10), "a", "b").holds is True


def test_about_so_many_times() -> None:
    few = ROWS.where(subscriptions=10)
    assert about(CLAIM, few, "a", "b", 3.0, 1.5).holds is True
    assert about(CLAIM, few, "a", "b", 5.0, 1.5).holds is False
    assert "(holds from 3.33 to 7.5)" in about(CLAIM, few, "a", "b", 5.0, 1.5).ours
    assert alike(CLAIM, ROWS, "a", "b").holds is True
    assert alike(CLAIM, few, "a", "b").holds is False


def test_what_was_rejected_cannot_be_told() -> None:
    last = ROWS.where(subscriptions=1_000)
    for finding in (less(CLAIM, last, "a", "b"), less_everywhere(CLAIM, last, "a", "b"), alike(CLAIM, last, "a", "b")):
        assert finding.holds is None
        assert finding.ours == "not measured"
        assert finding.why == "b: stopped at max_rows: too many"
    assert less(CLAIM, ROWS, "a", "c").why == "this scale does not have a and c together"


def test_nothing_cannot_be_divided_by() -> None:
    assert pairs(WorkloadRows([row("a", 1, 0.0), row("b", 1, 2.0)]), "a", "b") == []


def test_rows_are_looked_up() -> None:
    assert ROWS.value("us_per_event", entrant="a", subscriptions=100) == 2.0
    assert ROWS.value("us_per_event", entrant="b", subscriptions=1_000) is None
    assert ROWS.points("us_per_event", entrant="b") == {10: 3.0, 100: 2.1}
    assert ROWS.shared("us_per_event", ("a", "b")) == [10, 100]
    assert ROWS.each("entrant") == ["a", "b"]
    assert [each["subscriptions"] for each in ROWS.stops("b")] == [1_000]
    assert len(ROWS) == 6


@pytest.mark.parametrize("power", [0.0, 0.681, 1.0, 2.0])
def test_exponents_are_fitted(power: float) -> None:
    found = exponent({size: 7 * size**power for size in (10, 100, 5_000)})
    assert found is not None
    assert math.isclose(found, power, abs_tol=1e-9)


def test_one_point_has_no_exponent() -> None:
    assert exponent({10: 1.0}) is None
