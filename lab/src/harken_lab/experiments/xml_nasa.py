"""XML publish/subscribe on a relational database, tables 5.3 and 5.4 and figure 5.2: the NASA data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harken_lab.experiments.definition import RELATIONAL_XML, Experiment
from harken_lab.experiments.documents import XPATH, filled_engine, measure_documents, model_of, streams, warm_up
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import ALIKE, FEW_PATHS, MANY_SUBSCRIPTIONS, SUBLINEAR, VALUES_A_PATH
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import exponent, growth_of, spreads, within
from harken_lab.experiments.xml_plans import (
    BUCKET,
    ENGINES,
    SHARE,
    UNROLL,
    against_kernels,
    buckets,
    contestant_name,
    databases,
    growth,
    measure_plans,
)
from harken_lab.harness.charts import shown
from harken_lab.workloads.nasa import Nasa

_PAPER = {
    # subscriptions: linear path predicates, distinct linear paths, seconds to match them with tag paths
    130_000: (1_000_000, 6_565, 7),
    700_000: (5_000_000, 21_637, 20),
    1_400_000: (10_000_000, 32_159, 29),
    2_100_000: (15_000_000, 38_026, 35),
    2_700_000: (20_000_000, 42_271, 37),
}
IN_DATABASES = "in databases"
_ALONE = {"table": None}
"""A filter for the rows of `xpath` that were not measured beside a database: these have no `table`."""
_DOCUMENTS = 2_435


def measure(run: Run) -> Iterator[Row]:
    model = model_of("nasa")
    assert isinstance(model, Nasa)
    documents = model.collection()[: run["documents"]]
    warm_up(model.texts(200, streams(run.seed)[0]), documents)
    for size in run["sizes"]:
        run.tell(f"{size:,} subscriptions")
        xpaths = model.xpaths()
        engine, seconds = filled_engine(xpaths.texts(size, streams(run.seed)[0]), run.tell)
        row: Row = {
            "workload": model.documents,
            "subscriptions": size,
            "entrant": XPATH,
            "algorithm": XPATH,
            "options": {},
            "predicates": xpaths.predicates,
            "linear_paths": len(xpaths.linear_paths),
            "leaf_paths": len(xpaths.tags),
            "leaf_values": sum(map(len, xpaths.tags.values)),
            **measure_documents(run, engine, documents),
            "fill_seconds": round(seconds, 3),
            "loaded_per_second": round(size / seconds),
        }
        del engine
        row["bytes_per_subscription"] = round(row["bytes"] / size, 1)
        yield row | _of_paper(size)
    yield from _measure_plans(run, model, documents)


def _measure_plans(run: Run, model: Nasa, documents: Sequence[bytes]) -> Iterator[Row]:
    """Measure the plans: on the first database at all sizes, on others at the last. Share-Bucket is measured once."""
    with databases(run) as urls:
        for size in run["plan_sizes"]:
            is_last = size == run["plan_sizes"][-1]
            plans = {engine: [UNROLL, SHARE] for engine in list(urls)[: None if is_last else 1]}
            if is_last:
                plans[next(iter(urls))] = [UNROLL, SHARE, BUCKET]
            texts = list(model.xpaths().texts(size, streams(run.seed)[0]))
            for row in measure_plans(run, texts, documents[: run["plan_documents"]], plans, urls):
                yield {"workload": model.documents, "table": IN_DATABASES} | row


def _of_paper(size: int) -> Row:
    """The paper's own figures, at its sizes."""
    if size not in _PAPER:
        return {}
    predicates, linear_paths, seconds = _PAPER[size]
    return {"paper_predicates": predicates, "paper_linear_paths": linear_paths, "paper_path_seconds": seconds}


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    ours = rows.where(entrant=XPATH, workload="nasa", table=None)
    if not len(ours):
        yield from (each.unmeasured("the NASA data set is not at hand: set HARKEN_DATA") for each in _CLAIMS)
        return
    yield _grows(ours)
    last = list(ours)[-1]
    counts = f"{last['leaf_values']:,} values, {last['leaf_paths']} distinct tag paths to them"
    holds = last["leaf_values"] >= VALUES_A_PATH * last["leaf_paths"]
    yield _TAG_PATHS.judged(holds, f"{counts} (holds from {VALUES_A_PATH:,} a path)")
    yield _different(ours)
    plans = rows.where(workload="nasa", table=IN_DATABASES)
    yield _paths_matched(plans)
    yield _IN_LESS_MEMORY.unmeasured(_NO_AUTOMATON, _memory(ours, plans))
    yield growth(_GROWTH, plans, SUBLINEAR, "first_seconds")
    yield buckets(_NEUTRAL, plans, "subscriptions", (1 / ALIKE, ALIKE))
    yield _better(plans)
    yield against_kernels(_KERNELS, plans)


def _better(rows: WorkloadRows) -> Finding:
    """Whether Unroll grows less than Share, on the database that has all sizes."""
    engine = ENGINES[0]
    unroll, share = (
        growth_of(spreads(rows, "first_seconds", entrant=contestant_name(plan, engine))) for plan in (UNROLL, SHARE)
    )
    if unroll is None or share is None:
        return _UNROLL_SCALES.unmeasured("it takes two sizes")
    exponents = f"{engine}: Unroll as subscriptions^{unroll}, Share as subscriptions^{share}"
    size = max(rows.each("subscriptions"))
    if size < MANY_SUBSCRIPTIONS:
        why = f"The paper says it of sizes that its memory did not hold, from 1,400,000 on; {size:,} are held whole."
        return _UNROLL_SCALES.unmeasured(why, exponents)
    verdict = True if unroll.most < share.least else False if unroll.least > share.most else None
    return _UNROLL_SCALES.judged(verdict, exponents)


def _memory(ours: WorkloadRows, plans: WorkloadRows) -> str:
    """Bytes a linear path predicate: of `xpath` in memory, and of the tables of a plan."""
    last = list(ours)[-1]
    parts = [f"{last['bytes'] / last['predicates']:.0f} bytes by {XPATH} at {last['subscriptions']:,} subscriptions"]
    share = contestant_name(SHARE, ENGINES[0])
    by_size = {row["subscriptions"]: row["bytes"] for row in plans if row["entrant"] == share and row.get("bytes")}
    if by_size:
        size = max(by_size)
        mean = last["predicates"] / last["subscriptions"]
        parts.append(f"{by_size[size] / (size * mean):,.0f} bytes by {share} at {size:,}, with what it caches")
    return f"a linear path predicate takes {', '.join(parts)}"


def _grows(rows: WorkloadRows) -> Finding:
    points = spreads(rows, "first_seconds").items()
    seconds = {size: each for size, each in points if size >= MANY_SUBSCRIPTIONS}
    power = growth_of(seconds)
    if power is None:
        return _TIME.unmeasured(f"it takes two sizes from {MANY_SUBSCRIPTIONS:,} on")
    times = ", ".join(f"{size:,}: {shown(each.middle)} s" for size, each in seconds.items())
    ours = f"{times}; as subscriptions^{power} (holds up to {SUBLINEAR:g})"
    return _TIME.judged(within(power, most=SUBLINEAR), ours)


def _different(rows: WorkloadRows) -> Finding:
    paths = rows.points("linear_paths")
    power = exponent({int(rows.value("predicates", subscriptions=size) or 1): each for size, each in paths.items()})
    if power is None:
        return _LINEAR_PATHS.unmeasured("it takes two sizes")
    counts = ", ".join(f"{size:,} subscriptions: {each:,}" for size, each in paths.items())
    return _LINEAR_PATHS.judged(power <= FEW_PATHS, f"{counts}; as predicates^{power:.2f} (holds up to {FEW_PATHS:g})")


def _paths_matched(rows: WorkloadRows) -> Finding:
    """What PathMatch takes in a plan. `xpath` has no such table, and its time says nothing of one."""
    paths = rows.points("path_seconds", entrant=contestant_name(UNROLL, ENGINES[0]))
    if not paths:
        return _PATHS.unmeasured("no plan was measured")
    times = ", ".join(f"{size:,}: {shown(each)} s" for size, each in paths.items())
    ours = f"Unroll on {ENGINES[0]}, the first match less the second, by subscriptions: {times}"
    why = "The plans do not time parsing and inserting by itself, which the paper compares it with."
    return _PATHS.unmeasured(why, ours)


_TIME = Claim(
    "The time grows less than the number of subscriptions",
    "figure 5.2, whose numbers are lost; Unroll degrades gracefully beyond what memory holds",
    "The rarest equality of a subscription leads to it, and parsing costs the same whatever there is.",
    "Candidates are in proportion to the subscriptions, and at these sizes little else is left.",
)
_TAG_PATHS = Claim(
    "Documents of a kind have few distinct tag paths",
    "section 5.2: 357 thousand values, 73 distinct tag paths to them",
    "They follow one DTD. Here values count that have up to 200 characters.",
    "Recursion makes many.",
)
_LINEAR_PATHS = Claim(
    "Different linear paths are few, and grow less than predicates",
    "table 5.4: 6,565 at 0.13 million subscriptions, 42,271 at 2.7 million (predicates^0.62)",
    "What is drawn often was drawn before.",
    "Wildcards and `//` make nearly every path a new one.",
)
_PATHS = Claim(
    "Matching linear paths with tag paths takes less time than parsing",
    "table 5.4: 7 s at 0.13 million subscriptions, 37 s at 2.7 million; parsing and inserting 55 s",
)
_NO_AUTOMATON = (
    "The paper sets itself beside another one's figures, of an automaton under a limit of memory. No experiment here "
    "runs both under one limit."
)
_IN_LESS_MEMORY = Claim(
    "Two orders of magnitude more predicates than an automaton in memory, in half the memory",
    "beside table 5.3: 20 million linear path predicates with 512 MB",
)
_GROWTH = Claim(
    "The time of the plans grows less than the number of subscriptions",
    "figure 5.2, with parsing and PathMatch in it; its numbers are lost",
    "Documents are parsed and inserted whatever there is, and an index leads from a value to its subscriptions.",
    "The rows that the first equality finds grow with the subscriptions, and little else is left.",
)
_NEUTRAL = Claim(
    "On the NASA data set buckets do not change the time of the recursive plan",
    "figure 5.2, where it has no curve of its own, for few predicates are inequalities",
    "One predicate in five is an inequality, and it comes after the equalities.",
    "A bucket is one more step for each inequality, or saves one, also where these are few.",
)
_UNROLL_SCALES = Claim(
    "Unroll scales better than the recursive plan",
    "figure 5.2 and section 5.2: with more than 10 million predicates the index of Query_Predicate leaves the memory",
    "A row has five predicates, so that the big table is looked up once.",
    "All tables are in memory here, and the rarest equality comes first in both, so that little is looked up again.",
)
_KERNELS = Claim(
    "Matching inside a database costs more than matching in memory",
    "section 2 sets memory against scale, and figure 5.2 has no curve of an automaton in memory",
    "A database makes rows of all nodes first, and looks them up again where branches have to meet.",
    "The column beside this says which plan wins, and where.",
)
_CLAIMS = (
    *(_TIME, _TAG_PATHS, _LINEAR_PATHS, _PATHS, _IN_LESS_MEMORY),
    *(_GROWTH, _NEUTRAL, _UNROLL_SCALES, _KERNELS),
)

EXPERIMENT = Experiment(
    name="xml-nasa",
    title="Branching XPath subscriptions on the NASA data set",
    paper=f"{RELATIONAL_XML}, tables 5.3 and 5.4 and figure 5.2",
    scales={
        "smoke": {
            **{"sizes": [500, 2_000], "documents": 300},
            **{"plan_sizes": [50, 100], "plan_documents": 20, "engines": ["DuckDB", "SQLite"]},
        },
        "laptop": {
            **{"sizes": [20_000, 130_000, 400_000], "documents": _DOCUMENTS},
            **{"plan_sizes": [2_500, 5_000, 10_000], "plan_documents": 1_000, "engines": list(ENGINES)},
        },
        "full": {
            **{"sizes": list(_PAPER), "documents": _DOCUMENTS},
            **{"plan_sizes": [20_000, 50_000, 130_000], "plan_documents": _DOCUMENTS, "engines": list(ENGINES)},
        },
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot("time", "Time of all documents", y="first_seconds", y_title="seconds", where=_ALONE),
        Plot(
            "plans",
            "Time of all documents, in databases",
            y="first_seconds",
            y_title="seconds",
            facet=None,
            where={"table": IN_DATABASES},
        ),
        Plot("rate", "Documents matched", y="documents_per_second", y_title="documents a second", where=_ALONE),
        Plot("linear_paths", "Distinct linear paths", y="linear_paths", y_title="linear paths", where=_ALONE),
        Plot("memory", "Memory", y="bytes_per_subscription", y_title="bytes a subscription", where=_ALONE),
        Plot("loading", "Subscriptions loaded", y="loaded_per_second", y_title="subscriptions a second", where=_ALONE),
        Plot("parsing", "Share of bare parsing", y="parse_share", y_title="share", is_log_y=False, where=_ALONE),
    ),
)
