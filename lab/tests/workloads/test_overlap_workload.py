"""Overlapping subscriptions: distinct predicates, popular as asked, and as many matches as asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harken_lab.workloads.overlap import Overlap, Overlapping, match_ratio


def drawn(subscriptions: int = 2_000, seed: int = 1, **parameters: Any) -> Overlapping:
    return Overlap(**parameters).draw(subscriptions, np.random.default_rng(seed))


def rows(made: Overlapping) -> list[list[int]]:
    return [each.tolist() for each in np.split(made.slots, made.starts[1:-1])]


@pytest.mark.parametrize("parameters", [{}, {"popularity": "zipf", "exponent": 1.2}, {"topics": 20}])
def test_predicates_of_a_subscription_are_distinct(parameters: dict[str, Any]) -> None:
    made = drawn(predicates=200, longest=7, **parameters)
    assert {len(each) for each in rows(made)} == {3, 4, 5, 6, 7}
    assert all(len(set(each)) == len(each) for each in rows(made))
    assert made.slots.min() >= 0
    assert made.slots.max() < 200


def test_few_predicates_are_enough() -> None:
    assert all(sorted(each) == [0, 1, 2] for each in rows(drawn(50, predicates=3, longest=3)))


def test_popularity_follows_the_weights() -> None:
    for popularity in ("uniform", "zipf"):
        made = drawn(20_000, predicates=500, popularity=popularity)
        counts = np.bincount(made.slots, minlength=500)
        assert np.corrcoef(counts, made.weights)[0, 1] > 0.95
    assert np.sort(made.weights)[-2:].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("topics", [0, 25])
def test_as_many_match_as_asked(topics: int) -> None:
    made = drawn(predicates=1_000, topics=topics, match_ratio=0.01)
    assert match_ratio(made.starts, made.slots, made.holding, topics > 0) == pytest.approx(0.01)
    rng = np.random.default_rng(5)
    events = [made.outcomes(rng) for _ in range(600)]
    assert np.mean([len(made.matches(each)) for each in events]) == pytest.approx(20, rel=0.25)
    often = made.holding > 0.3
    assert np.mean(events, axis=0)[often] == pytest.approx(made.holding[often], abs=0.13)


def test_outcomes_of_a_topic_go_together() -> None:
    made = drawn(predicates=100, topics=10, match_ratio=0.05)
    assert made.topics is not None
    assert all(len({made.topics[each] for each in row}) == 1 for row in rows(made))
    rng = np.random.default_rng(5)
    events = np.array([made.outcomes(rng) for _ in range(2_000)], float)
    likely = np.flatnonzero((made.holding > 0.1) & (made.holding < 0.5))
    correlation = np.corrcoef(events[:, likely].T)
    same = made.topics[likely][:, None] == made.topics[likely]
    assert correlation[same & (correlation < 0.999)].mean() > 0.25
    assert abs(correlation[~same].mean()) < 0.05


def test_matches_are_those_of_which_all_predicates_hold() -> None:
    made = drawn(300, predicates=40, match_ratio=0.2)
    outcomes = made.outcomes(np.random.default_rng(2))
    expected = [number for number, each in enumerate(rows(made)) if all(outcomes[one] for one in each)]
    assert made.matches(outcomes).tolist() == expected
    assert made.owners.tolist() == [number for number, each in enumerate(rows(made)) for _ in each]


def test_costs_are_log_uniform() -> None:
    assert set(drawn(10).costs) == {1.0}
    costs = drawn(10, dearest=100.0).costs
    assert 1 <= costs.min() < 1.1
    assert 90 < costs.max() <= 100
    assert np.median(costs) == pytest.approx(10, rel=0.15)


def test_the_same_seed_draws_the_same() -> None:
    one, other, another = drawn(100), drawn(100), drawn(100, seed=2)
    assert np.array_equal(one.slots, other.slots)
    assert np.array_equal(one.holding, other.holding)
    assert not np.array_equal(one.holding, another.holding)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"shortest": 0}, {"longest": 2}, {"predicates": 4}, {"predicates": 40, "topics": 9}),
        *({"match_ratio": 0.0}, {"match_ratio": 1.0}, {"dearest": 0.5}),
    ],
)
def test_what_cannot_be_drawn_is_rejected(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="`"):
        Overlap(**parameters)
