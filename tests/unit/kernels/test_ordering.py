"""What evaluating one chain before another saves (Sub-Order), against all outcomes in both orders."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from harken.kernels.frozen import frozen
from harken.kernels.ordering import SUBORDER, begin_event, pair_chains, run_event
from harken.matchers.operators.graph import OperatorGraph, course_of

PREDICATES = 7


def graph_of(chains: list[list[int]], holding: NDArray[np.float64], costs: NDArray[np.float64]) -> OperatorGraph:
    starts = np.cumsum([0, *map(len, chains)])
    graph = OperatorGraph.of_arrays(starts, np.array([each for chain in chains for each in chain], np.int32), costs)
    graph.set_known(holding)
    graph.order_chains()
    return graph


def expected_cost(graph: OperatorGraph, order: list[int], holding: NDArray[np.float64]) -> float:
    """The mean cost over all outcomes of evaluating the chains in this order."""
    graph._order = np.array(order, np.int32)
    graph._change()
    held = graph.held()
    _, words = course_of(held)
    candidates, spent = np.arange(2, dtype=np.int32), 0.0
    for outcomes in product((0, 1), repeat=len(holding)):
        chance = prod(p if outcome else 1 - p for p, outcome in zip(holding, outcomes, strict=True))
        begin_event(*held[:2], words, candidates, SUBORDER)
        spent += chance * run_event(*held[:2], words, candidates, np.array(outcomes, np.uint8), SUBORDER)[1]
    return spent


def saved_by_first(graph: OperatorGraph) -> float:
    """What the kernel says that evaluating chain 0 before chain 1 saves."""
    held = graph.held()
    ranked, starts = graph._ranked(held.graph, held.weights)
    before, after, savings = np.empty(64, np.int32), np.empty(64, np.int32), np.empty(64)
    count = int(pair_chains(frozen(held.graph), frozen(held.weights), ranked, starts, 8, before, after, savings))
    signed = {(1 if before[place] == 0 else -1) * savings[place] for place in range(count)}
    assert len({round(each, 9) for each in signed}) <= 1, "a pair is compared once for each link, alike"
    return float(next(iter(signed), 0.0))


@pytest.mark.parametrize("seed", range(60))
def test_the_saving_of_two_chains_is_that_of_all_outcomes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chains = [rng.choice(PREDICATES, rng.integers(1, 6), replace=False).tolist() for _ in range(2)]
    # Every third pair has predicates of equal weight, whose order only their numbers tell.
    holding = rng.choice([0.3, 0.6], PREDICATES) if seed % 3 == 0 else rng.uniform(0.05, 0.95, PREDICATES)
    costs = np.ones(PREDICATES) if seed % 2 else rng.uniform(0.5, 20.0, PREDICATES)
    graph = graph_of(chains, holding, costs)
    difference = expected_cost(graph, [1, 0], holding) - expected_cost(graph, [0, 1], holding)
    assert saved_by_first(graph) == pytest.approx(difference, abs=1e-9)
    assert saved_by_first(graph_of(chains[::-1], holding, costs)) == pytest.approx(-difference, abs=1e-9)


def test_links_of_one_pair_are_all_counted() -> None:
    """A second link counts only where the first one holds, and only by what each chain has alone before it."""
    holding, costs = np.array([0.2, 0.4, 0.5, 0.6, 0.8]), np.ones(5)
    graph = graph_of([[1, 0, 2, 4], [1, 3, 4]], holding, costs)
    # Links at 1 and 4. Before 1: the first chain has 0. Before 4: it has 0 and 2, the second has 3.
    first_link = 0.6 * (0.2 * 0.0 - 1.0 * 1.0)
    second_link = 0.2 * 0.4 * (0.2 * 0.5 * 1.0 - 0.6 * (1.0 + 0.2))
    assert saved_by_first(graph) == pytest.approx(first_link + second_link)
