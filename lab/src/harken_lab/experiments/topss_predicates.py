"""ToPSS, figure 2: finding the predicates that hold, by tables and by ordered lists, for domains of several sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from harken.matchers.roles import CountsPredicates
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import UNMEASURED, Claim, Finding
from harken_lab.experiments.margins import HARDLY, LESS
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, described, row_of, timed
from harken_lab.experiments.spreads import FigureSpread, everywhere, spreads, within
from harken_lab.harness.contestants import Contestant, FilledMatcher
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import interleaved
from harken_lab.harness.verified_answers import title
from harken_lab.workloads.workload import Workload

TABLE, LINKED, LISTS, WHOLE = "table", "linked lists", "lists", "columnar, whole match"
"""The paper's lists are linked. `lists` are those of Harken: sorted arrays."""
_CONTESTANTS = (
    Contestant.of("counting_lists", TABLE, index="table"),
    Contestant.of("counting_lists", LINKED, index="linked"),
    Contestant.of("counting_lists", LISTS, index="lists"),
    Contestant.of("columnar", WHOLE),
)
_SMALL, _BIG, _MIXED = "w0", "w2", "w3"
_COMPARABLE = 0.8
"""Domains are compared at sizes at which the small one has at least this share of the large one's distinct predicates,
since a domain has at most values times operators of them.
"""
_OTHER_LISTS = (
    "The paper's lists are linked and searched from their heads, sorted arrays are searched by halves. Figures of one "
    "say nothing of the other."
)


def measure(run: Run) -> Iterator[Row]:
    for name in run["workloads"]:
        for size in run["sizes"]:
            yield from _measured(run, run.draw(name, size, **run["workload"]))


def _measured(run: Run, workload: Workload) -> Iterator[Row]:
    filled, rejected = run.fill_all(workload, _CONTESTANTS)
    _verify(workload, filled)
    run.tell(f"{title(workload)}: timing")
    indexes = {name: each for name, each in filled.items() if isinstance(each.matcher, CountsPredicates)}
    runs = {name: partial(_satisfied, each) if name in indexes else each.find for name, each in filled.items()}
    timings = interleaved(runs, run.pace.rounds)
    for contestant in _CONTESTANTS:
        row = row_of(contestant, workload) | {"predicates": different_predicates(workload)}
        if contestant.name in rejected:
            yield row | rejected[contestant.name]
            continue
        each = filled[contestant.name]
        row |= timed(timings[contestant.name].microseconds(each.events)) | described(each)
        if contestant.name in indexes:
            row["satisfied_per_event"] = _satisfied(each) / each.events
            parts = {name: size for name, size in each.memory().items() if name.startswith("predicate")}
            row["predicate_bytes"] = sum(parts.values())
        yield row


def _satisfied(filled: FilledMatcher) -> int:
    """The number of predicates that hold, over all events. Finding them is the first of two stages."""
    return int(filled.matcher.satisfied(filled.encoded))


def _verify(workload: Workload, filled: dict[str, FilledMatcher]) -> None:
    """Raise WrongAnswerError unless all indexes find the same number of predicates."""
    indexes = [each for each in filled.values() if isinstance(each.matcher, CountsPredicates)]
    shared = workload.events.slice(0, min((each.events for each in indexes), default=0))
    if len({_satisfied(each.on(shared)) for each in indexes}) > 1:
        raise WrongAnswerError(f"{title(workload)}: tables and lists find different numbers of predicates that hold")


def different_predicates(workload: Workload) -> int:
    """The number of distinct predicates of a workload."""
    return sum(len(np.unique(each.operators * np.int64(2**31) + each.operands)) for each in workload.conditions)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    size = _comparable_size(rows)
    yield _grows(_TABLE_TIME, rows, TIME, size)
    yield _apart(_LISTS_TIME, rows, TIME, size)
    yield _crossing(_CROSSING_TIME, rows, TIME)
    yield _grows(_TABLE_MEMORY, rows, "predicate_bytes", size)
    yield _apart(_LISTS_MEMORY, rows, "predicate_bytes", size)
    yield _crossing(_CROSSING_MEMORY, rows, "predicate_bytes")


def _comparable_size(rows: WorkloadRows) -> int | None:
    small, big = (rows.points("predicates", workload=name, entrant=LISTS) for name in (_SMALL, _BIG))
    fitting = [size for size in small if size in big and small[size] >= _COMPARABLE * big[size]]
    return max(fitting, default=None)


def _by_domain(rows: WorkloadRows, contestant: str, field: str, size: int | None) -> list[FigureSpread]:
    """The figures of a contestant on w0, w1 and w2, ascending by domain; none if one is missing."""
    figures = [spreads(rows, field, workload=name, entrant=contestant).get(size) for name in (_SMALL, "w1", _BIG)]
    return [each for each in figures if each is not None] if None not in figures else []


def _told(contestant: str, figures: Sequence[FigureSpread], field: str, size: int | None) -> str:
    values = ", ".join(f"{name} {each}" for name, each in zip((_SMALL, "w1", _BIG), figures, strict=True))
    return f"{contestant}: {values} {'µs' if field == TIME else 'bytes'} at {size:,} subscriptions"


def _grows(claim: Claim, rows: WorkloadRows, field: str, size: int | None) -> Finding:
    """Whether a figure of the table grows with the domain."""
    figures = _by_domain(rows, TABLE, field, size)
    if not figures:
        return claim.unmeasured(f"{TABLE} was not measured on all of w0, w1 and w2")
    verdict = everywhere([within(larger / smaller, LESS) for smaller, larger in pairwise(figures)])
    return claim.judged(verdict, f"{_told(TABLE, figures, field, size)} (holds if each is {LESS:g} times the last)")


def _apart(claim: Claim, rows: WorkloadRows, field: str, size: int | None) -> Finding:
    """Whether a figure of linked lists is alike on all domains. Sorted arrays are no such lists."""
    figures, arrays = (_by_domain(rows, name, field, size) for name in (LINKED, LISTS))
    if not figures:
        return claim.unmeasured(
            _OTHER_LISTS, f"sorted arrays, {_told(LISTS, arrays, field, size)}" if arrays else UNMEASURED
        )
    low, high = (pick(figures, key=lambda each: each.middle) for pick in (min, max))
    ours = f"{_told(LINKED, figures, field, size)}: {high / low} times apart (holds up to {HARDLY:g})"
    return claim.judged(within(high / low, most=HARDLY), ours)


def _crossing(claim: Claim, rows: WorkloadRows, field: str) -> Finding:
    """Whether linked lists are ahead with the fewest predicates, and the table with the most."""
    for name in (LINKED, LISTS):
        sizes = rows.shared(field, (TABLE, name), workload=_MIXED)
        if len(sizes) < 2:
            continue
        table, lists = (spreads(rows, field, workload=_MIXED, entrant=each) for each in (TABLE, name))
        few, many = (lists[size] / table[size] for size in (sizes[0], sizes[-1]))
        ours = f"{name} by table on w3: {few} at {sizes[0]:,} subscriptions, {many} at {sizes[-1]:,}"
        if name == LISTS:
            return claim.unmeasured(_OTHER_LISTS, f"sorted arrays, {ours}")
        rule = f"(holds if the first is up to {1 / LESS:.2f}, the second from {LESS:g})"
        return claim.judged(everywhere([within(few, most=1 / LESS), within(many, LESS)]), f"{ours} {rule}")
    return claim.unmeasured("table and lists were not measured at several sizes of w3")


_TABLE_TIME = Claim(
    "With tables, the time grows with the size of the domain",
    "figure 2 (1)",
    "A table is walked slot by slot, also where a slot holds nothing: the more values, the more slots.",
    "The slots that hold something cost more than those that are passed over, which are read a cache line at a time.",
)
_LISTS_TIME = Claim(
    "With lists, the time hardly depends on the size of the domain",
    "figure 2 (2)",
    "Only predicates that are there are walked, however many values the domain has.",
    "As many predicates hold, but those of large domains lie further apart in memory.",
)
_CROSSING_TIME = Claim(
    "On mixed domains lists are quicker with few predicates, tables with many",
    "figure 2 (3)",
    "With few predicates a table has mostly empty slots; with many it saves walking the lists.",
    "Walking from entry to entry, or from slot to slot, costs more at one end than the other saves.",
)
_TABLE_MEMORY = Claim(
    "With tables, memory grows with the size of the domain",
    "figure 2 (4)",
    "A table has a slot for every value and operator, whether there is a predicate or not.",
    "What tables have in common with lists outweighs their slots.",
)
_LISTS_MEMORY = Claim(
    "With lists, memory depends on the number of predicates alone",
    "figure 2 (5)",
    "A list has an entry for every predicate, and none for values without a predicate.",
    "The different predicates are not quite as many in small domains, and arrays grow in steps.",
)
_CROSSING_MEMORY = Claim(
    "On mixed domains lists need less memory with few predicates, tables with many",
    "figure 2 (6)",
    "A slot is smaller than an entry of a list, but there is one for every value.",
    "There are never more entries than slots here, and an entry is two numbers in arrays.",
)

EXPERIMENT = Experiment(
    name="topss-predicates",
    title="Predicate matching by tables and by lists",
    paper=f"{TOPSS}, figure 2",
    scales={
        "smoke": {
            "workloads": ["w0", "w1", "w2", "w3"],
            "workload": {"attributes": 12, "carried": 12, "predicates": [1, 6]},
            "sizes": [50, 400],
            "events": 8,
        },
        "laptop": {
            "workloads": ["w0", "w1", "w2", "w3"],
            "workload": {},
            "sizes": [100, 1_000, 10_000, 100_000],
            "events": 100,
        },
        "full": {
            "workloads": ["w0", "w1", "w2", "w3"],
            "workload": {},
            "sizes": [100, 1_000, 10_000, 100_000, 500_000],
            "events": 1_000,
        },
    },
    measure=measure,
    judge=judge,
    seeds=3,
    plots=(
        Plot("time", "Time to find the predicates that hold", x="predicates", x_title="different predicates"),
        Plot(
            "memory",
            "Memory of the predicate index",
            x="predicates",
            y="predicate_bytes",
            x_title="different predicates",
            y_title="bytes",
        ),
    ),
)
