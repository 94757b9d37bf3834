"""ToPSS, tables 1 and 2 without the DBMS, and the time of updates: counting by bits and by lists on a table index."""

from __future__ import annotations

from collections.abc import Iterator

from harken_lab.experiments.changing import measure_changes
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import MARGIN, Claim, Finding, exponent, less, less_everywhere, missing, pairs
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

BITS, LISTS = "bit-wise", "list-based"
_CONTESTANTS = (
    Contestant.of("counting_bits", BITS, index="table"),
    Contestant.of("counting_lists", LISTS, index="table"),
    Contestant.of("columnar"),
)
_PAPER = {
    # subscriptions: ms for an event (bit-wise, list-based), ms to load all (bit-wise, list-based)
    1_000: (0.3, 0.10, 6, 6),
    5_000: (1.9, 0.27, 26, 28),
    10_000: (3.8, 0.63, 52, 58),
    50_000: (20.0, 3.85, 261, 353),
    100_000: (40.4, 8.10, 523, 862),
    500_000: (264.0, 79.00, 2_712, 16_093),
    1_000_000: (562.4, 190.70, 5_428, 97_746),
    5_000_000: (1_555.7, 1_056.00, 26_976, 2_678_858),
}
_STEEP = 1.2
"""The exponent from which growth counts as more than linear."""


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        workload = run.draw("w4", size)
        changes = {row["entrant"]: row for row in measure_changes(run, workload, _CONTESTANTS)}
        for row in run.compare(workload, _CONTESTANTS):
            yield {**changes[row["entrant"]], **row, **_of_paper(row)}


def _of_paper(row: Row) -> Row:
    """The paper's own figures, for its two algorithms at its sizes."""
    if row["entrant"] not in (BITS, LISTS) or row["subscriptions"] not in _PAPER:
        return {}
    figures = _PAPER[row["subscriptions"]]
    which = (BITS, LISTS).index(row["entrant"])
    return {"paper_ms_per_event": figures[which], "paper_fill_ms": figures[2 + which]}


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield less_everywhere(_QUICKER, rows, LISTS, BITS)
    yield _narrows(rows)
    yield less(_LOADS, rows, BITS, LISTS, "fill_seconds")
    yield _steep(rows)
    yield less(_DELETES, rows, BITS, LISTS, "delete_us")
    yield less(_INSERTS, rows, BITS, LISTS, "insert_us")


def _narrows(rows: WorkloadRows) -> Finding:
    """Whether the lead of lists is smaller at the largest size than at 5,000, where it is largest in the paper."""
    compared = [each for each in pairs(rows, LISTS, BITS) if each.place >= 5_000]
    if len(compared) < 2:
        return _NARROWS.unmeasured("it takes two sizes from 5,000 on")
    first, last = compared[0], compared[-1]
    ours = f"{shown(first.ratio)} times at {first.place:,}, {shown(last.ratio)} times at {last.place:,}"
    return _NARROWS.judged(
        first.ratio >= MARGIN * last.ratio, f"{ours} (holds if the first is {MARGIN:g} times the second)"
    )


def _steep(rows: WorkloadRows) -> Finding:
    lists, bits = (rows.points("fill_seconds", entrant=name) for name in (LISTS, BITS))
    # At smaller sizes the fixed costs of a call dominate.
    powers = [exponent({size: value for size, value in each.items() if size >= 10_000}) for each in (lists, bits)]
    if powers[0] is None or powers[1] is None:
        return _STEEP_LOAD.unmeasured(missing(rows, LISTS, BITS) if not lists else "it takes two sizes from 10,000 on")
    ours = f"list-based grows as size^{powers[0]:.2f}, bit-wise as size^{powers[1]:.2f}"
    return _STEEP_LOAD.judged(powers[0] >= _STEEP, f"{ours} (holds from {_STEEP:g} for list-based)")


_QUICKER = Claim(
    "List-based counting is quicker than bit-wise at every size",
    "table 1, ms: 0.3 / 0.10 at 1,000 … 40.4 / 8.10 at 100,000 … 562.4 / 190.7 at 1,000,000; 1.5 to 7.0 times",
    "A list has only those subscriptions that need the predicate.",
    "About 160 of 400 predicates hold for an event of w4, so that lists add up a large share of all pairs, one by one "
    "and all over the counters, while rows of bits are added many at a time. The Pentium III had no such instructions "
    "worth the name.",
)
_NARROWS = Claim(
    "The lead of lists narrows as subscriptions become many",
    "table 1: 7.0 times at 5,000, 2.9 at 1,000,000, 1.5 at 5,000,000",
    "The counters outgrow the caches, and lists go to them in no order.",
    "Each list is in the order of subscriptions here, so that the counters are passed from one end to the other.",
)
_LOADS = Claim(
    "Bit-wise structures load quicker than lists",
    "table 2, ms: 523 / 862 at 100,000, 5,428 / 97,746 at 1,000,000",
    "A bit is set; an entry of a list may need a longer list first.",
    "Lists grow by a share of their length and not by a fixed amount, and all that comes at once is one pass.",
)
_STEEP_LOAD = Claim(
    "Loading lists takes more than proportionally longer, loading bits does not",
    "table 2: ten times the subscriptions from 100,000 on take 113 times as long with lists, 10 times with bits",
    "Lists that grow by a fixed amount are copied again and again.",
    "The paper's lists grow by a fixed amount and are copied each time. Here they grow by a share of their length.",
)
_DELETES = Claim(
    "Deleting from bits is cheaper than deleting from lists",
    "no figure is given; section 3.3 says that a column of bits is set to zero, and lists need another structure",
    "A list is searched for the subscription, bits are where they are.",
    "What every change costs, whatever the layout, outweighs the difference; or clearing a bit in a row for each "
    "predicate misses the caches as often as a list does.",
)
_INSERTS = Claim(
    "Adding to bits is cheaper than adding to lists",
    "no figure is given; section 3.3 calls both simple",
    "A bit is set where it is; a list may have to move.",
    "Appending to a list is as simple as setting a bit; a matrix has to be made wider now and then.",
)

EXPERIMENT = Experiment(
    name="topss-tables",
    title="Bit-wise and list-based counting on the table of predicates",
    paper=f"{TOPSS}, tables 1 and 2 without the DBMS, and the time of updates",
    scales={
        "smoke": {"sizes": [1_000, 5_000], "events": 8, "changes": 20},
        "laptop": {"sizes": [each for each in _PAPER if each <= 1_000_000], "events": 64, "changes": 200},
        "full": {"sizes": list(_PAPER), "events": 64, "changes": 1_000},
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "Time of an event on the table index", facet=None),
        Plot("loading", "Bulk loading", y="fill_seconds", y_title="seconds", facet=None),
        Plot("insert", "Adding one subscription", y="insert_us", y_title="µs", facet=None),
        Plot("delete", "Removing one subscription", y="delete_us", y_title="µs", facet=None),
    ),
)
