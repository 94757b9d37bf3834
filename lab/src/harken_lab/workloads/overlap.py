"""The workload of overlapping subscriptions with expensive predicates (Liu et al., DEBS 2007, table 1).

It is drawn as arrays: a predicate has no content, only the subscriptions that share it and the chance that it holds.
The paper does not say how selectivities were drawn. Here a predicate holds with chance u^k, u uniform in [0, 1], and k
is such that the wanted share of subscriptions matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_ACTIVE = 0.2
"""The chance that an event is about a topic."""
_LIFT = 0.25
"""A predicate of chance p holds with chance p^0.25 in an event about its topic."""
_LARGEST_POWER = 4_096.0
_STEPS = 60


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Subscriptions as rows of predicates, with the chance and the cost of each predicate."""

    starts: NDArray[np.int64]
    """Where the predicates of each subscription begin; one more at the end."""
    slots: NDArray[np.int32]
    """The predicates of all subscriptions."""
    weights: NDArray[np.float64]
    """The popularity by which predicates were drawn."""
    holding: NDArray[np.float64]
    """The chance that each predicate holds, over all events."""
    costs: NDArray[np.float64]
    topics: NDArray[np.int64] | None
    """The topic of each predicate; None if outcomes are independent."""

    @property
    def subscriptions(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> NDArray[np.int64]:
        """The subscription of each slot."""
        return np.repeat(np.arange(self.subscriptions), np.diff(self.starts))

    def outcomes(self, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Which predicates hold for an event."""
        chances = self.holding
        if self.topics is not None:
            active = rng.random(int(self.topics[-1]) + 1) < _ACTIVE
            about, otherwise = _by_topic(self.holding)
            chances = np.where(active[self.topics], about, otherwise)
        return (rng.random(len(chances)) < chances).astype(np.uint8)

    def matches(self, outcomes: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The subscriptions of which all predicates hold."""
        return np.flatnonzero(np.logical_and.reduceat(outcomes[self.slots] != 0, self.starts[:-1]))


@dataclass(frozen=True)
class Overlap:
    """Draws subscriptions of distinct predicates, popular ones more often."""

    predicates: int = 5_000
    popularity: Literal["uniform", "zipf"] = "uniform"
    """Weights are uniform in [0, 1], or those of Zipf's law."""
    exponent: float = 1.0
    """The exponent of Zipf's law."""
    shortest: int = 3
    longest: int = 5
    match_ratio: float = 0.002
    """The share of subscriptions that an event matches on average."""
    topics: int = 0
    """The number of topics, or 0 for independent outcomes. Each predicate belongs to a topic, a subscription is about
    one topic, and an event about a few, so that outcomes are correlated."""
    dearest: float = 1.0
    """Costs are log-uniform from 1 to this."""

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.longest:
            raise ValueError("`shortest` is 1 or more, and `longest` not less")
        if self.predicates < self.longest * max(1, self.topics):
            raise ValueError("there are `longest` predicates or more, for each topic")
        if not (0 < self.match_ratio < 1 and self.dearest >= 1):
            raise ValueError("`match_ratio` is between 0 and 1, and `dearest` is 1 or more")

    def draw(self, subscriptions: int, rng: np.random.Generator) -> Overlapping:
        weights = self._weights(rng)
        topics = None if not self.topics else np.arange(self.predicates) * self.topics // self.predicates
        starts, slots = self._subscriptions(subscriptions, weights, topics, rng)
        holding = self._holding(starts, slots, topics is not None, rng)
        costs = np.exp(rng.random(self.predicates) * np.log(self.dearest))
        return Overlapping(starts, slots, weights, holding, costs, topics)

    def _weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        if self.popularity == "uniform":
            return rng.random(self.predicates)
        return rng.permutation(np.arange(1, self.predicates + 1) ** -float(self.exponent))

    def _subscriptions(
        self, count: int, weights: NDArray[np.float64], topics: NDArray[np.int64] | None, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Draw predicate after predicate in proportion to weights. Duplicates in a subscription are drawn again."""
        lengths = rng.integers(self.shortest, self.longest, count, endpoint=True)
        ends = np.append(0.0, np.cumsum(weights))
        low, high = np.zeros(count), np.full(count, ends[-1])
        drawn = np.full((count, self.longest), -1, np.int32)
        for place in range(self.longest):
            rows = np.flatnonzero(lengths > place)
            while len(rows):
                points = low[rows] + rng.random(len(rows)) * (high[rows] - low[rows])
                drawn[rows, place] = np.minimum(np.searchsorted(ends, points, "right"), self.predicates) - 1
                rows = rows[(drawn[rows, :place] == drawn[rows, place, None]).any(1)]
            if place == 0 and topics is not None:  # the others are of the topic of the first
                firsts = np.searchsorted(topics, np.arange(self.topics + 1))
                low, high = ends[firsts[topics[drawn[:, 0]]]], ends[firsts[topics[drawn[:, 0]] + 1]]
        starts = np.append(0, np.cumsum(lengths))
        return starts, drawn[np.arange(self.longest) < lengths[:, None]]

    def _holding(
        self, starts: NDArray[np.int64], slots: NDArray[np.int32], is_correlated: bool, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The chance of each predicate. Bisection finds the power that gives the wanted share of matches."""
        uniform = rng.random(self.predicates)
        low, high = 0.0, _LARGEST_POWER
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if match_ratio(starts, slots, uniform**middle, is_correlated) > self.match_ratio:
                low = middle
            else:
                high = middle
        return np.asarray(uniform**high)


def match_ratio(
    starts: NDArray[np.int64], slots: NDArray[np.int32], holding: NDArray[np.float64], is_correlated: bool
) -> float:
    """The share of subscriptions that an event is expected to match."""
    if not is_correlated:
        return float(np.multiply.reduceat(holding[slots], starts[:-1]).mean())
    about, otherwise = (np.multiply.reduceat(each[slots], starts[:-1]).mean() for each in _by_topic(holding))
    return float(_ACTIVE * about + (1 - _ACTIVE) * otherwise)


def _by_topic(holding: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The chances in an event about the topic and in other events; over all events their mean is `holding`."""
    about = np.minimum(holding**_LIFT, holding / _ACTIVE)
    return about, np.maximum(0.0, (holding - _ACTIVE * about) / (1 - _ACTIVE))
