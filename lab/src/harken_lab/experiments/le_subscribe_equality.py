"""Le Subscribe, figure 10: time against p, the probability that the test of a number is an equality."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from harken_lab.experiments.definition import LE_SUBSCRIBE, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, alike, less, missing
from harken_lab.experiments.le_subscribe_sizes import EQUALITY, FAIR, QUARANTINE, THREE
from harken_lab.experiments.margins import LESS
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import everywhere, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

_CONTESTANTS = tuple(map(Contestant.of, (*THREE, "columnar")))


def measure(run: Run) -> Iterator[Row]:
    for share in run["equality"]:
        workload = run.draw("le-subscribe", run["size"], equality=share)
        yield from run.compare(workload, _CONTESTANTS, equality=share)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield alike(_SAME, rows.where(equality=1.0), QUARANTINE, EQUALITY)
    for name in THREE:
        yield _falls(rows, name)
    yield less(_AHEAD, rows.where(equality=0.5), QUARANTINE, FAIR)


def _falls(rows: WorkloadRows, name: str) -> Finding:
    claim = _falling(name)
    points = spreads(rows, TIME, "equality", entrant=name)
    if len(points) < 2:
        return claim.unmeasured(missing(rows, name))
    ours = ", ".join(f"p = {share:g}: {shown(each.middle)} µs" for share, each in points.items())
    times = list(points.values())
    steps = [within(after / before, most=LESS) for before, after in pairwise(times)]
    rule = f"holds if the first is {LESS:g} times the last, and no step rises by more than that"
    return claim.judged(everywhere([within(times[0] / times[-1], LESS), *steps]), f"{ours} ({rule})")


def _falling(name: str) -> Claim:
    return Claim(
        f"The more equalities, the quicker {name} is",
        "figure 10",
        "A range lets half of the events through, an equality one in thousands: fewer predicates hold, and less is "
        "counted.",
        "What does not depend on p outweighs what does.",
    )


_SAME = Claim(
    "Without ranges, equality-preferred and quarantining take the same time",
    "figure 10, p = 1",
    "Both are then the same look-ups in the same clusters.",
    "One of them still pays for what it does with ranges, though there are none.",
)
_AHEAD = Claim(
    "With as many ranges as equalities on numbers, quarantining is ahead of the fair predicate algorithm",
    "figure 10, p = 0.5",
    "Most subscriptions have some equality, and are not counted.",
    "Counting costs so little that it does not pay to avoid it.",
)

_SHARES = [0.0, 0.25, 0.5, 0.75, 1.0]
EXPERIMENT = Experiment(
    name="le-subscribe-equality",
    title="Time against the share of equalities",
    paper=f"{LE_SUBSCRIBE}, figure 10",
    scales={
        "smoke": {"size": 2_000, "equality": [0.0, 0.5, 1.0], "events": 16},
        "laptop": {"size": 800_000, "equality": _SHARES, "events": 256},
        "full": {"size": 800_000, "equality": [each / 10 for each in range(11)], "events": 1_000},
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot(
            "time", "Time of an event by the share of equalities", "equality", x_title="p", facet=None, is_log_x=False
        ),
    ),
)
