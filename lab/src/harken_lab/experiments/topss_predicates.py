"""ToPSS, figure 2: finding the predicates that hold, by tables and by ordered lists, for domains of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from harken.matchers.roles import CountsPredicates
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import MARGIN, Claim, Finding
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, described, row_of, timed
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant, FilledMatcher
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import interleaved
from harken_lab.harness.verified_answers import title
from harken_lab.workloads.workload import Workload

TABLE, LISTS, WHOLE = "table", "lists", "columnar, whole match"
_CONTESTANTS = (
    Contestant.of("counting_lists", TABLE, index="table"),
    Contestant.of("counting_lists", LISTS, index="lists"),
    Contestant.of("columnar", WHOLE),
)
_SMALL, _BIG, _MIXED = "w0", "w2", "w3"
_COMPARABLE = 0.8
"""Domains are compared at sizes at which the small one has at least this share of the large one's distinct predicates,
since a domain has at most values times operators of them.
"""
_NEARLY = 1.5


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
    """Raise WrongAnswerError unless both indexes find the same number of predicates."""
    indexes = [each for each in filled.values() if isinstance(each.matcher, CountsPredicates)]
    shared = workload.events.slice(0, min((each.events for each in indexes), default=0))
    if len({_satisfied(each.on(shared)) for each in indexes}) > 1:
        raise WrongAnswerError(f"{title(workload)}: table and lists find different numbers of predicates that hold")


def different_predicates(workload: Workload) -> int:
    """The number of distinct predicates of a workload."""
    return sum(len(np.unique(each.operators * np.int64(2**31) + each.operands)) for each in workload.conditions)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    size = _comparable_size(rows)
    yield _by_domain(_TABLE_TIME, rows, TABLE, TIME, size, grows=True)
    yield _by_domain(_LISTS_TIME, rows, LISTS, TIME, size, grows=False)
    yield _crossing(_CROSSING_TIME, rows, TIME)
    yield _by_domain(_TABLE_MEMORY, rows, TABLE, "predicate_bytes", size, grows=True)
    yield _by_domain(_LISTS_MEMORY, rows, LISTS, "predicate_bytes", size, grows=False)
    yield _crossing(_CROSSING_MEMORY, rows, "predicate_bytes")


def _comparable_size(rows: WorkloadRows) -> int | None:
    small, big = (rows.points("predicates", workload=name, entrant=LISTS) for name in (_SMALL, _BIG))
    fitting = [size for size in small if size in big and small[size] >= _COMPARABLE * big[size]]
    return max(fitting, default=None)


def _by_domain(claim: Claim, rows: WorkloadRows, contestant: str, field: str, size: int | None, grows: bool) -> Finding:
    values = [rows.value(field, workload=name, entrant=contestant, subscriptions=size) for name in (_SMALL, "w1", _BIG)]
    if size is None or any(value is None for value in values):
        return claim.unmeasured(f"{contestant} was not measured on all of w0, w1 and w2")
    small, medium, big = (float(value or 0) for value in values)
    unit = "µs" if field == TIME else "bytes"
    figures = f"{contestant}: w0 {shown(small)}, w1 {shown(medium)}, w2 {shown(big)} {unit} at {size:,} subscriptions"
    if grows:
        return claim.judged(
            big >= MARGIN * medium and medium >= MARGIN * small,
            f"{figures} (holds if each is {MARGIN:g} times the last)",
        )
    spread = max(small, medium, big) / max(min(small, medium, big), 1e-9)
    return claim.judged(spread <= _NEARLY, f"{figures}: {spread:.2f} times apart (holds up to {_NEARLY:g})")


def _crossing(claim: Claim, rows: WorkloadRows, field: str) -> Finding:
    """Whether lists are ahead with the fewest predicates, and the table with the most."""
    sizes = rows.shared(field, (TABLE, LISTS), workload=_MIXED)
    if len(sizes) < 2:
        return claim.unmeasured("table and lists were not measured at several sizes of w3")
    ratios = []
    for size in (sizes[0], sizes[-1]):
        table, lists = (
            rows.value(field, workload=_MIXED, entrant=name, subscriptions=size) or 1e-9 for name in (TABLE, LISTS)
        )
        ratios.append(lists / table)
    quotients = (
        f"lists by table on w3: {shown(ratios[0])} at {sizes[0]:,} subscriptions, {shown(ratios[1])} at {sizes[-1]:,}"
    )
    return claim.judged(
        ratios[0] <= 1 / MARGIN and ratios[1] >= MARGIN,
        f"{quotients} (holds if the first is up to {1 / MARGIN:.2f}, the second from {MARGIN:g})",
    )


_TABLE_TIME = Claim(
    "With tables, the time grows with the size of the domain",
    "figure 2 (1)",
    "A table is walked slot by slot, also where a slot holds nothing: the more values, the more slots.",
    "The slots that hold something cost more than those that are passed over, which are read a cache line at a time.",
)
_LISTS_TIME = Claim(
    "With lists, the time hardly depends on the size of the domain",
    "figure 2 (2)",
    "Only predicates that are there are walked, and a binary search finds where to begin.",
    "As many predicates hold, but those of large domains lie further apart in memory.",
)
_CROSSING_TIME = Claim(
    "On mixed domains lists are quicker with few predicates, tables with many",
    "figure 2 (3)",
    "With few predicates a table has mostly empty slots; with many it saves the search.",
    "The paper's lists are linked and searched from their heads. Here they are arrays that are searched by halves, so "
    "that finding the place costs as little as a look-up in the table, and walking costs the same or less.",
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
    "The paper's lists have a node and a pointer for every predicate. Here an entry is a number in an array, as a "
    "slot is, and there are never more entries than slots.",
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
