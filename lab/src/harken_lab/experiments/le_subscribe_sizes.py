"""Le Subscribe, figure 9: time against subscriptions at p = 0.5, and the lead over the naive algorithm."""

from __future__ import annotations

from collections.abc import Iterator

from harken_lab.experiments.definition import LE_SUBSCRIBE, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, about, less, less_everywhere, missing
from harken_lab.experiments.margins import INDEX_GAIN, TEN_THOUSAND
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.harness.contestants import Contestant

FAIR, EQUALITY, QUARANTINE = "counting_lists", "equality_preferred", "quarantine"
NAIVE, SCAN, GOUGH = "naive", "scan", "gough"
THREE = (FAIR, EQUALITY, QUARANTINE)
_BESIDE = ("hanson", "neon", "matching_tree", GOUGH, SCAN, "columnar")
_CONTESTANTS = tuple(map(Contestant.of, (*THREE, *_BESIDE)))
_CLAIMED_SIZE = 400_000
_NO_COMMUNICATION = (
    "Matchers are measured here without a process that gets their answers. The benchmark of the match server has "
    "communication, but one size, one workload and the default matcher, and so no curves of the three."
)


def measure(run: Run) -> Iterator[Row]:
    for name in ("le-subscribe", "w4"):
        for size in run["sizes" if name == "le-subscribe" else "w4_sizes"]:
            workload = run.draw(name, size)
            with_naive = name == "le-subscribe" and size == run["naive_size"]
            yield from run.compare(workload, (*_CONTESTANTS, Contestant.of(NAIVE)) if with_naive else _CONTESTANTS)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    main, beside = rows.where(workload="le-subscribe"), rows.where(workload="w4")
    yield less_everywhere(_FIRST, main, QUARANTINE, EQUALITY)
    yield less_everywhere(_SECOND, main, EQUALITY, FAIR)
    yield _COMMUNICATION.unmeasured(_NO_COMMUNICATION)
    yield _far_behind(main)
    yield less(_SCAN, main, QUARANTINE, SCAN, margin=INDEX_GAIN)
    yield less(_UNSELECTIVE, beside, EQUALITY, QUARANTINE)
    yield _explodes(rows)


def _far_behind(rows: WorkloadRows) -> Finding:
    finding = about(_NAIVE, rows, QUARANTINE, NAIVE, TEN_THOUSAND)
    size = max(rows.shared("us_per_event", (QUARANTINE, NAIVE)), default=0)
    if 0 < size < _CLAIMED_SIZE:
        return _NAIVE.unmeasured(f"The paper says it of {_CLAIMED_SIZE:,} subscriptions.", finding.ours)
    return finding


def _explodes(rows: WorkloadRows) -> Finding:
    stops = rows.stops(GOUGH)
    if stops:
        first = stops[0]
        return _EXPLODES.judged(True, f"{first['workload']} with {first['subscriptions']:,}: {first['rejected']}")
    points = rows.points("index_bytes", entrant=GOUGH)
    return _EXPLODES.unmeasured("no size of this scale is beyond the limit" if points else missing(rows, GOUGH))


_FIRST = Claim(
    "Quarantining is quicker than equality-preferred",
    "figure 9: the lowest curve",
    "Ranges are only looked at in subscriptions whose equalities hold, which are few, and in those without any.",
    "Where there are few subscriptions, both take the same look-ups of equality clusters, and little else.",
)
_SECOND = Claim(
    "Equality-preferred is quicker than the fair predicate algorithm",
    "figure 9: the middle curve",
    "Equalities are looked up together and not counted, and only candidates are compared at the end.",
    "Counting costs so little that it does not pay to avoid it.",
)
_COMMUNICATION = Claim(
    "With the communication of the answers, the time of the three grows a little more, in the same order",
    "figure 9b: processing and communication, which grows slightly with the matches of an event",
)
_NAIVE = Claim(
    "The naive algorithm takes almost ten thousand times as long as quarantining, at 400,000 subscriptions",
    "almost 10,000 times",
    "Naive evaluates every subscription in the interpreter, as the paper's does. Quarantining has no loop there, in K "
    "as in machine code.",
    "Both sides are other programs than the paper's, which ran in the interpreter of K: naive is Python, quarantining "
    "is machine code.",
)
_SCAN = Claim(
    "What is gained is due to the index: testing every subscription in machine code is behind too",
    "not measured there",
    "The same machine code passes all subscriptions, where quarantining passes those with hits and those without "
    "equalities.",
    "Passing all subscriptions in a row is quick, and most have to be looked at anyway: the index gains less than "
    "ten times.",
)
_UNSELECTIVE = Claim(
    "Where equalities are not selective, equality-preferred may be quicker than quarantining",
    "section 4, without a figure; w4 is such a workload: an equality lets one event in ten through",
    "Many subscriptions pass their equalities, and their other predicates are tested one by one, again and again.",
    "Three quarters of the predicates of w4 are no equalities. Equality-preferred counts all that hold; quarantining "
    "counts fewer, and tests the rest only where the equalities hold.",
)
_EXPLODES = Claim(
    "Gough's tree explodes: the number of times that a predicate is stored grows with combinations",
    "section 3, without a figure",
    "A node has to tell apart all values that any subscription below it asks for, and so has a branch for each.",
    "",
)

EXPERIMENT = Experiment(
    name="le-subscribe-sizes",
    title="Time against subscriptions at p = 0.5",
    paper=f"{LE_SUBSCRIBE}, figure 9",
    scales={
        "smoke": {"sizes": [500, 2_000], "w4_sizes": [1_000], "naive_size": 2_000, "events": 16},
        "laptop": {
            "sizes": [50_000, 100_000, 200_000, 400_000, 800_000],
            "w4_sizes": [10_000, 100_000],
            "naive_size": _CLAIMED_SIZE,
            "events": 256,
        },
        "full": {
            "sizes": [50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000],
            "w4_sizes": [10_000, 100_000, 1_000_000],
            "naive_size": _CLAIMED_SIZE,
            "events": 1_000,
        },
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot("time", "Time of an event at p = 0.5, with what stands beside it"),
        Plot(
            "three",
            "Time of an event at p = 0.5: the paper's three",
            y_title="µs per event",
            where={"workload": "le-subscribe"},
            entrants=(*THREE, "columnar"),
            facet=None,
            is_log_x=False,
            is_log_y=False,
        ),
        Plot("memory", "Memory", y="bytes", y_title="bytes"),
    ),
)
