"""ToPSS, figures 3 and 4: the association of predicates and subscriptions as bytes, as bits and as lists."""

from __future__ import annotations

from collections.abc import Iterator

from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, about, less, missing, pairs
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.harness.contestants import Contestant

BYTES, BITS, LISTS = "counting_bytes", "counting_bits", "counting_lists"
_CONTESTANTS = tuple(map(Contestant.of, (BYTES, BITS, LISTS, "columnar")))


def measure(run: Run) -> Iterator[Row]:
    limits = Limits(max_matrix_bytes=run["max_matrix_bytes"])
    for size in run["sizes"]:
        yield from map(_with_rows, run.compare(run.draw("w4", size), _CONTESTANTS, limits))
    beside = run.draw("le-subscribe", run["le_subscribe"])
    yield from map(_with_rows, run.compare(beside, _CONTESTANTS, limits))


def _with_rows(row: Row) -> Row:
    """Add the memory of the rows, which deletion needs: they have the predicates of each subscription."""
    if "memory" in row:
        row["index_and_rows_bytes"] = row["index_bytes"] + row["memory"].get("rows", 0)
    return row


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    on_w4 = rows.where(workload="w4")
    yield less(_LISTS_FIRST, on_w4, LISTS, BITS)
    yield less(_BITS_SECOND, on_w4, BITS, BYTES)
    yield about(_FACTOR, on_w4, BITS, BYTES, 3.0, 1.5)
    yield _stopped(rows)
    yield less(_LISTS_SMALLEST, on_w4, LISTS, BITS, "index_bytes")
    yield _with_deletion(on_w4)


def _stopped(rows: WorkloadRows) -> Finding:
    stops = rows.stops(BYTES)
    if not stops:
        return _STOPS.unmeasured("no size of this scale is beyond the limit")
    first = stops[0]
    return _STOPS.judged(True, f"{first['workload']} with {first['subscriptions']:,}: {first['rejected']}")


def _with_deletion(rows: WorkloadRows) -> Finding:
    """Whether bits need less memory than lists with their rows. To delete from bits, no rows are needed."""
    measured = [
        row | {"needed": row["index_bytes" if row["entrant"] == BITS else "index_and_rows_bytes"]}
        for row in rows
        if "memory" in row
    ]
    compared = pairs(WorkloadRows(measured), BITS, LISTS, "needed")
    if not compared:
        return _WITH_DELETION.unmeasured(missing(rows, BITS, LISTS))
    return _WITH_DELETION.judged(compared[-1].ratio >= 1.1, f"{compared[-1].text} (holds from 1.1)")


_LISTS_FIRST = Claim(
    "Counting by lists is quicker than counting by bits",
    "figure 3",
    "A list has those subscriptions that need the predicate; a row of a matrix has all of them, mostly as zeros.",
    "A row of bits is counted by adding words, 64 and more subscriptions at once and from one end to the other. Lists "
    "add one by one, all over the counters; where as many predicates hold as on w4, that costs more today.",
)
_BITS_SECOND = Claim(
    "Counting by bits is quicker than counting by bytes",
    "figure 3",
    "A row of bits is an eighth of the memory to be read.",
    "Bytes are added as they are, many in one instruction of today's machines, while bits have to be spread first; as "
    "long as the rows that are read fit the caches, reading less gains nothing.",
)
_FACTOR = Claim(
    "By bits takes about a third of the time of by bytes",
    "a factor of about 3 (figure 3)",
    "What is gained is between the eight times less memory and the work to unpack it.",
    "The ratio is that of two pieces of code on one machine: vector instructions shift it.",
)
_STOPS = Claim(
    "The byte matrix cannot be run over the whole data set, for lack of memory",
    "figure 3: the curve ends early",
    "It has a byte for every pair of a predicate and a subscription. Here a limit stops it before memory does.",
    "",
)
_LISTS_SMALLEST = Claim(
    "Without what deletion needs, lists need the least memory",
    "figure 4",
    "They hold what is there, and not what is not.",
    "There are only 400 predicates in w4: a subscription is 50 bytes of bits. Room to grow makes lists larger.",
)
_WITH_DELETION = Claim(
    "With what deletion needs, bits need less memory than lists",
    "figure 4; bits 122 KB for 1,000 subscriptions and 248 MB for 5,000,000",
    "Lists have to find the predicates of a subscription again, which a column of the matrix tells for free.",
    "The predicates of a subscription and its places in lists are less than a column of the matrix.",
)

_SIZES = [1_000, 10_000, 50_000, 100_000, 500_000, 1_000_000]
EXPERIMENT = Experiment(
    name="topss-counting",
    title="The three layouts of counting",
    paper=f"{TOPSS}, figures 3 and 4",
    scales={
        "smoke": {"sizes": [500, 3_000], "le_subscribe": 2_000, "events": 8, "max_matrix_bytes": 1 << 21},
        "laptop": {
            "sizes": _SIZES,
            "le_subscribe": 100_000,
            "events": 64,
            "max_matrix_bytes": DEFAULT_LIMITS.max_matrix_bytes,
        },
        "full": {
            "sizes": [*_SIZES, 5_000_000],
            "le_subscribe": 100_000,
            "events": 64,
            "max_matrix_bytes": DEFAULT_LIMITS.max_matrix_bytes,
        },
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "Counting: time of an event", where={"workload": "w4"}, facet=None),
        Plot(
            "memory",
            "Counting: memory of the index",
            y="index_bytes",
            y_title="bytes",
            where={"workload": "w4"},
            facet=None,
        ),
        Plot(
            "memory_with_rows",
            "Counting: memory with what deletion needs",
            y="index_and_rows_bytes",
            y_title="bytes",
            where={"workload": "w4"},
            facet=None,
        ),
    ),
)
