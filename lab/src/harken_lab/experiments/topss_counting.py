"""ToPSS, figures 3 and 4: the association of predicates and subscriptions as bytes, as bits and as lists."""

from __future__ import annotations

from collections.abc import Iterator

from harken.limits import Limits
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import UNMEASURED, Claim, Finding, about, less, pairs
from harken_lab.experiments.margins import THIRD
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.harness.charts import shown
from harken_lab.harness.contestants import Contestant

BYTES, BITS, LISTS = "counting_bytes", "counting_bits", "counting_lists"
_WHOLE = 5_000_000
"""The most subscriptions of the paper."""
_LIMITS = Limits(max_matrix_bytes=1 << 32)
"""Room for the byte matrix of all subscriptions of the paper, so that no limit of ours ends its curve."""
_BY_COLUMN = "counting_bits, by column"
"""Bits as the paper has them: a deletion reads the predicates of a subscription in the matrix, and needs no rows."""
_NEEDED = "index_and_rows_bytes"
_CONTESTANTS = (
    *map(Contestant.of, (BYTES, BITS)),
    Contestant.of(BITS, _BY_COLUMN, deletion="matrix"),
    *map(Contestant.of, (LISTS, "columnar")),
)


def measure(run: Run) -> Iterator[Row]:
    for size in run["sizes"]:
        yield from map(_with_rows, run.compare(run.draw("w4", size), _CONTESTANTS, _LIMITS))


def _with_rows(row: Row) -> Row:
    """Add the memory with what deletion needs: the rows, from which it learns the predicates of a subscription."""
    if "memory" in row:
        rows = 0 if row["entrant"] == _BY_COLUMN else row["memory"].get("rows", 0)
        row[_NEEDED] = row["index_bytes"] + rows
    return row


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    on_w4 = rows.where(workload="w4")
    yield less(_LISTS_FIRST, on_w4, LISTS, BITS)
    yield less(_BITS_SECOND, on_w4, BITS, BYTES)
    yield about(_FACTOR, on_w4, BITS, BYTES, THIRD)
    yield _stopped(on_w4)
    yield less(_LISTS_SMALLEST, on_w4, LISTS, BITS, "index_bytes")
    yield _with_deletion(on_w4)


def _stopped(rows: WorkloadRows) -> Finding:
    """Whether the byte matrix runs over the paper's whole data set. A limit of ours is no lack of memory."""
    points = rows.points("us_per_event", entrant=BYTES)
    size = max(points, default=0)
    if size >= _WHOLE:
        return _STOPS.judged(False, f"{shown(points[size])} µs an event at {size:,} subscriptions")
    ours = f"it runs at {size:,} subscriptions" if size else UNMEASURED
    return _STOPS.unmeasured(f"The paper's data set has {_WHOLE:,} subscriptions of w4, more than this scale.", ours)


def _with_deletion(rows: WorkloadRows) -> Finding:
    """Whether bits need less memory than lists, each with what its deletion needs: lists need the rows."""
    finding = less(_WITH_DELETION, rows, _BY_COLUMN, LISTS, _NEEDED)
    if finding.is_measured:
        return finding
    compared = pairs(rows, BITS, LISTS, _NEEDED)
    why = "The paper's bits need no rows: a column of the matrix is read and set to zero. Here both have rows."
    return _WITH_DELETION.unmeasured(why, f"both with rows: {compared[-1].text}" if compared else UNMEASURED)


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
    otherwise="It has a byte for every pair of one of 400 predicates and a subscription: 2 GB, which fit today.",
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
        "smoke": {"sizes": [500, 3_000], "events": 8},
        "laptop": {"sizes": _SIZES, "events": 64},
        "full": {"sizes": [*_SIZES, _WHOLE], "events": 64},
    },
    measure=measure,
    judge=judge,
    seeds=3,
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
            y=_NEEDED,
            y_title="bytes",
            where={"workload": "w4"},
            facet=None,
        ),
    ),
)
