"""Le Subscribe, section 4: the cost of adding one subscription where there are 3,200,000."""

from __future__ import annotations

from collections.abc import Iterator

from harken_lab.experiments.changing import measure_changes
from harken_lab.experiments.definition import LE_SUBSCRIBE, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, alike, less, missing
from harken_lab.experiments.le_subscribe_sizes import EQUALITY, FAIR, QUARANTINE, THREE
from harken_lab.experiments.margins import INSERTION_US, SLIGHT
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import everywhere, growth_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

_CONTESTANTS = tuple(map(Contestant.of, (*THREE, "columnar")))


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        yield from measure_changes(run, run.draw("le-subscribe", size), _CONTESTANTS)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _quick_enough(rows)
    yield alike(_ALIKE, rows, QUARANTINE, EQUALITY, "insert_rows_us")
    yield less(_FAIR_FIRST, rows, FAIR, QUARANTINE, "insert_rows_us")


def _quick_enough(rows: WorkloadRows) -> Finding:
    """Whether adding one takes no longer than in the paper, and no longer to many subscriptions than to few."""
    points = spreads(rows, "insert_us", entrant=QUARANTINE)
    as_rows = rows.points("insert_rows_us", entrant=QUARANTINE)
    if not points:
        return _QUICK.unmeasured(missing(rows, QUARANTINE))
    size, power = max(points), growth_of(points)
    ours = f"{points[size]} µs, as a row of arrays {shown(as_rows[size])} µs, at {size:,} subscriptions"
    if power is None:
        return _QUICK.unmeasured("it takes two sizes", ours)
    verdicts = [within(points[size], most=INSERTION_US), within(power, most=SLIGHT)]
    rule = f"(holds up to {INSERTION_US:,.0f} µs and size^{SLIGHT:g})"
    return _QUICK.judged(everywhere(verdicts), f"{ours}; it grows as size^{power} {rule}")


_QUICK = Claim(
    "A subscription can be added to quarantining while it runs, however many there are",
    "32.2 ms at 3,200,000",
    "A change touches the subscription's own cluster and lists, and nothing else.",
    "A change goes through much of what is there.",
)
_ALIKE = Claim(
    "Adding to equality-preferred costs about the same as adding to quarantining",
    '"a similar time"',
    "Both find the cluster of the equalities, and differ in where the ranges go.",
    "Where the ranges go makes a difference: lists of predicates for all of them, or a place with the subscription.",
)
_FAIR_FIRST = Claim(
    "Adding to the fair predicate algorithm is cheaper than adding to quarantining",
    '"faster", without a figure',
    "A predicate's list becomes longer by one, and that is all.",
    "Most of the time goes into what all have in common: the row, and the labels of its constants. Beyond that a "
    "cluster is one place to find, and predicates are several.",
)

EXPERIMENT = Experiment(
    name="le-subscribe-insertion",
    title="Adding one subscription",
    paper=f"{LE_SUBSCRIBE}, section 4",
    scales={
        "smoke": {"sizes": [1_000, 2_000], "events": 2, "changes": 20},
        "laptop": {"sizes": [100_000, 800_000, 3_200_000], "events": 2, "changes": 200},
        "full": {"sizes": [100_000, 400_000, 800_000, 1_600_000, 3_200_000], "events": 2, "changes": 1_000},
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot("time", "Adding one subscription", y="insert_us", y_title="µs", facet=None),
        Plot("rows", "Adding one subscription, as a row", y="insert_rows_us", y_title="µs", facet=None),
    ),
)
