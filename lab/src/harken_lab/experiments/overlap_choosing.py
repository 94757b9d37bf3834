"""Overlapping subscriptions: the time of choosing the next predicate, and of settling what its outcome decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from harken.kernels.ordering import NOTHING, choose, settle
from harken_lab.experiments.definition import OVERLAPPING, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import CHOOSING_US
from harken_lab.experiments.ordered import ADAPTIVE, EVALUATED, ORDERS, GraphRunner, drawings, events_of, row_of
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, timed
from harken_lab.experiments.spreads import FigureSpread, everywhere, spread_of, within
from harken_lab.harness.charts import shown
from harken_lab.workloads.overlap import Overlap

ONE_BY_ONE, AT_ONCE = "one by one", "at once"
"""A call of kernels for every predicate, as engines make between evaluations; and one call for an event."""
US = "us_per_predicate"
_PAPER_SIZE = 20_000

Events = Sequence[NDArray[np.uint8]]


def measure(run: Run) -> Iterator[Row]:
    for size, predicates in run["sizes"]:
        for popularity in ("uniform", "zipf"):
            model = Overlap(predicates=predicates, popularity=popularity)
            run.tell(f"{size:,} subscriptions, {predicates:,} predicates, {popularity}")
            ((seed, drawn),) = drawings(model, size, run.seed, 1)
            runner = GraphRunner(drawn, drawn.holding)
            started = perf_counter()
            runner.order_chains()
            chains = perf_counter() - started
            events = events_of(drawn, seed, run["events"])
            for outcomes in events[:2]:
                runner.verify(outcomes)
            for (order, way), (evaluated, seconds) in _timed(runner, events, run.pace.rounds).items():
                row = row_of(model, size, f"{order}, {way}", order) | {"way": way, "events": len(events)}
                row |= timed([each / len(events) * 1e6 for each in seconds])
                row |= {EVALUATED: round(evaluated / len(events), 2)}
                row |= {US: round(median(seconds) / evaluated * 1e6, 4)}
                yield row | ({"chains_seconds": round(chains, 4)} if order == "suborder" else {})


def _timed(runner: GraphRunner, events: Events, rounds: int) -> dict[tuple[str, str], tuple[int, list[float]]]:
    """Evaluations, and processor seconds of each round, by order and way. They take turns, without their warm-up."""
    ways: dict[str, Callable[[GraphRunner, Events, str], int]] = {ONE_BY_ONE: one_by_one, AT_ONCE: _at_once}
    counts: dict[tuple[str, str], int] = {}
    seconds: dict[tuple[str, str], list[float]] = {}
    for turn in range(rounds + 1):
        for order in ORDERS:
            for way, run in ways.items():
                started = process_time()
                counts[order, way] = run(runner, events, order)
                took = process_time() - started
                if turn:
                    seconds.setdefault((order, way), []).append(took)
    return {key: (counts[key], each) for key, each in seconds.items()}


def one_by_one(runner: GraphRunner, events: Events, order: str) -> int:
    """Evaluate events as an engine does. Returns the number of predicates evaluated."""
    kind, words = ORDERS[order], (*runner.frozen_graph[:2], runner.words)
    holding, count = np.zeros(1, np.uint8), 0
    for outcomes in events:
        runner.begin(order)
        predicate = choose(*words, kind)
        while predicate != NOTHING:
            holding[0] = outcomes[predicate]
            predicate = settle(*words, predicate, holding, True, kind)
            count += 1
    return count


def _at_once(runner: GraphRunner, events: Events, order: str) -> int:
    return int(sum(runner.run(outcomes, order).evaluated for outcomes in events))


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _quick(_ENGINE, rows, ONE_BY_ONE)
    yield _quick(_KERNEL, rows, AT_ONCE)


def _quick(claim: Claim, rows: WorkloadRows, way: str) -> Finding:
    measured = rows.where(subscriptions=_PAPER_SIZE, algorithm=ADAPTIVE, way=way)
    if not len(measured):
        return claim.unmeasured(f"this scale does not have {_PAPER_SIZE:,} subscriptions")
    times = ", ".join(f"{shown(row[US])} µs ({row['popularity']}, {shown(row[TIME])} µs an event)" for row in measured)
    others = ", ".join(
        f"{order} {shown(max(row[US] for row in rows.where(subscriptions=_PAPER_SIZE, algorithm=order, way=way)))}"
        for order in ORDERS
        if order != ADAPTIVE
    )
    ours = f"{ADAPTIVE} {times}; others at most: {others} µs (holds below {CHOOSING_US:g} µs)"
    return claim.judged(everywhere([within(_spread(row), most=CHOOSING_US) for row in measured]), ours)


def _spread(row: Row) -> FigureSpread:
    """Microseconds a predicate, with the spread of the time of an event."""
    return spread_of(row, TIME) / FigureSpread.exact(row[TIME] / row[US])


_ENGINE = Claim(
    "Choosing takes less than 5 µs per predicate evaluated, with 20,000 subscriptions over 5,000 predicates",
    "not measured there",
    "What a predicate is worth only falls as others are evaluated: it is computed again only at the top of the heap.",
    "A call from Python into a kernel takes some 2 µs of it, as the time of one call for a whole event shows. The rest "
    "is beginning the event, choosing, and settling the subscriptions that share the predicate.",
)
_KERNEL = Claim(
    "The same where a whole event is one call",
    "not measured there",
    "Most of it is settling the subscriptions that share the predicate.",
    "Most of it is settling the subscriptions that share the predicate, which are many.",
)

EXPERIMENT = Experiment(
    name="overlap-choosing",
    title="The time of choosing what is evaluated next",
    paper=f"{OVERLAPPING}, section 5.1: constant-time look-ups, without figures",
    scales={
        "smoke": {"sizes": [[300, 100], [600, 100]], "events": 3},
        "laptop": {"sizes": [[5_000, 5_000], [20_000, 5_000], [80_000, 40_000]], "events": 20},
        "full": {"sizes": [[5_000, 5_000], [20_000, 5_000], [80_000, 40_000]], "events": 200},
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot(
            "time",
            "Choosing and settling, per predicate evaluated",
            y=US,
            y_title="µs of the processor per predicate",
            facet="popularity",
        ),
    ),
)
