"""Figures with their spread, whether they are within a margin, and the rows of several seeds joined."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import harken_lab.experiments
from harken_lab.experiments import margins
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.running import joined
from harken_lab.experiments.seeds import merged
from harken_lab.experiments.spreads import (
    FigureSpread,
    below,
    everywhere,
    growth_of,
    majority,
    mean_of,
    spread_of,
    spreads,
    within,
)


def ends(figure: FigureSpread) -> tuple[float, float, float]:
    return pytest.approx((figure.middle, figure.least, figure.most))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("row", "field", "expected"),
    [
        ({"bytes": 7}, "bytes", (7, 7, 7)),
        ({"fill_seconds": 8.0}, "fill_seconds", (8, 6.4, 10)),
        ({"insert_us": 8.0}, "insert_us", (8, 6.4, 10)),
        ({"us_per_event": 8.0, "least_us": 4.0, "most_us": 10.0}, "us_per_event", (8, 6.4, 10)),
        ({"us_per_event": 8.0, "rounds": {"us_per_event": [7, 8, 12]}}, "us_per_event", (8, 7, 12)),
        ({"us_per_event": 8.0, "rounds": {"us_per_event": [1, 7, 8, 9, 50]}}, "us_per_event", (8, 7, 9)),
        ({"evaluated_per_event": 100.0, "deviation": 8.0, "seeds": 4}, "evaluated_per_event", (100, 92, 108)),
    ],
)
def test_the_spread_of_a_figure(row: Row, field: str, expected: tuple[float, float, float]) -> None:
    assert ends(spread_of(row, field)) == expected


def test_a_ratio_is_that_of_each_round() -> None:
    slow, quick = FigureSpread.of_rounds([10, 20, 30]), FigureSpread.of_rounds([5, 10, 15])
    assert ends(slow / quick) == (2, 2, 2), "what slows a round slows both"
    assert ends(slow / FigureSpread.of_rounds([5, 10])) == (20 / 7.5, 1, 6)
    assert str(slow / quick) == "2"
    assert str(slow) == "20 (10 to 30)"


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [((1.0, 9.0), True), ((2.0, 4.0), True), ((5.0, 9.0), False), ((0.0, 1.9), False), ((3.0, 9.0), None)],
)
def test_within_a_margin(margin: tuple[float, float], verdict: bool | None) -> None:
    assert within(FigureSpread(3, 2, 4), *margin) is verdict


def test_one_below_another() -> None:
    low, high = FigureSpread(2, 1, 3), FigureSpread(5, 4, 6)
    assert (below(low, high), below(high, low), below(low, FigureSpread(3, 2, 5))) == (True, False, None)


@pytest.mark.parametrize(
    ("verdicts", "of_most", "of_all"),
    [
        ([True, True, True], True, True),
        ([True, True, False], True, False),
        ([True, True, None], True, None),
        ([True, False], None, False),
        ([False, False, True], False, False),
        ([None, None, True], None, None),
    ],
)
def test_several_verdicts_are_one(verdicts: list[bool | None], of_most: bool | None, of_all: bool | None) -> None:
    assert majority(verdicts) is of_most
    assert everywhere(verdicts) is of_all


def test_growth_has_a_spread() -> None:
    sizes = (10, 100, 1_000)
    rounds = {size: FigureSpread.of_rounds([size**power for power in (0.4, 0.5, 0.7)]) for size in sizes}
    assert ends(growth_of(rounds) or FigureSpread.exact(0)) == (0.5, 0.4, 0.7)
    alone = growth_of({size: FigureSpread(size**0.5, size**0.5 / 1.25, size**0.5 * 1.25) for size in sizes})
    assert alone is not None
    assert alone.least < 0.45
    assert alone.most > 0.55
    assert alone.middle == pytest.approx(0.5)
    assert growth_of({10: FigureSpread.exact(3)}) is None


def test_a_mean_has_the_means_of_the_ends() -> None:
    assert ends(mean_of([FigureSpread(1, 0, 4), FigureSpread(3, 2, 8)])) == (2, 1, 6)


def test_figures_by_size() -> None:
    rows = WorkloadRows([{"entrant": "a", "subscriptions": size, "bytes": size} for size in (20, 10)])
    assert list(spreads(rows, "bytes", entrant="a")) == [10, 20]
    assert spreads(rows, "bytes", entrant="b") == {}


# Several seeds


def seed_row(time: float, **more: Any) -> Row:
    rounds = [time, time + 1]
    return {
        **{"entrant": "a", "subscriptions": 10, "us_per_event": time, "least_us": min(rounds), "most_us": max(rounds)},
        **{"rounds": {"us_per_event": rounds}, "options": {}, "events": 4, **more},
    }


def test_the_rows_of_seeds_are_one() -> None:
    (row,) = merged([[seed_row(3.0, bytes=30)], [seed_row(1.0, bytes=10)], [seed_row(5.0, bytes=20)]])
    assert row["rounds"] == {"us_per_event": [3, 4, 1, 2, 5, 6], "bytes": [30, 10, 20]}
    assert (row["us_per_event"], row["least_us"], row["most_us"]) == (3.5, 1, 6)
    assert (row["bytes"], row["events"], row["subscriptions"]) == (20, 4, 10)


def test_one_seed_is_kept_as_it_is() -> None:
    rows = [seed_row(1.0), {"entrant": "b", "subscriptions": 1, "rejected": "cannot"}]
    assert merged([rows]) == rows


def test_a_seed_that_was_rejected_does_not_count() -> None:
    rejected = {"entrant": "a", "subscriptions": 10, "rejected": "it is skipped"}
    (row,) = merged([[rejected], [seed_row(1.0)], [seed_row(2.0)]])
    assert row["rounds"]["us_per_event"] == [1, 2, 2, 3]
    assert "rejected" not in row
    assert merged([[rejected], [rejected]]) == [rejected]


def test_rows_of_others_are_not_joined() -> None:
    with pytest.raises(ValueError, match="another row in place of a"):
        merged([[seed_row(1.0)], [seed_row(1.0, entrant="b")]])


def test_rounds_of_changes_and_of_matching_are_kept() -> None:
    changes = {"insert_us": 1.0, "rounds": {"insert_us": [1.0]}}
    assert joined(changes, seed_row(2.0))["rounds"] == {"insert_us": [1.0], "us_per_event": [2.0, 3.0]}
    assert "rounds" not in joined({"rejected": "cannot"}, {"rejected": "cannot"})


# The margins


def test_all_margins_are_in_one_file() -> None:
    """An experiment compares with names, not with numbers of its own: no float but 0 and 1 stands in its judging."""
    folder = Path(str(harken_lab.experiments.__file__)).parent
    wrong = []
    for path in folder.glob("*.py"):
        if path.stem in ("margins", "spreads"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "within":
                values = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
                numbers = [each.value for each in values if isinstance(each, ast.Constant)]
                wrong += [f"{path.name}:{node.lineno}" for each in numbers if each != 1]
    assert not wrong


def test_margins_are_numbers_or_pairs_of_them() -> None:
    values = {name: value for name, value in vars(margins).items() if name.isupper()}
    assert len(values) > 20
    for value in values.values():
        low, high = value if isinstance(value, tuple) else (value, value)
        assert 0 < low <= high
