"""Gryphon's tree where the theory has no bound, or a worse one: pre-processing, ranges, and the worst subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from harken_lab.experiments.definition import GRYPHON, Experiment
from harken_lab.experiments.figure_rows import SIZE, TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, exponent, missing
from harken_lab.experiments.gryphon_tree import VISITED, decline_for
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant
from harken_lab.workloads.conditions import EQUAL, on_integers
from harken_lab.workloads.workload import Workload

PLAIN, WHEN_NEEDED, AHEAD = "plain tree", "successors when needed", "successors ahead"
_TREES = (
    Contestant.of("matching_tree", PLAIN, collapse=False, successors=False),
    Contestant.of("matching_tree", WHEN_NEEDED),
    Contestant.of("matching_tree", AHEAD, successors="ahead"),
)
_CONTESTANTS = (*_TREES, Contestant.of("columnar"))
RANDOM, RANGES, WORST = "equalities", "ranges", "worst"
_SLACK = 0.15
"""The tolerance of a fitted exponent: of noise in times, and of paths that grow with the size."""


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        decline = decline_for(size, run["matches"])
        for tests, share in ((RANDOM, 0.0), (RANGES, run["ranges"])):
            workload = run.draw("gryphon", size, decline=decline, ranges=share)
            yield from _spaced(run.compare(workload, _CONTESTANTS, tests=tests))
    for levels in run["levels"]:
        yield from _spaced(run.compare(worst_case(levels), _CONTESTANTS, tests=WORST))


def worst_case(levels: int) -> Workload:
    """All subscriptions that test each attribute for the value 1 or not at all, and events that match them all.

    All test the last attribute, because an empty subscription is none.
    """
    chosen = np.array(list(product((False, True), repeat=levels)))
    chosen = np.column_stack([chosen, np.ones(len(chosen), np.bool_)])
    rows = [np.flatnonzero(chosen[:, each]).astype(np.int32) for each in range(levels + 1)]
    conditions = [
        on_integers(f"a{number + 1}", each, np.full(len(each), EQUAL, np.uint8), np.zeros(len(each), np.int32), 1)
        for number, each in enumerate(rows)
    ]
    events = pa.table({f"a{number + 1}": np.ones(4, np.int64) for number in range(levels + 1)})
    return Workload("gryphon", "the worst case of a matching tree", {}, 0, len(chosen), conditions, events)


def _spaced(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows with the paper's measure of space: edges, and the sizes of successor sets."""
    for row in rows:
        details = row.get("details", {})
        space = {name: details[name] for name in ("edges", "successors", "space") if name in details}
        filling = {"fill_us": round(row["fill_seconds"] / row[SIZE] * 1e6, 3)} if "fill_seconds" in row else {}
        yield row | space | filling


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _as_power(_PREPARING, rows.where(tests=RANDOM), "fill_seconds", (PLAIN, WHEN_NEEDED), 1 + _SLACK)
    yield _as_power(_AHEAD, rows.where(tests=RANDOM), "fill_seconds", (AHEAD,), 1 + _SLACK)
    yield _as_power(_SPACE, rows.where(tests=RANDOM), "space", (AHEAD,), 1 + _SLACK)
    yield _as_power(_WORST, rows.where(tests=WORST), VISITED, (PLAIN,), 1 + _SLACK, least=1 - _SLACK)
    yield _as_power(_RANGES, rows.where(tests=RANGES), VISITED, (PLAIN, WHEN_NEEDED), 1 - _SLACK)


def _as_power(
    claim: Claim, rows: WorkloadRows, field: str, names: Sequence[str], most: float, least: float = 0.0
) -> Finding:
    """Whether a figure of contestants grows as a power of the size within these limits."""
    powers = [exponent(rows.points(field, entrant=name)) for name in names]
    known = [power for power in powers if power is not None]
    if len(known) < len(names):
        return claim.unmeasured(missing(rows, *names))
    last = max(rows.each(SIZE))
    figures = ", ".join(
        f"{name} as size^{power:.2f}, {shown(rows.points(field, entrant=name)[last])} at {last:,}"
        for name, power in zip(names, known, strict=True)
    )
    limits = f"from {least:g} to {most:g}" if least else f"up to {most:g}"
    return claim.judged(least <= min(known) and max(known) <= most, f"{figures} (holds {limits})")


_PREPARING = Claim(
    "Pre-processing time is linear in the number of subscriptions",
    "section 4: proportional to the number of attributes, for each subscription",
    "A subscription walks down once, past each attribute at most.",
    "Longer paths and misses of the caches make later subscriptions dearer.",
)
_AHEAD = Claim(
    "So it is with all successor sets computed",
    "section 5 gives no bound",
    "A set is found from that of the node above, and few are long.",
    "Sets grow with what hangs at the *-edges beside a path.",
)
_SPACE = Claim(
    "Edges and successor sets together are linear in the number of subscriptions",
    "section 6: space is the number of edges and the sizes of successor sets; the figure is lost",
    "Most sets have few successors, because tests on a path decide most of what could follow.",
    "Sets grow with what hangs at the *-edges beside a path.",
)
_WORST = Claim(
    "In the worst case the time is linear",
    "section 4: an event with the value of every edge visits the whole tree",
    "Each subscription is a match, and each node is above one.",
    "Subscriptions share nodes, so that there are fewer nodes than subscriptions.",
)
_RANGES = Claim(
    "With ranges an event visits fewer nodes than in proportion to subscriptions",
    "left to later work: no analysis, and no typical ranges",
    "There are few different ranges over five values, and each decides others below it.",
    "A range test admits about half of the values, so that most searches go on in both directions.",
)

EXPERIMENT = Experiment(
    name="gryphon-limits",
    title="The matching tree: pre-processing, ranges and the worst case",
    paper=f"{GRYPHON}, sections 4 to 6",
    scales={
        "smoke": {"sizes": [300, 1_000], "levels": [5, 7], "matches": 10, "ranges": 0.5, "events": 16},
        "laptop": {
            **{"sizes": [1_000, 3_000, 10_000, 30_000, 100_000], "levels": [8, 10, 12, 14, 16]},
            **{"matches": 10, "ranges": 0.5, "events": 256},
        },
        "full": {
            **{"sizes": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000], "levels": [8, 10, 12, 14, 16, 18]},
            **{"matches": 10, "ranges": 0.5, "events": 1_000},
        },
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "The matching tree: time of an event", y=TIME, y_title="µs", facet="tests"),
        Plot("filling", "The matching tree: pre-processing", y="fill_us", y_title="µs a subscription", facet="tests"),
    ),
)
