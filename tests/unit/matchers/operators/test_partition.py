"""Parts of subscriptions that share predicates: equal sizes, and fewer evaluations than a random cut has."""

from __future__ import annotations

from itertools import chain
from random import Random
from typing import Any

import numpy as np
import pytest

import harken
from harken.matchers.operators import matcher
from harken.matchers.operators.partition import balanced_shares

TOPICS = 12


def drawn(count: int, seed: int) -> list[list[int]]:
    """Subscriptions of two to four predicates, most of them about one of several topics, shuffled."""
    random = Random(seed)
    chosen = []
    for number in range(count):
        topic = number % TOPICS
        pool = [topic * 5 + each for each in range(5)] + [random.randrange(TOPICS * 5)]
        chosen.append(random.sample(sorted(set(pool)), random.randint(2, 4)))
    random.shuffle(chosen)
    return chosen


def shares_of(subscriptions: list[list[int]], parts: int) -> list[int]:
    starts = np.cumsum([0, *map(len, subscriptions)])
    predicates = np.array([each for several in subscriptions for each in several], np.int64)
    return balanced_shares(starts, predicates, np.ones(TOPICS * 5), parts).tolist()


def presences(subscriptions: list[list[int]], shares: list[int]) -> int:
    return len({(part, each) for part, several in zip(shares, subscriptions, strict=True) for each in several})


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 2, 97, 600])
def test_parts_are_of_equal_size_and_share_few_predicates(count: int, parts: int) -> None:
    subscriptions = drawn(count, seed=count)
    shares = shares_of(subscriptions, parts)
    sizes = np.bincount(shares, minlength=parts)
    assert sizes.sum() == count
    assert sizes.max() <= -(-count // parts)
    at_random = [number % parts for number in range(count)]
    assert presences(subscriptions, shares) <= presences(subscriptions, at_random)
    if count == 600 and parts > 1:
        assert presences(subscriptions, shares) < 0.95 * presences(subscriptions, at_random)


def test_no_subscription_and_no_predicate() -> None:
    assert shares_of([], 3) == []
    assert sorted(shares_of([[], [], []], 3)) == [0, 1, 2]


def counting() -> tuple[harken.Operator, list[int]]:
    calls = [0]

    @harken.operator(cost=5)
    def holds(event: Any, number: int) -> bool:
        calls[0] += 1
        return (event["seed"] * 31 + number * 17) % 3 > 0

    return holds, calls


@pytest.mark.parametrize("order", ["adaptive", "suborder", "sequential"])
def test_fewer_evaluations_over_all_parts(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, calls = counting()
    engine = harken.Engine(operators=[operator], order=order)
    texts = [" AND ".join(f"holds({each})" for each in several) for several in drawn(240, seed=5)]
    assert not engine.subscribe_many((str(place), text) for place, text in enumerate(texts)).faults
    events = [{"seed": seed} for seed in range(20)]
    expected = [sorted(ids) for ids in engine.match_batch(events).ids]

    def evaluated() -> int:
        calls[0] = 0
        ids = [part.match_batch(events).ids for part in engine.internals.cut(4)]
        assert [sorted(chain.from_iterable(each)) for each in zip(*ids, strict=True)] == expected
        return calls[0]

    together = evaluated()
    monkeypatch.setattr(matcher, "balanced_shares", lambda starts, *_: np.arange(len(starts) - 1) % 4)
    assert together < 0.8 * evaluated()
