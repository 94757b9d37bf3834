"""What the experiment on Gryphon's tree calculates: the theory's exponent and bound, and matches held constant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harken_lab.experiments.gryphon_tree import bound, chance_of_match, decline_for, share_saved
from harken_lab.harness.verified_answers import true_subscriptions
from harken_lab.workloads import generate
from harken_lab.workloads.gryphon import Gryphon


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
