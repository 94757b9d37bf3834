"""Runs events over a graph of overlapping subscriptions, in each order of evaluating predicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import ordering
from harken.kernels.ordering import FOUND, begin_event, run_event
from harken.matchers.operators.graph import OperatorGraph, course_of
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.spreads import ROUNDS, FigureSpread, spread_of
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
_PUBLISHED = {"chains": "published"}
"""The options of Sub-Order's rows: chains are ordered by the saving of a pair over all outcomes, as in the paper."""
_EARLIER = (
    "Measured with an earlier order of ours in place of Sub-Order: it counted what two chains share in the cost of "
    "both, and put popular predicates first. Sub-Order is now the paper's own, and has to be measured again."
)
_VERIFIED = 2
"""Events of each drawing whose answers are verified."""


class Spent(NamedTuple):
    """The number of evaluations and their total cost, of one event or as a mean."""

    evaluated: float
    cost: float


class GraphRunner:
    """Drawn subscriptions as an operator graph, over which events run one after the other."""

    def __init__(self, drawn: Overlapping, selectivities: NDArray[np.float64] | None = None) -> None:
        """`selectivities` are those that the graph assumes; without them it assumes none."""
        self.drawn = drawn
        self.graph = OperatorGraph.of_arrays(drawn.starts, drawn.slots, drawn.costs)
        if selectivities is not None:
            self.graph.set_known(selectivities)
        self._candidates = np.arange(drawn.subscriptions, dtype=np.int32)
        self.order_chains()

    def order_chains(self) -> None:
        """Order chains by the selectivities of the graph."""
        self.graph.order_chains()
        self._refresh()

    def learn(self) -> None:
        """Take selectivities from the outcomes counted so far, and order chains by them."""
        self.graph.learn()
        self.order_chains()

    def _refresh(self) -> None:
        self.frozen_graph = self.graph.held()
        self.course, self.words = course_of(self.frozen_graph)

    def begin(self, order: str) -> None:
        begin_event(*self.frozen_graph[:2], self.words, self._candidates, ORDERS[order])

    def run(self, outcomes: NDArray[np.uint8], order: str) -> Spent:
        """Evaluate an event with these outcomes."""
        self.begin(order)
        evaluated, cost = run_event(*self.frozen_graph[:2], self.words, self._candidates, outcomes, ORDERS[order])
        return Spent(evaluated, cost)

    def matches(self) -> NDArray[np.int32]:
        """The matches of the last event."""
        return np.sort(self.course.found[: self.course.cursor[FOUND]])

    def verify(self, outcomes: NDArray[np.uint8], orders: Iterable[str] = ORDERS) -> None:
        """Raise WrongAnswerError unless every order finds the subscriptions whose predicates all hold."""
        for order in orders:
            evaluated = self.run(outcomes, order).evaluated
            if not np.array_equal(self.matches(), self.drawn.matches(outcomes)):
                raise WrongAnswerError(f"{order} finds other subscriptions than those that match")
            if evaluated != int(self.course.is_done.sum()):
                raise WrongAnswerError(f"{order} evaluated a predicate twice")


def drawings(model: Overlap, subscriptions: int, seed: int, count: int) -> Iterator[tuple[int, Overlapping]]:
    """Draw `count` sets of subscriptions, each with its seed."""
    for place in range(count):
        yield seed + place, model.draw(subscriptions, np.random.default_rng((seed + place, 0)))


def events_of(drawn: Overlapping, seed: int, count: int) -> list[NDArray[np.uint8]]:
    """The outcomes of `count` events."""
    rng = np.random.default_rng((seed, 1))
    return [drawn.outcomes(rng) for _ in range(count)]


def spent_by(
    runner: GraphRunner, events: Sequence[NDArray[np.uint8]], orders: Iterable[str] = ORDERS
) -> dict[str, Spent]:
    """The mean evaluations and cost of events in each order. Answers are verified first."""
    for outcomes in events[:_VERIFIED]:
        runner.verify(outcomes, orders)
    return {order: mean_of(runner.run(outcomes, order) for outcomes in events) for order in orders}


def mean_of(spent: Iterable[Spent]) -> Spent:
    evaluated, cost = zip(*spent, strict=True)
    return Spent(fmean(evaluated), fmean(cost))


def row_of(model: Overlap, subscriptions: int, entrant: str, algorithm: str | None = None) -> Row:
    """The first fields of every row."""
    is_zipf = model.popularity == "zipf"
    return {
        "workload": "overlap",
        "subscriptions": subscriptions,
        "predicates": model.predicates,
        "longest": model.longest,
        "popularity": f"Zipf {model.exponent:g}" if is_zipf else "uniform",
        "entrant": entrant,
        "algorithm": algorithm or entrant,
        "options": dict(_PUBLISHED) if (algorithm or entrant) == SUBORDER else {},
    }


def means(spent: Sequence[Spent]) -> Row:
    """The means over drawings, the standard deviation of evaluations, and the figures of all drawings."""
    rounds = {EVALUATED: [each.evaluated for each in spent], COST: [each.cost for each in spent]}
    evaluated = rounds[EVALUATED]
    return {
        **{name: round(fmean(values), 2) for name, values in rounds.items()},
        "deviation": round(stdev(evaluated), 2) if len(evaluated) > 1 else 0.0,
        "seeds": len(spent),
        ROUNDS: {name: [round(each, 2) for each in values] for name, values in rounds.items()},
    }


def ratios(rows: WorkloadRows, one: str, other: str, field: str = EVALUATED) -> dict[tuple[int, float], FigureSpread]:
    """The figures of one contestant divided by those of another, by figure and place."""
    quotients = {}
    for row in rows.where(entrant=one):
        beside = next(iter(rows.where(figure=row["figure"], place=row["place"], entrant=other)), None)
        if row.get(field) and beside is not None and beside.get(field):
            quotients[row["figure"], row["place"]] = spread_of(row, field) / spread_of(beside, field)
    return quotients


def is_published(rows: Iterable[Row]) -> bool:
    """Whether Sub-Order was measured as the paper has it."""
    own = [row for row in rows if SUBORDER in (row.get("entrant"), row.get("algorithm"))]
    return all(row.get("options") == _PUBLISHED for row in own)


def as_published(findings: Iterable[Finding], rows: WorkloadRows) -> Iterator[Finding]:
    """The findings; those about Sub-Order count as not measured if it was measured as another order."""
    is_own = is_published(rows)
    for each in findings:
        is_about = "Sub-Order" in each.claim or "four orders" in each.claim
        if is_own or not is_about or not each.is_measured:
            yield each
        else:
            yield replace(each, holds=None, is_measured=False, why=_EARLIER)
