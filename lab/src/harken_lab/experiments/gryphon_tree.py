"""Gryphon's matching tree: time, visited nodes and space against subscriptions, and what each optimisation gains.

The paper keeps the number of matches independent of the number of subscriptions, but its text as it survives does not
say how. Here the decline of the attributes' popularity is chosen for each size so that subscriptions have enough tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from harken_lab.experiments.definition import GRYPHON, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, less, missing
from harken_lab.experiments.margins import SLACK, SOME_MILLISECONDS_US, SUBLINEAR
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import everywhere, growth_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant
from harken_lab.workloads.gryphon import Gryphon

PLAIN, COLLAPSED, SUCCESSORS, BOTH = "plain tree", "collapsed", "successors", "both"
ONE_FACTOR, TWO_FACTORS = "both, 1 factor", "both, 2 factors"
_CONTESTANTS = (
    Contestant.of("matching_tree", PLAIN, collapse=False, successors=False, factor=0),
    Contestant.of("matching_tree", COLLAPSED, collapse=True, successors=False, factor=0),
    Contestant.of("matching_tree", SUCCESSORS, collapse=False, successors=True, factor=0),
    Contestant.of("matching_tree", BOTH, collapse=True, successors=True, factor=0),
    Contestant.of("matching_tree", ONE_FACTOR, collapse=True, successors=True, factor=1),
    Contestant.of("matching_tree", TWO_FACTORS, collapse=True, successors=True, factor=2),
    Contestant.of("counting_lists"),
    Contestant.of("scan"),
    Contestant.of("columnar"),
)
_MODEL = Gryphon()
VISITED = "examined_per_event"
WORST = "worst case"
_WORST_CASE = {"attributes": 50, "values": 1, "popularity": 0.5, "decline": 1.0}
"""Every test is of the one value that all events have: an event visits all nodes."""
_MOST_WORST = 30_000


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        theory = round(bound(size), 1)
        decline = decline_for(size, run["matches"])
        workload = run.draw("gryphon", size, decline=decline)
        yield from run.compare(workload, _CONTESTANTS, matches="constant", decline=decline, bound=theory)
        growing = [each for each in _CONTESTANTS if each.name in (PLAIN, BOTH)]
        workload = run.draw("gryphon", size)
        yield from run.compare(workload, growing, matches="growing", decline=_MODEL.decline, bound=theory)
        if size <= _MOST_WORST:
            yield from run.compare(run.draw("gryphon", size, **_WORST_CASE), _CONTESTANTS[:1], matches=WORST)


def decline_for(subscriptions: int, matches: float, model: Gryphon = _MODEL) -> float:
    """The decline at which an event is expected to match this many subscriptions, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if subscriptions * chance_of_match(middle, model) > matches:
            low = middle
        else:
            high = middle
    return round(high, 6)


def chance_of_match(decline: float, model: Gryphon = _MODEL) -> float:
    """The probability that an event matches a subscription. Event values are uniform, so all values are alike."""
    popularity = (model.popularity * decline**number for number in range(model.attributes))
    return math.prod(1 - each * (1 - 1 / model.values) for each in popularity)


def share_saved(model: Gryphon = _MODEL) -> float:
    """The theory's λ: visited nodes grow at most as |S|^(1 − λ)."""
    return math.log(model.values) / (math.log(model.values) + math.log(model.attributes + 1))


def bound(subscriptions: int, model: Gryphon = _MODEL) -> float:
    """Theorem 1: the bound on the expected number of nodes visited per event."""
    values, levels = model.values, model.attributes + 1
    growth = levels * math.pow(subscriptions, 1 - share_saved(model)) - 1
    logs = math.log(values) + math.log(levels)
    return values * levels * growth * logs / ((values * levels - 1) * math.log(levels))


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    theory = 1 - share_saved()
    everything, rows = rows, rows.where(matches="constant")
    yield _grows(_VISITS, rows, VISITED, theory + SLACK, f"1 − λ = {theory:.3f}")
    yield _grows(_GROWING, everything.where(matches="growing"), VISITED, theory + SLACK, f"1 − λ = {theory:.3f}")
    yield _within_bound(everything)
    yield _linear(everything.where(matches=WORST))
    yield _grows(_TIME, rows, TIME, theory + SLACK, f"1 − λ = {theory:.3f}")
    yield _grows(_SPACE, rows, "index_bytes", 1 + SLACK, "linear is 1")
    yield _grows(_BUILDING, rows, "fill_seconds", 1 + SLACK, "linear is 1")
    yield less(_COLLAPSE, rows, COLLAPSED, PLAIN)
    yield less(_SUCCESSORS, rows, SUCCESSORS, PLAIN)
    yield less(_BOTH, rows, BOTH, COLLAPSED)
    yield less(_FACTOR, rows, ONE_FACTOR, BOTH)
    yield less(_FACTORS, rows, TWO_FACTORS, ONE_FACTOR)
    yield less(_FACTOR_SPACE, rows, BOTH, TWO_FACTORS, "index_bytes", 1.0)
    yield _quick_enough(rows)


def _grows(claim: Claim, rows: WorkloadRows, field: str, most: float, theory: str) -> Finding:
    plain, both = (growth_of(spreads(rows, field, entrant=name)) for name in (PLAIN, BOTH))
    if plain is None or both is None:
        return claim.unmeasured(missing(rows, PLAIN, BOTH))
    sizes = rows.each("subscriptions")
    ours = f"{PLAIN} as size^{plain}, {BOTH} as size^{both}, from {min(sizes):,} to {max(sizes):,}; {theory}"
    verdict = everywhere([within(each, most=most) for each in (plain, both)])
    return claim.judged(verdict, f"{ours} (holds if both are up to {most:.2f})")


def _within_bound(rows: WorkloadRows) -> Finding:
    points = rows.points(VISITED, entrant=PLAIN, matches="constant")
    if not points:
        return _BOUND.unmeasured(missing(rows, PLAIN))
    visited = [row for row in rows.where(entrant=PLAIN) if row.get(VISITED) is not None and row["matches"] != WORST]
    shares = [row[VISITED] / bound(row["subscriptions"]) for row in visited]
    size = max(points)
    ours = f"{shown(points[size])} of at most {shown(bound(size))} at {size:,}; at most {max(shares):.0%} of it"
    return _BOUND.judged(max(shares) <= 1, ours)


def _quick_enough(rows: WorkloadRows) -> Finding:
    points = {size: each for size, each in spreads(rows, TIME, entrant=BOTH).items() if size >= 10_000}
    if not points:
        return _QUICK.unmeasured(missing(rows, BOTH) if not rows.points(TIME, entrant=BOTH) else "no size is so large")
    size = min(points)
    verdict = within(points[size], most=SOME_MILLISECONDS_US)
    return _QUICK.judged(verdict, f"{points[size]} µs at {size:,} (holds up to {SOME_MILLISECONDS_US / 1_000:g} ms)")


def _linear(rows: WorkloadRows) -> Finding:
    points = spreads(rows, VISITED, entrant=PLAIN)
    power = growth_of(points)
    if power is None:
        return _WORST.unmeasured("no worst case was measured at two sizes")
    last = max(points)
    ours = f"{PLAIN}: {shown(points[last].middle)} nodes at {last:,}, as size^{power} (holds from {SUBLINEAR:g})"
    return _WORST.judged(within(power, SUBLINEAR), ours)


_LOST = "the text has lost the figure"
_VISITS = Claim(
    "Visited nodes grow less than linearly, as |S|^(1−λ) at most",
    f"λ = ln V / (ln V + ln(K+1)) = {share_saved():.3f} for 30 attributes of 5 values",
    "A test that fails cuts off all that is below its edge; only the *-edges are always followed.",
    "With matches held constant, larger sizes have subscriptions with more tests, and so longer paths.",
)
_GROWING = Claim(
    "The same where matches grow with subscriptions",
    "the theorem holds for any subscriptions",
    "What is visited without a match outweighs the matches, or these are still few.",
    "A match is a leaf that has to be visited, and matches grow linearly. The theorem is for ones that differ: "
    "equal ones are one leaf there.",
)
_BOUND = Claim(
    "Visited nodes stay below the bound of the theorem",
    "V·K1·(K1·|S|^(1−λ) − 1)·(ln V + ln K1) / ((V·K1 − 1)·ln K1), K1 = K + 1",
    "The bound is for the worst subscriptions that there can be; these are random ones.",
    "The theorem counts nodes of a tree with a level for every attribute: this is a fault, or another tree.",
)
_WORST = Claim(
    "In the worst case, matching takes time in proportion to the number of subscriptions",
    "section 4, by an example: the nodes visited are all nodes of the tree; the theorem is about the expected time",
    "Every test is of the value that the event has, so that no edge ends the search.",
    "Subscriptions share more of their paths the more there are.",
)
_TIME = Claim(
    "The time of an event grows less than linearly too",
    _LOST,
    "Visiting a node takes a constant time, as the paper assumes.",
    "A node is a miss of the caches once the tree is larger than they are: visits grow as they should, but dearer.",
)
_SPACE = Claim(
    "Space is linear in the number of subscriptions",
    _LOST,
    "A subscription adds as many nodes as there are attributes, at most.",
    "With matches held constant, larger sizes have subscriptions with more tests, and so more nodes each.",
)
_BUILDING = Claim(
    "The time of pre-processing is linear in the number of subscriptions",
    "section 4: n subscriptions of K attributes take time n·K",
    "A subscription is added by walking one path, of as many nodes as there are attributes at most.",
    "Subscriptions with more tests, which larger sizes have, add more nodes, and a node of a large tree is a miss of "
    "the caches.",
)
_COLLAPSE = Claim(
    "Collapsing chains of *-edges makes matching quicker",
    _LOST,
    "Most attributes are not tested by most subscriptions: most edges are *-edges, and nothing hangs at them.",
    "The nodes that remain have to say which attribute they test, which costs what passing over the others saves.",
)
_SUCCESSORS = Claim(
    "Successor sets alone make matching quicker",
    _LOST,
    "Tests that were passed on a path need not be passed again on the *-path beside it.",
    "To look up the successors costs as much as the tests that they save.",
)
_BOTH = Claim(
    "Successor sets make a collapsed tree quicker",
    _LOST,
    "Tests that were passed on a path need not be passed again on the *-path beside it.",
    "A collapsed tree has little left that could be skipped, and to look up the successors costs as much.",
)
_FACTOR = Claim(
    "Factoring by one attribute makes matching quicker",
    _LOST,
    "An event goes to the subtree of its value at once.",
    "The first level of the tree does the same: its *-edge is all that factoring saves.",
)
_FACTORS = Claim(
    "Factoring by a second attribute makes it quicker still",
    _LOST,
    "An event goes to the subtree of its two values at once.",
    "Less and less is left to be saved, and subscriptions are in more subtrees.",
)
_FACTOR_SPACE = Claim(
    "Factoring costs space",
    _LOST,
    "A subscription that does not test an attribute is in the subtrees of all its values.",
    "The first attributes are tested by most subscriptions: few have to be in several subtrees.",
)
_QUICK = Claim(
    "Tens of thousands of subscriptions are matched in some milliseconds",
    "some milliseconds in Java; the number is lost",
    "The tree is small, and so is the part of it that is visited.",
    "Too many nodes are visited.",
)

EXPERIMENT = Experiment(
    name="gryphon-tree",
    title="The matching tree",
    paper=f"{GRYPHON}, sections 3 to 5",
    scales={
        "smoke": {"sizes": [500, 2_000], "matches": 10, "events": 16},
        "laptop": {"sizes": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000], "matches": 10, "events": 256},
        "full": {
            "sizes": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
            "matches": 10,
            "events": 1_000,
        },
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot("time", "The matching tree: time of an event", where={"matches": "constant"}, facet=None),
        Plot(
            "visited",
            "The matching tree: nodes visited, with matches constant and growing, and in the worst case",
            y=VISITED,
            y_title="nodes per event",
            entrants=(PLAIN, COLLAPSED, SUCCESSORS, BOTH, ONE_FACTOR, TWO_FACTORS),
            facet="matches",
        ),
        Plot(
            "space",
            "The matching tree: memory of the index",
            y="index_bytes",
            y_title="bytes",
            where={"matches": "constant"},
            facet=None,
        ),
    ),
)
