"""ToPSS, tables 1 and 2 without the DBMS, and the time of updates: counting by bits and by lists on a table index."""

from __future__ import annotations

from collections.abc import Iterator

from harken_lab.experiments.changing import measure_changes
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import UNMEASURED, Claim, Finding, less, less_everywhere, pairs
from harken_lab.experiments.margins import LARGE, LESS, SLIGHT, STEEP
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, joined
from harken_lab.experiments.spreads import FigureSpread, everywhere, growth_of, spreads, within
from harken_lab.harness.contestants import Contestant

BITS, LISTS = "bit-wise", "list-based"
OLD_BITS, OLD_LISTS = "bit-wise, as published", "list-based, as published"
"""As the paper has them: a vector of bits between the stages, bits deleted by column, lists that grow by a constant."""
_CONTESTANTS = (
    Contestant.of("counting_bits", BITS, index="table"),
    Contestant.of("counting_lists", LISTS, index="table"),
    Contestant.of("counting_bits", OLD_BITS, index="table", vector="bits", deletion="matrix"),
    Contestant.of("counting_lists", OLD_LISTS, index="table", vector="bits", growth="constant"),
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
_OTHER_GROWTH = (
    "The paper's lists grow by a fixed amount and are copied each time; these grow by a share of their length."
)


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        workload = run.draw("w4", size)
        changes = {row["entrant"]: row for row in measure_changes(run, workload, _CONTESTANTS)}
        for row in run.compare(workload, _CONTESTANTS):
            yield joined(changes[row["entrant"]], row) | _of_paper(row)


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
    yield _loads(rows)
    yield _steep(rows)
    yield _changes(_DELETES, rows, "delete_us")
    yield _changes(_INSERTS, rows, "insert_us")


def _narrows(rows: WorkloadRows) -> Finding:
    """Whether the lead of lists is smaller at the largest size than at 5,000, where it is largest in the paper."""
    compared = [each for each in pairs(rows, LISTS, BITS) if each.place >= 5_000]
    if len(compared) < 2:
        return _NARROWS.unmeasured("it takes two sizes from 5,000 on")
    first, last = compared[0], compared[-1]
    ours = f"{first.ratio} times at {first.place:,}, {last.ratio} times at {last.place:,}"
    rule = f"(holds if the first is {LESS:g} times the second)"
    return _NARROWS.judged(within(first.ratio / last.ratio, LESS), f"{ours} {rule}")


def _loads(rows: WorkloadRows) -> Finding:
    finding = less(_LOADS, rows, OLD_BITS, OLD_LISTS, "fill_seconds")
    if finding.is_measured:
        return finding
    compared = pairs(rows, BITS, LISTS, "fill_seconds")
    return _LOADS.unmeasured(_OTHER_GROWTH, f"ours: {compared[-1].text}" if compared else UNMEASURED)


def _steep(rows: WorkloadRows) -> Finding:
    """Whether loading lists that grow by a constant takes more than proportionally longer."""
    for lists, bits in ((OLD_LISTS, OLD_BITS), (LISTS, BITS)):
        power, beside = (growth_of(_loading(rows, name)) for name in (lists, bits))
        if power is None or beside is None:
            continue
        ours = f"{lists} grows as size^{power}, {bits} as size^{beside}"
        if lists == LISTS:
            return _STEEP_LOAD.unmeasured(_OTHER_GROWTH, f"ours: {ours}")
        rule = f"(holds from {STEEP:g} for lists, and below it for bits)"
        return _STEEP_LOAD.judged(everywhere([within(power, STEEP), within(beside, most=STEEP)]), f"{ours} {rule}")
    return _STEEP_LOAD.unmeasured(f"it takes two sizes from {LARGE:,} on")


def _loading(rows: WorkloadRows, name: str) -> dict[float, FigureSpread]:
    return {size: each for size, each in spreads(rows, "fill_seconds", entrant=name).items() if size >= LARGE}


def _changes(claim: Claim, rows: WorkloadRows, field: str) -> Finding:
    """Whether the time of changing bits hardly grows with the number of subscriptions."""
    for name, lists in ((OLD_BITS, OLD_LISTS), (BITS, LISTS)):
        points, beside = (spreads(rows, field, entrant=each) for each in (name, lists))
        power = growth_of(points)
        if power is None:
            continue
        first, last = min(points), max(points)
        times = f"{name} {points[first]} µs at {first:,}, {points[last]} µs at {last:,}: as size^{power}"
        ours = times + (f"; {lists} {beside[last]} µs there" if last in beside else "")
        if name == BITS:
            return claim.unmeasured("These bits are not changed by column, as the paper's are.", f"ours: {ours}")
        return claim.judged(within(power, most=SLIGHT), f"{ours} (holds up to {SLIGHT:g})")
    return claim.unmeasured("it takes two sizes")


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
    "Copying lists that grow costs no more than making the matrix wider.",
)
_STEEP_LOAD = Claim(
    "Loading lists takes more than proportionally longer, loading bits does not",
    "table 2: ten times the subscriptions from 100,000 on take 113 times as long with lists, 10 times with bits",
    "Lists that grow by a fixed amount are copied again and again.",
    "The lists are few and short beside what else is done to load a subscription.",
)
_DELETES = Claim(
    "Deleting from bits is very efficient, however many subscriptions there are",
    "section 3.3, without a figure: a column of bits is set to zero",
    "A deletion clears a bit in the row of each predicate of the subscription, and touches nothing else.",
    "The rows become longer than the caches.",
)
_INSERTS = Claim(
    "The same holds for adding to bits",
    "section 3.3, without a figure",
    "A bit is set in the row of each predicate; now and then the matrix has to be made wider.",
    "Making the matrix wider copies it.",
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
    seeds=3,
    plots=(
        Plot("time", "Time of an event on the table index", facet=None),
        Plot("loading", "Bulk loading", y="fill_seconds", y_title="seconds", facet=None),
        Plot("insert", "Adding one subscription", y="insert_us", y_title="µs", facet=None),
        Plot("delete", "Removing one subscription", y="delete_us", y_title="µs", facet=None),
    ),
)
