"""The paper's plans for XPath in databases: filled, verified against `xpath`, and timed.

Times are processor times of this process and of the server's sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from harken.engine import Engine
from harken_lab.experiments.documents import XPATH, filled_engine
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import MARGIN, Claim, Finding, exponent
from harken_lab.experiments.running import Run
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
    clock = ProcessorClock()
    quickest = min(_seconds(reference, documents, clock) for _ in range(run.pace.rounds))
    notifications = sum(map(len, expected))
    common = {"events": len(documents), "notifications": notifications, "subscriptions": len(texts)}
    yield _row(XPATH, XPATH, {}, quickest, seconds, len(documents)) | common
    for engine, names in plans.items():
        for plan in names if engine in urls else ():
            name = contestant_name(plan, engine)
            run.tell(f"{len(texts):,} subscriptions: {name}")
            options = {"documents": PLANS[plan], "database": urls[engine]}
            tested, seconds = filled_engine(texts, run.tell, **options)
            clock = ProcessorClock(urls[engine] if engine == POSTGRES else None)
            clock.find_sessions()
            started = clock.now()
            matches = tested.match_batch(documents)
            first = clock.now() - started
            if [sorted(ids) for ids in matches.ids] != expected:
                raise WrongAnswerError(f"{name} finds other subscriptions than {XPATH}")
            second = min(_seconds(tested, documents, clock) for _ in range(1 if first > _SLOW else run.pace.rounds))
            clock.close()
            stats = tested.stats()["documents"]
            yield (
                _row(name, PLANS[plan], {"database": engine}, second, seconds, len(documents))
                | common
                | {
                    "first_seconds": round(first, 4),
                    "path_seconds": round(max(0.0, first - second), 4),
                    "bytes": stats["memory"].get("tables"),
                    "linear_paths": stats["linear_paths"],
                }
            )
            del tested


def _row(
    entrant: str, algorithm: str, options: Mapping[str, str], seconds: float, fill_seconds: float, documents: int
) -> Row:
    return {
        "entrant": entrant,
        "algorithm": algorithm,
        "options": dict(options),
        "seconds": round(seconds, 4),
        "us_per_event": seconds / documents * 1e6,
        "documents_per_second": round(documents / seconds, 1),
        "fill_seconds": round(fill_seconds, 3),
    }


def _seconds(engine: Engine, documents: Sequence[bytes], clock: ProcessorClock) -> float:
    started = clock.now()
    engine.match_batch(documents)
    return clock.now() - started


def growth(claim: Claim, rows: WorkloadRows, most: float, field: str = "seconds") -> Finding:
    """Whether the time of every plan grows less than the number of subscriptions."""
    powers = {}
    for entrant in rows.each("entrant"):
        power = exponent(rows.points(field, entrant=entrant))
        if entrant != XPATH and power is not None:
            powers[entrant] = power
    if not powers:
        return claim.unmeasured("it takes two sizes")
    exponents = ", ".join(f"{name} as subscriptions^{power:.2f}" for name, power in powers.items())
    return claim.judged(max(powers.values()) <= most, f"{exponents} (holds up to {most:g})")


def buckets_help(claim: Claim, rows: WorkloadRows, by: str) -> Finding:
    """Whether buckets make sharing quicker, on every database and at every point."""
    comparisons, ratios = [], []
    for engine in ENGINES:
        with_buckets = rows.points("seconds", by, entrant=contestant_name(BUCKET, engine))
        without = rows.points("seconds", by, entrant=contestant_name(SHARE, engine))
        for place, seconds in without.items():
            if with_buckets.get(place):
                ratios.append(seconds / with_buckets[place])
                comparisons.append(f"{engine} {shown(ratios[-1])} at {place:,}")
    if not ratios:
        return claim.unmeasured("no plan was measured")
    return claim.judged(
        min(ratios) >= MARGIN, f"Share by Share-Bucket: {', '.join(comparisons)} (holds from {MARGIN:g})"
    )


def flatter(claim: Claim, rows: WorkloadRows, by: str) -> Finding:
    """Whether the time of Unroll depends less on the selectivity than that of Share, on every database."""
    comparisons, holds = [], []
    for engine in ENGINES:
        rises = []
        for plan in (UNROLL, SHARE):
            seconds = list(rows.points("seconds", by, entrant=contestant_name(plan, engine)).values())
            rises.append(seconds[-1] / seconds[0] if len(seconds) > 1 else None)
        if rises[0] is not None and rises[1] is not None:
            comparisons.append(f"{engine} {shown(rises[0])} times by Unroll, {shown(rises[1])} by Share")
            holds.append(rises[0] * MARGIN <= rises[1])
    if not comparisons:
        return claim.unmeasured("no plan was measured with several selectivities")
    return claim.judged(all(holds), f"a thousand times as many notifications: {'; '.join(comparisons)}")


def against_kernels(claim: Claim, rows: WorkloadRows) -> Finding:
    """Whether `xpath` is quicker than the quickest plan, at every size of the rows."""
    comparisons, ratios = [], []
    for size, seconds in rows.points("seconds", entrant=XPATH).items():
        others = [row for row in rows.where(subscriptions=size) if row["entrant"] != XPATH]
        if not others:
            continue
        best = min((row["seconds"], row["entrant"]) for row in others)
        ratios.append(best[0] / seconds)
        comparisons.append(f"{shown(ratios[-1])} times at {size:,} ({best[1]})")
    if not ratios:
        return claim.unmeasured("no plan was measured")
    return claim.judged(min(ratios) >= MARGIN, f"xpath beside the quickest plan: {', '.join(comparisons)}")
