"""ToPSS as it is published, beside the forms that Harken's laboratory uses: each part of section 3 alone, and together.

Subscriptions come in batches of n_Sb and events in batches of n_Eb, as in the paper; and beside the bytes that are
counted stands the resident memory that the process gained. On w1 nearly every batch brings new constants between
others, so that labels move and the index is built again: sizes are small there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from time import perf_counter

from harken.codes.flat import Flat
from harken_lab.experiments.definition import TOPSS, Experiment
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, less, missing, pairs
from harken_lab.experiments.margins import LESS, RESIDENT
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, row_of, timed
from harken_lab.experiments.spreads import within
from harken_lab.harness.contestants import Contestant, FilledMatcher, never_verified, rows_of
from harken_lab.harness.learning import plan_by
from harken_lab.harness.resident_memory import resident_bytes
from harken_lab.harness.rounds import interleaved
from harken_lab.harness.verified_answers import title, verify
from harken_lab.workloads.workload import Workload

ARRAYS, LINKED, VECTOR, CONSTANT = "lists", "lists, linked index", "lists, bit vector", "lists, constant growth"
PUBLISHED, TABLE, BITS, BY_MATRIX = "lists, all as published", "lists, table", "bits", "bits, deleted by the matrix"
_CONTESTANTS = (
    Contestant.of("counting_lists", ARRAYS),
    Contestant.of("counting_lists", LINKED, index="linked"),
    Contestant.of("counting_lists", VECTOR, vector="bits"),
    Contestant.of("counting_lists", CONSTANT, growth="constant"),
    Contestant.of("counting_lists", PUBLISHED, index="linked", vector="bits", growth="constant"),
    Contestant.of("counting_lists", TABLE, index="table", vector="bits", growth="constant"),
    Contestant.of("counting_bits", BITS),
    Contestant.of("counting_bits", BY_MATRIX, vector="bits", deletion="matrix"),
    Contestant.of("columnar", background=False),
)


def measure(run: Run) -> Iterator[Row]:
    for name in ("w1", "w4"):
        for size in run[f"{name}_sizes"]:
            yield from _measured(run, run.draw(name, size))


def _measured(run: Run, workload: Workload) -> Iterator[Row]:
    rows: dict[str, Row] = {}
    filled: dict[str, FilledMatcher] = {}
    batches = _batches(workload)
    for contestant in _CONTESTANTS:
        run.tell(f"{title(workload)}: loading {contestant.name}")
        _load(contestant, batches[:1])  # compiles
        each, seconds, resident = _load(contestant, batches)
        rows[contestant.name] = row_of(contestant, workload) | {
            "fill_seconds": round(seconds, 5),
            "bytes": sum(each.memory().values()),
            "index_bytes": each.index_bytes(),
            "predicate_bytes": sum(size for part, size in each.memory().items() if part.startswith("predicate")),
            "resident_bytes": resident,
            "delete_us": round(_delete_seconds(contestant, batches, run["deletions"]) * 1e6, 3),
        }
        plan_by(each.matcher, run.sample_of(workload))
        filled[contestant.name] = each.take(workload.events)
    verify(workload, filled, most=run["events"], evaluated=1)
    events = [*workload.event_batches(int(workload.parameters["event_batch"]))]
    runs = {name: partial(_match_all, [each.on(part) for part in events]) for name, each in filled.items()}
    run.tell(f"{title(workload)}: timing")
    for name, timing in interleaved(runs, run.pace.rounds).items():
        yield rows[name] | timed(timing.microseconds(workload.events.num_rows)) | {"events": workload.events.num_rows}


def _batches(workload: Workload) -> list[Flat]:
    """The subscriptions in batches of n_Sb, as rows of arrays."""
    flat, size = rows_of(workload), int(workload.parameters["subscription_batch"])
    return [
        flat.only((flat.numbers >= start) & (flat.numbers < start + size))
        for start in range(0, workload.subscriptions, size)
    ]


def _load(contestant: Contestant, batches: list[Flat]) -> tuple[FilledMatcher, float, int]:
    """A matcher that got these batches, the seconds that it took, and the resident bytes that the process gained."""
    before, matcher = resident_bytes(), contestant.matcher()
    started = perf_counter()
    for batch in batches:
        matcher.add_flat(batch)
    seconds = perf_counter() - started
    return FilledMatcher(matcher, seconds, never_verified), seconds, max(0, resident_bytes() - before)


def _delete_seconds(contestant: Contestant, batches: list[Flat], count: int) -> float:
    """Seconds to remove one subscription, one after the other; the median."""
    filled, _, _ = _load(contestant, batches)
    times = []
    for number in batches[0].numbers[:count].tolist():
        started = perf_counter()
        filled.matcher.remove([number])
        times.append(perf_counter() - started)
    return median(times[1:])


def _match_all(parts: list[FilledMatcher]) -> None:
    for each in parts:
        each.find()


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    w4 = rows.where(workload="w4")
    yield less(_ARRAYS, rows.where(workload="w1"), ARRAYS, LINKED)
    yield less(_NUMBERS, w4, ARRAYS, VECTOR)
    yield less(_GROWTH, w4, ARRAYS, CONSTANT, "fill_seconds")
    yield _loads(w4)
    yield less(_DELETION, w4, BITS, BY_MATRIX, "delete_us")
    yield _resident(w4)


def _loads(rows: WorkloadRows) -> Finding:
    """Whether the bit matrix is loaded more quickly than lists at the largest size, as in table 2."""
    compared = pairs(rows, BITS, PUBLISHED, "fill_seconds")
    if not compared:
        return _LOADING.unmeasured(missing(rows, BITS, PUBLISHED))
    return _LOADING.judged(within(compared[-1].ratio, LESS), f"{compared[-1].text} (holds from {LESS:g})")


def _resident(rows: WorkloadRows) -> Finding:
    """Whether the process gained more memory than was counted, for no contestant much more."""
    sizes = rows.each("subscriptions")
    if not sizes:
        return _RESIDENT.unmeasured("w4 was not measured")
    measured = [row for row in rows.where(subscriptions=max(sizes)) if row.get("resident_bytes")]
    ratios = {row["entrant"]: row["resident_bytes"] / row["bytes"] for row in measured if row["bytes"]}
    if not ratios:
        return _RESIDENT.unmeasured("the process gained no resident memory, or this system does not say")
    ours = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    verdict = all(RESIDENT[0] <= each <= RESIDENT[1] for each in ratios.values())
    return _RESIDENT.judged(verdict, f"resident by counted: {ours} (holds from {RESIDENT[0]:g} to {RESIDENT[1]:g})")


_ARRAYS = Claim(
    "Ordered arrays find the predicates that hold more quickly than linked lists",
    "section 3.1: linked lists are searched from their heads; more sophisticated structures could be used",
    "An array is searched by halves, and what holds lies side by side.",
    "Most predicates of a list hold anyway, and are walked over in both.",
)
_NUMBERS = Claim(
    "Numbers of predicates are quicker than a bit vector",
    "section 3: a bit vector, which the second stage reads",
    "Setting bits and reading them again is work that a list of numbers saves.",
    "In the order of numbers, the lists of predicates lie in the order in which memory is read.",
)
_GROWTH = Claim(
    "Lists that double load more quickly than lists that grow by a constant",
    "section 3.3: the size of re-allocation is constant, and another scheme would save expensive steps",
    "A list that grows by a constant is copied as often as it has constants, so that loading is quadratic.",
    "Lists are short, so that few are ever moved.",
)
_LOADING = Claim(
    "The bit matrix loads more quickly than lists, once there are many subscriptions",
    "table 2: at 1,000,000 subscriptions 5,428 ms and 97,746 ms",
    "Lists are moved when they are full, and the matrix is not.",
    "The matrix grows too, and all of it is copied then.",
)
_DELETION = Claim(
    "Deleting by the matrix alone costs more than by the predicates of the row",
    "section 5.1.2: in the matrix, deletion comes for free",
    "The column of a row has a bit for every predicate, each in another line of the cache.",
    "There are few predicates, so that the column is short.",
)
_RESIDENT = Claim(
    "Resident memory is what is counted, within a factor of two",
    "figure 4 shows the resident memory of the process",
    "Arrays are all there is, and most of their pages are touched.",
    "Arrays that were replaced are not always given back at once, and pages that were never touched do not count.",
)

EXPERIMENT = Experiment(
    name="topss-published",
    title="The structures of ToPSS as published",
    paper=f"{TOPSS}, sections 3.1 to 3.3, table 2 and figure 4",
    scales={
        "smoke": {"w1_sizes": [60, 120], "w4_sizes": [60, 120], "events": 10, "deletions": 3},
        "laptop": {"w1_sizes": [300, 1_000, 3_000], "w4_sizes": [1_000, 5_000, 20_000], "events": 200, "deletions": 10},
        "full": {
            **{"w1_sizes": [1_000, 3_000, 10_000], "w4_sizes": [1_000, 10_000, 50_000]},
            **{"events": 400, "deletions": 10},
        },
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "Time of an event", y=TIME),
        Plot("loading", "Time to load all subscriptions", y="fill_seconds", y_title="seconds"),
        Plot("resident", "Resident memory gained", y="resident_bytes", y_title="bytes"),
    ),
)
