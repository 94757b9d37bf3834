"""The fewest evaluations that decide an event: a bound for large sets of subscriptions, brute force for small ones."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from harken_lab.workloads.overlap import Overlapping

_ROUNDS, _SHARPNESS, _STEP, _TOP_UPS = 30, 8, 0.4, 10


def least(drawn: Overlapping, outcomes: NDArray[np.uint8]) -> float:
    """A lower bound on evaluations, which holds even if all outcomes are known beforehand.

    A subscription that matches needs all of its predicates. One that does not match needs a predicate that fails: the
    evaluated predicates cover all such subscriptions. No cover is smaller than a fractional packing: weights of
    subscriptions of which those that share a predicate have at most 1 together (duality of linear programs).
    """
    is_failing = outcomes[drawn.slots] == 0
    owners = drawn.owners
    is_matching = ~np.logical_or.reduceat(is_failing, drawn.starts[:-1])
    needed = len(np.unique(drawn.slots[is_matching[owners]]))
    return needed + packed(owners[is_failing], drawn.slots[is_failing], len(outcomes))


def packed(owners: NDArray[np.int64], slots: NDArray[np.int32], predicates: int) -> float:
    """The total of a fractional packing, by multiplicative weights. It is a valid bound even if not the best."""
    if not len(owners):
        return 0.0
    is_first = np.append(True, owners[1:] != owners[:-1])
    heads, number = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    popularity = np.maximum(1, np.bincount(slots, minlength=predicates))
    weights = np.minimum.reduceat((1.0 / popularity)[slots], heads)
    for _ in range(_ROUNDS):
        load = np.minimum(np.bincount(slots, weights[number], predicates), 3.0)
        crowded = np.add.reduceat((load**_SHARPNESS)[slots], heads)
        weights *= np.exp(np.clip(_STEP * (1 - crowded), -0.5, 0.5))
    load = np.bincount(slots, weights[number], predicates)
    weights /= np.maximum(1.0, np.maximum.reduceat(load[slots], heads))  # now no predicate has a load above 1
    for _ in range(_TOP_UPS):
        left = np.maximum(0.0, 1.0 - np.bincount(slots, weights[number], predicates))
        weights += np.minimum.reduceat((left / popularity)[slots], heads)
    return float(weights.sum())


def touched(drawn: Overlapping, count: int) -> tuple[float, float]:
    """The share of slots that the `count` most popular predicates fill, and of subscriptions with one of them."""
    is_popular = np.zeros(len(drawn.weights), bool)
    is_popular[np.argsort(-drawn.weights, kind="stable")[:count]] = True
    in_slots = is_popular[drawn.slots]
    return float(in_slots.mean()), float(np.logical_or.reduceat(in_slots, drawn.starts[:-1]).mean())


def masks_of(drawn: Overlapping) -> list[int]:
    """Each subscription as a bit mask of its predicates."""
    rows = np.split(drawn.slots, drawn.starts[1:-1])
    return [sum(1 << int(each) for each in row) for row in rows]


def optimum(drawn: Overlapping) -> float:
    """The least expected number of evaluations over all strategies, including those that depend on outcomes."""
    masks, chances = tuple(masks_of(drawn)), drawn.holding.tolist()

    @cache
    def expected(true: int, false: int) -> float:
        open_ = [mask for mask in masks if not mask & false and mask & ~true]
        needed = 0
        for mask in open_:
            needed |= mask & ~true
        best = np.inf if needed else 0.0
        for predicate, chance in enumerate(chances):
            bit = 1 << predicate
            if needed & bit:
                after = 1 + chance * expected(true | bit, false) + (1 - chance) * expected(true, false | bit)
                best = min(best, after)
        return best

    return expected(0, 0)


def certificate(drawn: Overlapping, outcomes: NDArray[np.uint8]) -> int:
    """The fewest evaluations that decide all subscriptions, if the outcomes are known beforehand."""
    true = sum(1 << place for place, holds in enumerate(outcomes.tolist()) if holds)
    masks = masks_of(drawn)
    needed = 0
    for mask in masks:
        if not mask & ~true:
            needed |= mask
    failing = [mask & ~true for mask in masks if mask & ~true]
    bits = [1 << place for place in range(len(outcomes)) if not true >> place & 1]
    for count in range(len(bits) + 1):
        for chosen in combinations(bits, count):
            if all(mask & sum(chosen) for mask in failing):
                return needed.bit_count() + count
    raise AssertionError("all predicates together decide everything")
