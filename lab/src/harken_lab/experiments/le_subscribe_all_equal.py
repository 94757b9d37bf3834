"""Le Subscribe, figure 11: equalities only, against the number of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator

from harken_lab.experiments.definition import LE_SUBSCRIBE, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, alike, less, missing
from harken_lab.experiments.le_subscribe_sizes import EQUALITY, FAIR, QUARANTINE, THREE
from harken_lab.experiments.margins import SLIGHT
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import growth_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

_CONTESTANTS = tuple(map(Contestant.of, (*THREE, "hanson", "matching_tree", "columnar")))


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        yield from run.compare(run.draw("le-subscribe", size, equality=1.0), _CONTESTANTS)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _grows_slightly(rows)
    yield alike(_SAME, rows, EQUALITY, QUARANTINE)
    yield less(_AHEAD, rows, EQUALITY, FAIR)


def _grows_slightly(rows: WorkloadRows) -> Finding:
    points = spreads(rows, TIME, entrant=EQUALITY)
    power = growth_of(points)
    if power is None:
        return _SLIGHTLY.unmeasured(missing(rows, EQUALITY))
    matches = rows.points("matches_per_event", entrant=EQUALITY)
    first, last = min(points), max(points)
    ours = (
        f"{points[first]} µs at {first:,} ({shown(matches[first])} matches), {points[last]} µs at "
        f"{last:,} ({shown(matches[last])} matches): as size^{power} (holds up to {SLIGHT:g})"
    )
    return _SLIGHTLY.judged(within(power, most=SLIGHT), ours, _HIDDEN if within(power, most=SLIGHT) is None else None)


_HIDDEN = (
    "The margin lies within the spread. In the paper's figure every event also has its communication, which hides "
    "that the matches, and so the time of writing them, grow with the subscriptions."
)
_SLIGHTLY = Claim(
    "After a threshold, the time grows only slightly with the number of subscriptions",
    "figure 11: almost flat, like a logarithm",
    "The clusters that fit an event are as many however many subscriptions there are, and each is looked up by hash.",
    "The look-ups are as many, but the matches grow as the subscriptions do, and look-ups in machine code are so quick "
    "that writing the matches shows. In the paper's figure the threshold has communication in it, which hides them.",
)
_SAME = Claim(
    "Equality-preferred and quarantining are the same algorithm here",
    "figure 11 has one curve for both",
    "Without ranges both are the same look-ups in the same clusters.",
    "One of them still pays for what it does with ranges, though there are none.",
)
_AHEAD = Claim(
    "Looking equalities up together beats counting them",
    "figures 9 and 10",
    "Counting goes through all subscriptions that one of the predicates holds for.",
    "So few predicates hold that counting them costs as little as looking up the clusters.",
)

_SIZES = [50_000, 100_000, 200_000, 400_000, 800_000]
EXPERIMENT = Experiment(
    name="le-subscribe-all-equal",
    title="Equalities only, against subscriptions",
    paper=f"{LE_SUBSCRIBE}, figure 11",
    scales={
        "smoke": {"sizes": [500, 4_000], "events": 32},
        "laptop": {"sizes": _SIZES, "events": 256},
        "full": {"sizes": [*_SIZES, 1_600_000, 3_200_000], "events": 1_000},
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(Plot("time", "Time of an event, equalities only", facet=None),),
)
