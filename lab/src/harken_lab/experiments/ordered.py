"""What experiments on the order of expensive predicates share: drawn subscriptions, gone through in each order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import ordering
from harken.kernels.ordering import FOUND, begin_event, run_event
from harken.matchers.operators.graph import OperatorGraph, course_of
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.workloads.overlap import Overlap, Overlapping

ORDERS = {
    "naive": ordering.NAIVE,
    "sequential": ordering.SEQUENTIAL,
    "suborder": ordering.SUBORDER,
    "adaptive": ordering.ADAPTIVE,
}
NAIVE, SEQUENTIAL, SUBORDER, ADAPTIVE = ORDERS
EVALUATED, COST = "evaluated_per_event", "cost_per_event"
MEANS = "means over all drawings of subscriptions"
_VERIFIED = 2
"""Events of each drawing of which answers are verified."""


class Spent(NamedTuple):
    """What an event took."""

    evaluated: float
    cost: float


class Ordered:
    """Drawn subscriptions as a graph, and room to go through one event after the other."""

    def __init__(self, drawn: Overlapping, known: NDArray[np.float64] | None = None) -> None:
        """`known` are the chances of predicates as the graph is told them; at first it knows nothing."""
        self.drawn = drawn
        self.graph = OperatorGraph.of_arrays(drawn.starts, drawn.slots, drawn.costs)
        if known is not None:
            self.graph.set_known(known)
        self._candidates = np.arange(drawn.subscriptions, dtype=np.int32)
        self.order_chains()

    def order_chains(self) -> None:
        """Order chains by what is known."""
        self.graph.order_chains()
        self._refresh()

    def learn(self) -> None:
        """Go by what was counted so far, chains too."""
        self.graph.learn()
        self.order_chains()

    def _refresh(self) -> None:
        self.held = self.graph.held()
        self.course, self.words = course_of(self.held)

    def begin(self, order: str) -> None:
        begin_event(*self.held[:2], self.words, self._candidates, ORDERS[order])

    def run(self, outcomes: NDArray[np.uint8], order: str) -> Spent:
        """Go through an event with these outcomes."""
        self.begin(order)
        evaluated, cost = run_event(*self.held[:2], self.words, self._candidates, outcomes, ORDERS[order])
        return Spent(evaluated, cost)

    def found(self) -> NDArray[np.int32]:
        """The matches of the last event."""
        return np.sort(self.course.found[: self.course.cursor[FOUND]])

    def verify(self, outcomes: NDArray[np.uint8], orders: Iterable[str] = ORDERS) -> None:
        """Raise WrongAnswerError unless every order finds what all outcomes together say."""
        for order in orders:
            evaluated = self.run(outcomes, order).evaluated
            if not np.array_equal(self.found(), self.drawn.matches(outcomes)):
                raise WrongAnswerError(f"{order} does not find what matches")
            if evaluated != int(self.course.is_done.sum()):
                raise WrongAnswerError(f"{order} evaluated a predicate twice")


def drawings(model: Overlap, subscriptions: int, seed: int, count: int) -> Iterator[tuple[int, Overlapping]]:
    """So many sets of subscriptions, each with its seed."""
    for place in range(count):
        yield seed + place, model.draw(subscriptions, np.random.default_rng((seed + place, 0)))


def events_of(drawn: Overlapping, seed: int, count: int) -> list[NDArray[np.uint8]]:
    """The outcomes of so many events."""
    rng = np.random.default_rng((seed, 1))
    return [drawn.outcomes(rng) for _ in range(count)]


def spent_by(ordered: Ordered, events: Sequence[NDArray[np.uint8]], orders: Iterable[str] = ORDERS) -> dict[str, Spent]:
    """The mean of what events take in each order. Answers are verified first."""
    for outcomes in events[:_VERIFIED]:
        ordered.verify(outcomes, orders)
    found = {order: [ordered.run(outcomes, order) for outcomes in events] for order in orders}
    return {order: mean_of(each) for order, each in found.items()}


def mean_of(spent: Iterable[Spent]) -> Spent:
    evaluated, cost = zip(*spent, strict=True)
    return Spent(fmean(evaluated), fmean(cost))


def row_of(model: Overlap, subscriptions: int, entrant: str, algorithm: str | None = None) -> Row:
    """What every row begins with."""
    is_zipf = model.popularity == "zipf"
    return {
        "workload": "overlap",
        "subscriptions": subscriptions,
        "predicates": model.predicates,
        "longest": model.longest,
        "popularity": f"Zipf {model.exponent:g}" if is_zipf else "uniform",
        "entrant": entrant,
        "algorithm": algorithm or entrant,
        "options": {},
    }


def means(spent: Sequence[Spent]) -> Row:
    """The mean over drawings, and how far these are apart."""
    evaluated = [each.evaluated for each in spent]
    return {
        EVALUATED: round(fmean(evaluated), 2),
        COST: round(fmean(each.cost for each in spent), 2),
        "deviation": round(stdev(evaluated), 2) if len(evaluated) > 1 else 0.0,
        "seeds": len(spent),
    }


def ratios(rows: WorkloadRows, one: str, other: str, field: str = EVALUATED) -> dict[tuple[int, float], float]:
    """The figures of one contestant divided by those of another, by figure and place."""
    found = {}
    for row in rows.where(entrant=one):
        beside = rows.value(field, figure=row["figure"], place=row["place"], entrant=other)
        if beside:
            found[row["figure"], row["place"]] = row[field] / beside
    return found
