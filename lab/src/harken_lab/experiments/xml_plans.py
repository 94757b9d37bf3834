"""The paper's plans for XPath in databases: filled, verified against `xpath`, and timed.

Times are processor times of this process and of the server's sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median

from harken.engine import Engine
from harken_lab.experiments.documents import XPATH, filled_engine
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import LESS, OVERHEAD
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import ROUNDS, everywhere, growth_of, majority, spread_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.postgres_server import running_postgres
from harken_lab.harness.processor_clock import ProcessorClock
from harken_lab.harness.result_files import Unavailable, WrongAnswerError

UNROLL, SHARE, BUCKET = "Unroll", "Share", "Share-Bucket"
PLANS = {UNROLL: "xpath_unrolled", SHARE: "xpath_shared", BUCKET: "xpath_buckets"}
"""The algorithms, by the paper's names of the plans."""
_INSIDE = {"DuckDB": "duckdb", "SQLite": "sqlite"}
POSTGRES = "PostgreSQL"
ENGINES = (*_INSIDE, POSTGRES)
_SLOW = 10.0
"""Seconds of a first match beyond which documents are matched only once more."""


def contestant_name(plan: str, engine: str) -> str:
    """The name of a plan on a database in results."""
    return f"{plan} on {engine}"


@contextmanager
def databases(run: Run) -> Iterator[dict[str, str]]:
    """The `database` option of an engine for each database of this scale. PostgreSQL is left out if there is none."""
    urls = {name: _INSIDE[name] for name in run["engines"] if name in _INSIDE}
    if POSTGRES not in run["engines"]:
        yield urls
        return
    run.tell("starting PostgreSQL")
    with ExitStack() as stack:
        try:
            urls[POSTGRES] = stack.enter_context(running_postgres())
        except Unavailable as error:
            run.tell(f"PostgreSQL is left out: {error}")
        yield urls


def measure_plans(
    run: Run,
    texts: Sequence[str],
    documents: Sequence[bytes],
    plans: Mapping[str, Sequence[str]],
    urls: Mapping[str, str],
) -> Iterator[Row]:
    """A row for `xpath` and for every plan on each of its databases, with the same subscriptions and documents."""
    reference, seconds = filled_engine(texts, run.tell)
    expected = [sorted(ids) for ids in reference.match_batch(documents).ids]
    rounds = _rounds(reference, documents, ProcessorClock(), run.pace.rounds)
    notifications = sum(map(len, expected))
    common = {"events": len(documents), "notifications": notifications, "subscriptions": len(texts)}
    yield _row(XPATH, XPATH, {}, rounds, seconds, len(documents)) | common
    for engine, names in plans.items():
        for plan in names if engine in urls else ():
            run.tell(f"{len(texts):,} subscriptions: {contestant_name(plan, engine)}")
            yield _measured(run, plan, (engine, urls[engine]), texts, documents, expected) | common


def _measured(
    run: Run,
    plan: str,
    database: tuple[str, str],
    texts: Sequence[str],
    documents: Sequence[bytes],
    expected: list[list[str]],
) -> Row:
    """The row of a plan on a database, whose name and address are given. Raises WrongAnswerError."""
    engine, url = database
    name, options = contestant_name(plan, engine), {"documents": PLANS[plan], "database": url}
    tested, seconds = filled_engine(texts, run.tell, **options)
    clock = ProcessorClock(url if engine == POSTGRES else None)
    clock.find_sessions()
    started = clock.now()
    matches = tested.match_batch(documents)
    first = clock.now() - started
    if [sorted(ids) for ids in matches.ids] != expected:
        raise WrongAnswerError(f"{name} finds other subscriptions than {XPATH}")
    rounds = _rounds(tested, documents, clock, 1 if first > _SLOW else run.pace.rounds)
    clock.close()
    stats = tested.stats()["documents"]
    return _row(name, PLANS[plan], {"database": engine}, rounds, seconds, len(documents)) | {
        "first_seconds": round(first, 4),
        "path_seconds": round(max(0.0, first - median(rounds)), 4),
        "bytes": stats["memory"].get("tables"),
        "linear_paths": stats["linear_paths"],
    }


def _row(
    entrant: str,
    algorithm: str,
    options: Mapping[str, str],
    rounds: Sequence[float],
    fill_seconds: float,
    documents: int,
) -> Row:
    seconds = median(rounds)
    return {
        "entrant": entrant,
        "algorithm": algorithm,
        "options": dict(options),
        "seconds": round(seconds, 4),
        "us_per_event": seconds / documents * 1e6,
        "documents_per_second": round(documents / seconds, 1),
        "fill_seconds": round(fill_seconds, 3),
        ROUNDS: {"seconds": [round(each, 4) for each in rounds]},
    }


def _rounds(engine: Engine, documents: Sequence[bytes], clock: ProcessorClock, count: int) -> list[float]:
    return [_seconds(engine, documents, clock) for _ in range(count)]


def _seconds(engine: Engine, documents: Sequence[bytes], clock: ProcessorClock) -> float:
    started = clock.now()
    engine.match_batch(documents)
    return clock.now() - started


def growth(claim: Claim, rows: WorkloadRows, most: float, field: str = "seconds") -> Finding:
    """Whether the time of every plan grows less than the number of subscriptions. If none grows, it tells nothing."""
    powers = {}
    for entrant in rows.each("entrant"):
        power = growth_of(spreads(rows, field, entrant=entrant))
        if entrant != XPATH and power is not None:
            powers[entrant] = power
    if not powers:
        return claim.unmeasured("it takes two sizes")
    exponents = ", ".join(f"{name} as subscriptions^{power}" for name, power in powers.items())
    if max(each.middle for each in powers.values()) <= OVERHEAD:
        return claim.judged(None, exponents, _OVERHEAD)
    verdict = everywhere([within(each, most=most) for each in powers.values()])
    return claim.judged(verdict, f"{exponents} (holds up to {most:g})")


def buckets(claim: Claim, rows: WorkloadRows, by: str, margin: tuple[float, float]) -> Finding:
    """Whether the time without buckets, by that with them, is within the margin at most points of all databases."""
    comparisons, verdicts = [], []
    for engine in ENGINES:
        with_buckets, without = (
            spreads(rows, "seconds", by, entrant=contestant_name(plan, engine)) for plan in (BUCKET, SHARE)
        )
        for place in without.keys() & with_buckets.keys():
            ratio = without[place] / with_buckets[place]
            verdicts.append(within(ratio, *margin))
            comparisons.append(f"{engine} {ratio} at {place:,}")
    if not comparisons:
        return claim.unmeasured("no plan was measured")
    least, most = margin
    rule = f"from {least:g}" if most == math.inf else f"from {shown(least)} to {shown(most)}"
    ours = f"Share by Share-Bucket: {', '.join(sorted(comparisons))} (holds {rule} at most points)"
    return claim.judged(majority(verdicts), ours)


def flatter(claim: Claim, rows: WorkloadRows, by: str) -> Finding:
    """Whether the time of Unroll depends less on the notifications than that of Share, on every database."""
    comparisons, verdicts = [], []
    for engine in ENGINES:
        unroll, share = (
            spreads(rows, "seconds", by, entrant=contestant_name(plan, engine)) for plan in (UNROLL, SHARE)
        )
        if len(unroll) > 1 and len(share) > 1:
            rises = [each[max(each)] / each[min(each)] for each in (unroll, share)]
            comparisons.append(f"{engine} {rises[0]} times by Unroll, {rises[1]} by Share")
            verdicts.append(within(rises[1] / rises[0], LESS))
    if not comparisons:
        return claim.unmeasured("no plan was measured with several numbers of notifications")
    places = rows.each(by)
    ours = f"{max(places):,} notifications beside {min(places):,}: {'; '.join(comparisons)}"
    return claim.judged(everywhere(verdicts), ours)


def against_kernels(claim: Claim, rows: WorkloadRows) -> Finding:
    """Whether `xpath` is quicker than the quickest plan, at every size of the rows."""
    comparisons, verdicts = [], []
    for size, seconds in spreads(rows, "seconds", entrant=XPATH).items():
        others = [row for row in rows.where(subscriptions=size) if row["entrant"] != XPATH]
        if not others:
            continue
        best = min(others, key=lambda row: float(row["seconds"]))
        ratio = spread_of(best, "seconds") / seconds
        verdicts.append(within(ratio, LESS))
        comparisons.append(f"{ratio} times at {size:,} ({best['entrant']})")
    if not comparisons:
        return claim.unmeasured("no plan was measured")
    return claim.judged(everywhere(verdicts), f"xpath beside the quickest plan: {', '.join(comparisons)}")


_OVERHEAD = (
    "The time does not grow at all: at these sizes it is what every batch of documents costs, whatever is subscribed."
)
