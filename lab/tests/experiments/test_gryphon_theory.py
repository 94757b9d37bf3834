"""What the experiment on Gryphon's tree calculates: the theory's exponent and bound, and matches held constant."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from harken_lab.experiments.gryphon_tree import bound, chance_of_match, decline_for, share_saved
from harken_lab.harness.contestants import Contestant
from harken_lab.harness.verified_answers import true_subscriptions
from harken_lab.workloads import generate
from harken_lab.workloads.conditions import EQUAL, on_integers
from harken_lab.workloads.gryphon import Gryphon
from harken_lab.workloads.workload import Workload
from unit.matchers.subscribed import Subscribed


def test_the_share_saved_is_that_of_the_paper() -> None:
    assert math.isclose(share_saved(Gryphon(attributes=30, values=5)), math.log(5) / math.log(5 * 31))
    assert math.isclose(share_saved(Gryphon(attributes=1, values=2)), 0.5)


def test_the_bound_by_hand() -> None:
    # One attribute of two values: K1 = 2, λ = 1/2, and 2·2·(2·√4 − 1)·2 ln 2 / (3 ln 2) = 8.
    assert math.isclose(bound(4, Gryphon(attributes=1, values=2)), 8.0)


@pytest.mark.parametrize("size", [1_000, 10_000, 1_000_000])
def test_matches_are_held_constant(size: int) -> None:
    decline = decline_for(size, 10)
    assert math.isclose(size * chance_of_match(decline), 10, rel_tol=0.01)


def test_more_subscriptions_have_more_tests() -> None:
    declines = [decline_for(size, 10) for size in (1_000, 10_000, 100_000)]
    assert declines == sorted(declines)
    assert 0 < declines[0] < declines[-1] < 1


def test_the_workload_does_as_expected() -> None:
    workload = generate("gryphon", 20_000, 200, 3, decline=decline_for(20_000, 10))
    found = np.mean([len(true_subscriptions(workload, event)) for event in range(200)])
    assert 7 < found < 14


# The recurrence behind the theorem, by brute force


def expected_visits(subscriptions: set[tuple[int | None, ...]], values: int) -> float:
    """The expected nodes that an event visits, by recursion on a tree with a level for each attribute.

    A node is visited with its *-edge's and, one time in `values`, with the edge of each value.
    """
    if not subscriptions:
        return 0.0
    if not next(iter(subscriptions)):
        return 1.0
    below: dict[int | None, set[tuple[int | None, ...]]] = {}
    for first, *rest in subscriptions:
        below.setdefault(first, set()).add(tuple(rest))
    return 1.0 + sum(expected_visits(each, values) / (1 if value is None else values) for value, each in below.items())


def worst_visits(subscriptions: int, attributes: int, values: int) -> float:
    """The bound that the proof sums up: the (K + 1)·|S| nodes that are visited most, of all that a tree could have.

    At most V^j · C(K + 1, j + 1) nodes have j edges with a value above them, and are visited one time in V^j.
    """
    left, total = float((attributes + 1) * subscriptions), 0.0
    for edges in range(attributes + 1):
        nodes = min(left, float(values) ** edges * math.comb(attributes + 1, edges + 1))
        total += nodes / float(values) ** edges
        left -= nodes
    return total


@pytest.mark.parametrize("attributes", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("values", [2, 3, 5, 20])
def test_the_bound_is_above_what_its_proof_sums_up(attributes: int, values: int) -> None:
    model = Gryphon(attributes=attributes, values=values)
    for size in (1, 2, 10, 1_000, 100_000, 10_000_000):
        if size <= (values + 1) ** attributes:
            assert worst_visits(size, attributes, values) <= bound(size, model) * 1.000001


@pytest.mark.parametrize(("attributes", "values"), [(3, 2), (4, 3), (6, 2)])
def test_a_tree_visits_what_the_recurrence_says_and_no_more_than_the_bound(attributes: int, values: int) -> None:
    rng = Random(4)
    model = Gryphon(attributes=attributes, values=values)
    events = [dict(zip("abcdef", each, strict=False)) for each in product(range(values), repeat=attributes)]
    for size in (1, 3, 8, 20):
        tests: set[tuple[int | None, ...]] = set()
        while len(tests) < size:
            drawn = tuple(rng.choice([None, *range(values)]) for _ in range(attributes))
            tests |= {drawn} if any(each is not None for each in drawn) else set()
        texts = [
            " AND ".join(f"{name} = {value}" for name, value in zip("abcdef", each, strict=False) if value is not None)
            for each in [tuple(0 for _ in range(attributes)), *sorted(tests, key=str)]
        ]
        tests.add(tuple(0 for _ in range(attributes)))
        tree = Subscribed("matching_tree", *texts, collapse=False, successors=False, test_order="given")
        visited = float(np.mean(tree.candidates(*events)))
        assert math.isclose(visited, expected_visits(tests, values))
        assert visited <= worst_visits(len(tests), attributes, values) <= bound(len(tests), model)


def test_the_exponent_is_that_of_the_recurrence_on_full_trees() -> None:
    """With all subscriptions of K attributes, what the proof sums up grows as |S|^(1 − λ) up to a factor."""
    model = Gryphon(attributes=12, values=3)
    sizes = [10**power for power in range(1, 7)]
    ratios = [worst_visits(size, 12, 3) / size ** (1 - share_saved(model)) for size in sizes]
    assert max(ratios) <= bound(1, model) + model.attributes * model.values
    assert all(worst_visits(10 * size, 12, 3) < 10 * worst_visits(size, 12, 3) for size in sizes)


def worst_case(levels: int) -> Workload:
    """All subscriptions that test each attribute for the value 1 or not at all, and events that match them all.

    All test the last attribute, because an empty subscription is none.
    """
    chosen = np.array(list(product((False, True), repeat=levels)))
    chosen = np.column_stack([chosen, np.ones(len(chosen), np.bool_)])
    rows = [np.flatnonzero(chosen[:, each]).astype(np.int32) for each in range(levels + 1)]
    conditions = [
        on_integers(f"a{number + 1}", each, np.full(len(each), EQUAL, np.uint8), np.zeros(len(each), np.int32), 1)
        for number, each in enumerate(rows)
    ]
    events = pa.table({f"a{number + 1}": np.ones(4, np.int64) for number in range(levels + 1)})
    return Workload("gryphon", "the worst case of a matching tree", {}, 0, len(chosen), conditions, events)


def test_the_worst_case_visits_all_nodes() -> None:
    workload = worst_case(4)
    filled = Contestant.of("matching_tree", collapse=False, successors=False).fill(workload, None).take(workload.events)
    stats = filled.matcher.stats()
    assert filled.examined(1) == stats["nodes"]
    assert [len(each) for each in np.split(filled.matches()[1], filled.matches()[0][1:-1])] == [16] * 4
