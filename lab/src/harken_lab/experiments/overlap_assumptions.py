"""Overlapping subscriptions where the paper assumes less: unequal costs, unknown selectivities, correlated outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harken_lab.experiments.definition import OVERLAPPING, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import LESS
from harken_lab.experiments.ordered import (
    ADAPTIVE,
    COST,
    EVALUATED,
    MEANS,
    NAIVE,
    ORDERS,
    SEQUENTIAL,
    SUBORDER,
    GraphRunner,
    Spent,
    as_published,
    drawings,
    events_of,
    mean_of,
    means,
    row_of,
    spent_by,
)
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import FigureSpread, everywhere, spread_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.workloads.overlap import Overlap, Overlapping

TRUE, SHUFFLED, BIASED, NOTHING, LEARNT = "true", "shuffled", "biased", "none", "learnt"
KNOWLEDGE = (TRUE, SHUFFLED, BIASED, NOTHING, LEARNT)
"""The selectivities that an order assumes: the true ones, those of other predicates, the square roots of the true ones,
none, and those learnt from outcomes."""
_FIRST_LEARNING = 16
"""Events before learnt selectivities are first used. As in engines, they are updated each time the number doubles."""
_DEAREST = 100.0


def measure(run: Run) -> Iterator[Row]:
    plain = {"predicates": run["predicates"]}
    for popularity in ("uniform", "zipf"):
        yield from _orders(run, "costs", Overlap(**plain, popularity=popularity, dearest=_DEAREST))
        yield from _orders(run, "correlated", Overlap(**plain, popularity=popularity, topics=run["topics"]))
        yield from _knowing(run, Overlap(**plain, popularity=popularity))


def _orders(run: Run, part: str, model: Overlap) -> Iterator[Row]:
    """Measure the four orders, with true selectivities and costs."""
    run.tell(f"{part}, {model.popularity}")
    spent: dict[str, list[Spent]] = {order: [] for order in ORDERS}
    matches: list[int] = []
    for seed, drawn in drawings(model, run["subscriptions"], run.seed, run["seeds"]):
        events = events_of(drawn, seed, run["events"])
        matches += [len(drawn.matches(each)) for each in events]
        for order, each in spent_by(GraphRunner(drawn, drawn.holding), events).items():
            spent[order].append(each)
    for order, figures in spent.items():
        row = row_of(model, run["subscriptions"], order) | {"part": part, "events": run["events"]}
        yield row | {"matches_per_event": round(float(np.mean(matches)), 2)} | means(figures)


def _knowing(run: Run, model: Overlap) -> Iterator[Row]:
    """Measure the orders that use selectivities, with each kind of knowledge, period by period."""
    run.tell(f"selectivities, {model.popularity}")
    ends = _ends(run["learning_events"])
    spent: dict[tuple[str, str, int], list[Spent]] = {}
    for seed, drawn in drawings(model, run["subscriptions"], run.seed, run["seeds"]):
        events = events_of(drawn, seed, run["learning_events"])
        runs = [(SEQUENTIAL, TRUE), *((order, knowledge) for order in (SUBORDER, ADAPTIVE) for knowledge in KNOWLEDGE)]
        for order, knowledge in runs:
            periods = _by_period(_runner(drawn, knowledge, seed), events, ends, order, knowledge)
            for end, mean in zip(ends, periods, strict=True):
                spent.setdefault((order, knowledge, end), []).append(mean)
    for (order, knowledge, end), figures in spent.items():
        entrant = order if order == SEQUENTIAL else f"{order}, {knowledge}"
        row = row_of(model, run["subscriptions"], entrant, order)
        yield row | {"part": "selectivities", "knowledge": knowledge, "seen": end} | means(figures)


def _ends(events: int) -> list[int]:
    """The ends of the periods: the numbers of events after which learnt selectivities are updated, and the last."""
    ends = [_FIRST_LEARNING]
    while ends[-1] < events:
        ends.append(min(2 * ends[-1], events))
    return ends


def _runner(drawn: Overlapping, knowledge: str, seed: int) -> GraphRunner:
    if knowledge in (NOTHING, LEARNT):
        return GraphRunner(drawn)
    if knowledge == SHUFFLED:
        return GraphRunner(drawn, np.random.default_rng((seed, 2)).permutation(drawn.holding))
    return GraphRunner(drawn, np.sqrt(drawn.holding) if knowledge == BIASED else drawn.holding)


def _by_period(
    runner: GraphRunner, events: Sequence[NDArray[np.uint8]], ends: Sequence[int], order: str, knowledge: str
) -> Iterator[Spent]:
    """The mean of each period. Learnt selectivities are updated at its end."""
    runner.verify(events[0], [order])
    for start, end in pairwise([0, *ends]):
        yield mean_of(runner.run(outcomes, order) for outcomes in events[start:end])
        if knowledge == LEARNT:
            runner.learn()


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    return as_published(_findings(rows), rows)


def _findings(rows: WorkloadRows) -> Iterator[Finding]:
    yield _least(_COSTS, rows.where(part="costs"), COST)
    yield _least(_CORRELATED, rows.where(part="correlated"), EVALUATED)
    selectivities = rows.where(part="selectivities")
    yield _wrong(selectivities)
    yield _learns(selectivities)
    yield _unlearnt(selectivities)


def _least(claim: Claim, rows: WorkloadRows, field: str) -> Finding:
    """Whether adaptive spends least, then Sub-Order, Sequential and naive."""
    figures: list[str] = []
    verdicts: list[bool | None] = []
    for popularity in rows.each("popularity"):
        spent = {row["entrant"]: spread_of(row, field) for row in rows.where(popularity=popularity)}
        figures.append(f"{popularity}: {', '.join(f'{order} {shown(spent[order].middle)}' for order in ORDERS)}")
        steps = pairwise((ADAPTIVE, SUBORDER, SEQUENTIAL, NAIVE))
        verdicts += [within(spent[one] / spent[other], most=1) for one, other in steps]
    if not figures:
        return claim.unmeasured("nothing was measured")
    return claim.judged(everywhere(verdicts), "; ".join(figures))


def _last(rows: WorkloadRows, popularity: str, order: str, knowledge: str) -> FigureSpread:
    """Evaluations per event in the last period."""
    inside = rows.where(popularity=popularity, algorithm=order, knowledge=knowledge)
    return list(spreads(inside, EVALUATED, "seen").values())[-1]


def _compared(rows: WorkloadRows, knowledge: str) -> dict[tuple[str, str], FigureSpread]:
    """Evaluations in the last period, as multiples of those with true selectivities."""
    return {
        (popularity, order): _last(rows, popularity, order, knowledge) / _last(rows, popularity, order, TRUE)
        for popularity in rows.each("popularity")
        for order in (ADAPTIVE, SUBORDER)
    }


def _multiples(multiples: dict[tuple[str, str], FigureSpread]) -> str:
    return ", ".join(
        f"{order} {shown(ratio.middle)} ({popularity})" for (popularity, order), ratio in multiples.items()
    )


def _wrong(rows: WorkloadRows) -> Finding:
    if not len(rows):
        return _WRONG.unmeasured("nothing was measured")
    shuffled, biased = _compared(rows, SHUFFLED), _compared(rows, BIASED)
    ours = f"times what true ones need; shuffled: {_multiples(shuffled)}; biased: {_multiples(biased)}"
    verdict = everywhere([within(each, LESS) for each in shuffled.values()])
    return _WRONG.judged(verdict, f"{ours} (holds from {LESS:g} for all shuffled)")


def _learns(rows: WorkloadRows) -> Finding:
    if not len(rows):
        return _LEARNS.unmeasured("nothing was measured")
    learnt = _compared(rows, LEARNT)
    ours = f"times what true ones need, from event {max(rows.each('seen')) // 2:,} on: {_multiples(learnt)}"
    verdict = everywhere([within(each, most=LESS) for each in learnt.values()])
    return _LEARNS.judged(verdict, f"{ours} (holds up to {LESS:g})")


def _unlearnt(rows: WorkloadRows) -> Finding:
    if not len(rows):
        return _UNLEARNT.unmeasured("nothing was measured")
    figures, verdicts = [], []
    for popularity in rows.each("popularity"):
        adaptive, sequential = _last(rows, popularity, ADAPTIVE, NOTHING), _last(rows, popularity, SEQUENTIAL, TRUE)
        figures.append(f"{shown(adaptive.middle)} and {shown(sequential.middle)} ({popularity})")
        verdicts.append(within(adaptive / sequential, most=1))
    return _UNLEARNT.judged(everywhere(verdicts), f"adaptive and sequential: {', '.join(figures)}")


_COSTS = Claim(
    "With costs from 1 to 100 adaptive spends least, then Sub-Order, Sequential and naive",
    "section 4.3, without figures: `p` is multiplied by the cost",
    "Orders that know costs put off what is dear.",
    "Sub-Order sorts a chain by chance times cost, as the paper says, so that a dear predicate that hardly ever holds "
    "comes before a cheap one. Or Sequential evaluates what naive would have skipped.",
)
_CORRELATED = Claim(
    "Where outcomes are correlated the orders keep their places: adaptive, Sub-Order, Sequential, naive",
    "section 4.2.4 leaves it out",
    "Orders go by the chance over all events, which is still the best guess at the beginning of an event.",
    "No order uses what an outcome implies for other predicates.",
)
_WRONG = Claim(
    "Wrong selectivities cost adaptive and Sub-Order evaluations",
    "not measured there",
    "An order that trusts them begins with predicates that hold.",
    "An order also goes by what subscriptions share, which needs no selectivities.",
)
_LEARNS = Claim(
    "Learnt selectivities serve adaptive and Sub-Order as well as known ones after some hundred events",
    "section 3: known or learnt online, without figures",
    "Predicates that are evaluated often are learnt soon, and others matter little.",
    "Rare predicates are evaluated too seldom to be learnt by then.",
)
_UNLEARNT = Claim(
    "Without any knowledge of selectivities, adaptive still evaluates no more than Sequential",
    "not in the paper",
    "It goes by popularity.",
    "Popular predicates may be those that hold.",
)

EXPERIMENT = Experiment(
    name="overlap-assumptions",
    title="Orders with unequal costs, correlated outcomes, and wrong or learnt selectivities",
    paper=f"{OVERLAPPING}, sections 3 and 4.3, which have no figures",
    scales={
        "smoke": {
            "subscriptions": 300,
            "predicates": 100,
            "topics": 5,
            "seeds": 2,
            "events": 4,
            "learning_events": 40,
        },
        "laptop": {
            "subscriptions": 20_000,
            "predicates": 5_000,
            "topics": 50,
            "seeds": 6,
            "events": 50,
            "learning_events": 512,
        },
        "full": {
            "subscriptions": 20_000,
            "predicates": 5_000,
            "topics": 50,
            "seeds": 10,
            "events": 1_000,
            "learning_events": 4_096,
        },
    },
    measure=measure,
    judge=judge,
    plots=tuple(
        Plot(
            f"{order}_selectivities",
            f"Knowledge of selectivities: {order}",
            x="seen",
            y=EVALUATED,
            x_title="events seen",
            y_title="predicates evaluated per event",
            facet="popularity",
            is_log_y=False,
            where={"part": "selectivities"},
            entrants=[SEQUENTIAL, *(f"{order}, {knowledge}" for knowledge in KNOWLEDGE)],
            figure=MEANS,
        )
        for order in (ADAPTIVE, SUBORDER)
    ),
)
