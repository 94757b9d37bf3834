"""The cost metric of sections 4.1 and 4.3: index accesses and retrieved tuples of a plan, for one message.

The paper prints Cost_n with R_{n-1} C_t at the end, where its own first two lines and its closed form have R_n: that is
used here.
"""

from __future__ import annotations

from typing import NamedTuple


class CostParameters(NamedTuple):
    """Table 4.1, without the costs of one index access and of one tuple."""

    subscriptions: float
    """N. For the plans in tables, a conjunction counts as a subscription."""
    branches: float
    """b: predicates of a subscription, on average."""
    values: float
    """m: values of a message, on average."""
    paths: float
    """p: linear paths that fit a tag path, on average."""
    selectivity: float
    """s: the share of the first predicates that hold, of those whose linear path fits the path of a value."""


class PlanCost(NamedTuple):
    """What a plan does for one message."""

    accesses: float
    """Index accesses to the table of predicates: times C_i."""
    tuples: float
    """Tuples retrieved from it: times C_t."""

    def total(self, access: float = 1.0, tuple_: float = 1.0) -> float:
        """The cost, given the costs of one access and of one tuple."""
        return self.accesses * access + self.tuples * tuple_


def recursive_cost(given: CostParameters, iterations: int = 64) -> PlanCost:
    """Section 4.1: iteration n + 1 probes the index for each tuple of iteration n that ends no chain."""
    probes = given.paths * given.values
    goes_on = (given.branches - 1) / given.branches if given.branches else 0.0
    retrieved = given.selectivity * probes * given.subscriptions
    accesses, tuples = probes, retrieved
    for _ in range(iterations - 1):
        waiting = retrieved * goes_on
        accesses += waiting * probes
        retrieved = waiting * probes * given.selectivity
        tuples += retrieved
    return PlanCost(accesses, tuples)


def crossed_cost(given: CostParameters, levels: int) -> PlanCost:
    """Section 4.3: a self cross product once, each of whose pairs is looked up among rows of `levels` predicates.

    The costs C_r of the later predicates, and C_x of those that are chains, are left out, as small.
    """
    pairs = (given.paths * given.values) ** 2
    return PlanCost(pairs, given.selectivity**2 * pairs * given.subscriptions * levels)


def unrolled_cost(given: CostParameters, levels: int) -> PlanCost:
    """The same without a cross product: each value is looked up among rows of `levels` predicates."""
    probes = given.paths * given.values
    return PlanCost(probes, given.selectivity * probes * given.subscriptions * levels)
