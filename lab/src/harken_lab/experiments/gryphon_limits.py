"""Gryphon's tree where the theory has no bound: successor sets computed ahead, and range tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harken_lab.experiments.definition import GRYPHON, Experiment
from harken_lab.experiments.figure_rows import SIZE, TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, missing
from harken_lab.experiments.gryphon_tree import VISITED, decline_for
from harken_lab.experiments.margins import SLACK, SUBLINEAR
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import everywhere, growth_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

PLAIN, WHEN_NEEDED, AHEAD = "plain tree", "successors when needed", "successors ahead"
_TREES = (
    Contestant.of("matching_tree", PLAIN, collapse=False, successors=False),
    Contestant.of("matching_tree", WHEN_NEEDED),
    Contestant.of("matching_tree", AHEAD, successors="ahead"),
)
_CONTESTANTS = (*_TREES, Contestant.of("columnar"))
RANDOM, RANGES = "equalities", "ranges"


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        decline = decline_for(size, run["matches"])
        for tests, share in ((RANDOM, 0.0), (RANGES, run["ranges"])):
            workload = run.draw("gryphon", size, decline=decline, ranges=share)
            yield from _spaced(run.compare(workload, _CONTESTANTS, tests=tests))


def _spaced(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows with the paper's measure of space: edges, and the sizes of successor sets."""
    for row in rows:
        details = row.get("details", {})
        space = {name: details[name] for name in ("edges", "successors", "space") if name in details}
        filling = {"fill_us": round(row["fill_seconds"] / row[SIZE] * 1e6, 3)} if "fill_seconds" in row else {}
        yield row | space | filling


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _grows(_AHEAD, rows.where(tests=RANDOM), "fill_seconds", (AHEAD,), 1 + SLACK)
    yield _grows(_SPACE, rows.where(tests=RANDOM), "space", (AHEAD,), 1 + SLACK)
    yield _grows(_RANGES, rows.where(tests=RANGES), VISITED, (PLAIN, WHEN_NEEDED), SUBLINEAR)


def _grows(claim: Claim, rows: WorkloadRows, field: str, names: Sequence[str], most: float) -> Finding:
    """Whether a figure of contestants grows as a power of the size that is no more than this."""
    powers = [growth_of(spreads(rows, field, entrant=name)) for name in names]
    known = [power for power in powers if power is not None]
    if len(known) < len(names):
        return claim.unmeasured(missing(rows, *names))
    last = max(rows.each(SIZE))
    figures = ", ".join(
        f"{name} as size^{power}, {shown(rows.points(field, entrant=name)[last])} at {last:,}"
        for name, power in zip(names, known, strict=True)
    )
    verdict = everywhere([within(each, most=most) for each in known])
    return claim.judged(verdict, f"{figures} (holds up to {most:g})")


_AHEAD = Claim(
    "Pre-processing with all successor sets computed is linear in the number of subscriptions",
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
_RANGES = Claim(
    "With ranges an event visits fewer nodes than in proportion to subscriptions",
    "left to later work: no analysis, and no typical ranges",
    "There are few different ranges over five values, and each decides others below it.",
    "A range test admits about half of the values, so that most searches go on in both directions.",
)

EXPERIMENT = Experiment(
    name="gryphon-limits",
    title="The matching tree: successor sets ahead, and ranges",
    paper=f"{GRYPHON}, sections 4 to 6",
    scales={
        "smoke": {"sizes": [300, 1_000], "matches": 10, "ranges": 0.5, "events": 16},
        "laptop": {"sizes": [1_000, 3_000, 10_000, 30_000, 100_000], "matches": 10, "ranges": 0.5, "events": 256},
        "full": {"sizes": [1_000, 10_000, 100_000, 300_000], "matches": 10, "ranges": 0.5, "events": 1_000},
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "The matching tree: time of an event", y=TIME, y_title="µs", facet="tests"),
        Plot("filling", "The matching tree: pre-processing", y="fill_us", y_title="µs a subscription", facet="tests"),
    ),
)
