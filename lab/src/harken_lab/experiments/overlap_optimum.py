"""Overlapping subscriptions, theorem 2: the distance of each order from the optimum, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from harken_lab.experiments.definition import OVERLAPPING, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.least_evaluations import certificate, optimum
from harken_lab.experiments.margins import NEAR_OPTIMUM
from harken_lab.experiments.ordered import (
    ADAPTIVE,
    EVALUATED,
    ORDERS,
    SEQUENTIAL,
    GraphRunner,
    as_published,
    drawings,
    row_of,
)
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import majority
from harken_lab.harness.charts import shown
from harken_lab.workloads.overlap import Overlap, Overlapping

OPTIMUM, CLAIRVOYANT = "optimum", "clairvoyant"
"""The best of all strategies; and a strategy that knows all outcomes beforehand."""


def measure(run: Run) -> Iterator[Row]:
    for subscriptions, predicates in run["sizes"]:
        for ratio in run["match_ratios"]:
            run.tell(f"{subscriptions} subscriptions, {predicates} predicates, {ratio:.1%} match")
            model = Overlap(predicates=predicates, match_ratio=ratio)
            instances = [expected(drawn) for _, drawn in drawings(model, subscriptions, run.seed, run["instances"])]
            for name in instances[0]:
                row = row_of(model, subscriptions, name) | {"match_ratio": ratio, "instances": len(instances)}
                yield row | _summary([each[name] for each in instances], [each[OPTIMUM] for each in instances])


def _summary(own: list[Row], best: list[Row]) -> Row:
    """Means over instances, and the largest multiples of the optimum and of the clairvoyant strategy."""
    multiples = [each[EVALUATED] / least[EVALUATED] for each, least in zip(own, best, strict=True)]
    summary = {
        EVALUATED: round(fmean(each[EVALUATED] for each in own), 4),
        "times_optimum": round(fmean(multiples), 4),
        "most_times_optimum": round(max(multiples), 4),
    }
    if "factor" in own[0]:
        summary["most_times_clairvoyant"] = round(max(each["factor"] for each in own), 4)
        summary["beyond_longest"] = sum(each["beyond"] for each in own)
    return summary


def expected(drawn: Overlapping) -> dict[str, Row]:
    """The expected evaluations of each order, over all possible outcomes; and those of the best strategies."""
    outcomes = [np.array(each, np.uint8) for each in product((0, 1), repeat=len(drawn.holding))]
    chances = np.array([_chance(drawn, each) for each in outcomes])
    fewest = np.array([certificate(drawn, each) for each in outcomes])
    longest = int(np.diff(drawn.starts).max())
    runner = GraphRunner(drawn, drawn.holding)
    figures: dict[str, Row] = {}
    for order in ORDERS:
        evaluated = np.array([runner.run(each, order).evaluated for each in outcomes])
        figures[order] = {
            EVALUATED: float(evaluated @ chances),
            "factor": float((evaluated / fewest).max()),
            "beyond": int((evaluated > longest * fewest).sum()),
        }
    figures[OPTIMUM] = {EVALUATED: optimum(drawn)}
    return figures | {CLAIRVOYANT: {EVALUATED: float(fewest @ chances)}}


def _chance(drawn: Overlapping, outcomes: NDArray[np.uint8]) -> float:
    return float(np.where(outcomes, drawn.holding, 1 - drawn.holding).prod())


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    return as_published((_within(rows), _near(rows), _nearest(rows)), rows)


def _within(rows: WorkloadRows) -> Finding:
    measured = rows.where(entrant=SEQUENTIAL)
    if not len(measured):
        return _FACTOR.unmeasured("nothing was measured")
    beyond, most = (max(row[name] for row in measured) for name in ("beyond_longest", "most_times_clairvoyant"))
    instances = sum(row["instances"] for row in measured)
    ours = f"{shown(most)} times at the most, over all outcomes of {instances:,} sets of subscriptions of up to 5"
    return _FACTOR.judged(beyond == 0, ours)


def _multiples(rows: WorkloadRows, name: str) -> dict[str, float]:
    return {order: fmean(row[name] for row in rows.where(entrant=order)) for order in ORDERS}


def _near(rows: WorkloadRows) -> Finding:
    if not len(rows):
        return _NEAR.unmeasured("nothing was measured")
    mean = _multiples(rows, "times_optimum")
    most = max(row["most_times_optimum"] for row in rows.where(entrant=ADAPTIVE))
    ratios = ", ".join(f"{order} {shown(value)}" for order, value in mean.items())
    ours = (
        f"times the optimum, on average: {ratios}; {ADAPTIVE} {shown(most)} at the most (holds up to {NEAR_OPTIMUM:g})"
    )
    return _NEAR.judged(mean[ADAPTIVE] <= NEAR_OPTIMUM, ours)


def _nearest(rows: WorkloadRows) -> Finding:
    if not len(rows):
        return _NEAREST.unmeasured("nothing was measured")
    multiples = [
        {
            order: rows.value("times_optimum", subscriptions=size, match_ratio=ratio, entrant=order) or 0.0
            for order in ORDERS
        }
        for size in rows.each("subscriptions")
        for ratio in rows.each("match_ratio")
    ]
    verdicts = [each[ADAPTIVE] == min(each.values()) for each in multiples]
    ours = f"at {sum(verdicts)} of {len(verdicts)} sizes and shares of matches (holds at most of them)"
    return _NEAREST.judged(majority(verdicts), ours)


_FACTOR = Claim(
    "Sequential evaluates at most d times what is needed with all outcomes known (d: predicates of the longest)",
    "theorem 2: at most d times the optimum",
    "Of the predicates that it takes together from one subscription, every strategy needs at least one.",
    "This is a fault: the theorem is proven.",
)
_NEAR = Claim(
    "Harken's adaptive order is within a tenth of the best of all strategies",
    "not in the paper",
    "Looking one step ahead is nearly enough.",
    "Looking one step ahead is not enough.",
)
_NEAREST = Claim(
    "Of the four orders adaptive is the nearest to the optimum",
    "not in the paper",
    "It goes by selectivity, popularity, and what is decided already.",
    "With few subscriptions there is little to share, and chains that begin with the least likely do as well.",
)

EXPERIMENT = Experiment(
    name="overlap-optimum",
    title="The distance from the optimum, by brute force",
    paper=f"{OVERLAPPING}, theorem 2",
    scales={
        "smoke": {"sizes": [[4, 5]], "match_ratios": [0.02], "instances": 3},
        "laptop": {"sizes": [[6, 6], [10, 8]], "match_ratios": [0.002, 0.02, 0.1], "instances": 60},
        "full": {"sizes": [[6, 6], [10, 8], [16, 9]], "match_ratios": [0.002, 0.02, 0.1], "instances": 200},
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot(
            "optimum",
            "Expected evaluations, as a multiple of the optimum",
            x="match_ratio",
            y="times_optimum",
            x_title="share of matches",
            y_title="times the optimum",
            facet="subscriptions",
            is_log_y=False,
            entrants=(*ORDERS, OPTIMUM, CLAIRVOYANT),
            figure="means over all sets of subscriptions",
        ),
    ),
)
