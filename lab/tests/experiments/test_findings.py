"""Findings: computed from rows, by ratios, with a margin that is told."""

from __future__ import annotations

import math

import pytest

from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, about, alike, less, less_everywhere, pairs
from harken_lab.experiments.spreads import exponent

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


def exact(entrant: str, size: int, value: float) -> Row:
    """A row with a figure that has no spread."""
    return {"entrant": entrant, "subscriptions": size, "bytes": value}


def sizes(*others: float) -> WorkloadRows:
    """`a` needs 100 at every size, `b` what is given."""
    return WorkloadRows(
        each for place, other in enumerate(others, 1) for each in (exact("a", place, 100), exact("b", place, other))
    )


@pytest.mark.parametrize(
    ("others", "holds"),
    [
        ((300,), True),
        ((105,), False),
        ((105, 300, 300), True),
        ((105, 90, 80, 100, 90, 300), False),
        ((105, 300), None),
        ((300, 300, 105, 100), None),
    ],
)
def test_most_of_the_sizes_decide(others: tuple[float, ...], holds: bool | None) -> None:
    finding = less(CLAIM, sizes(*others), "a", "b", "bytes")
    assert finding.holds is holds
    divided = "It holds at some sizes and not at others, and neither are most of them."
    assert finding.why == {True: "because", False: "otherwise", None: divided}[holds]


def test_the_ratios_at_all_sizes_stand_beside_the_last_figures() -> None:
    ours = less(CLAIM, sizes(300, 105), "a", "b", "bytes").ours
    assert ours == (
        "a 100 bytes, b 105 bytes: 1.05 times, at 2 subscriptions; by subscriptions: 1: 3, 2: 1.05 no "
        "(holds from 1.1 at most sizes)"
    )


def test_the_rule_for_one_size_is_short() -> None:
    assert less(CLAIM, sizes(300), "a", "b", "bytes").ours == (
        "a 100 bytes, b 300 bytes: 3 times, at 1 subscriptions (holds from 1.1)"
    )


def test_every_size_decides_where_the_paper_says_so() -> None:
    def verdict(*others: list[float]) -> bool | None:
        rows = []
        for place, rounds in enumerate(others, 1):
            rows.append(row("a", place, 1.0, rounds={"us_per_event": [1.0] * len(rounds)}))
            rows.append(row("b", place, sorted(rounds)[len(rounds) // 2], rounds={"us_per_event": rounds}))
        return less_everywhere(CLAIM, WorkloadRows(rows), "a", "b").holds

    assert verdict([2.0, 3.0, 4.0], [1.2, 1.3, 1.4]) is True
    assert verdict([2.0, 3.0, 4.0], [1.0, 1.3, 1.4]) is None
    assert verdict([2.0, 3.0, 4.0], [1.0, 1.0, 1.05]) is False


def test_every_size_is_told() -> None:
    finding = less_everywhere(CLAIM, ROWS, "a", "b")
    assert finding.holds is None, "one time without rounds may be off"
    assert "10: 3, 100: 1.05 ?" in finding.ours
    assert less_everywhere(CLAIM, ROWS.where(subscriptions=10), "a", "b").holds is True


def test_about_so_many_times() -> None:
    few = sizes(300)
    assert about(CLAIM, few, "a", "b", (2.0, 4.5), "bytes").holds is True
    assert about(CLAIM, few, "a", "b", (3.33, 7.5), "bytes").holds is False
    assert "(holds from 3.33 to 7.5)" in about(CLAIM, few, "a", "b", (3.33, 7.5), "bytes").ours
    assert alike(CLAIM, sizes(105), "a", "b", "bytes").holds is True
    assert alike(CLAIM, few, "a", "b", "bytes").holds is False


def test_what_was_rejected_cannot_be_told() -> None:
    last = ROWS.where(subscriptions=1_000)
    for finding in (less(CLAIM, last, "a", "b"), less_everywhere(CLAIM, last, "a", "b"), alike(CLAIM, last, "a", "b")):
        assert finding.holds is None
        assert (finding.is_measured, finding.verdict) == (False, "not measured")
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
