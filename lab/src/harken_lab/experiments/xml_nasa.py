"""XML publish/subscribe on a relational database, tables 5.3 and 5.4 and figure 5.2: the NASA data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harken_lab.experiments.definition import RELATIONAL_XML, Experiment
from harken_lab.experiments.documents import XPATH, filled_engine, measure_documents, model_of, streams, warm_up
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, exponent
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.xml_plans import (
    BUCKET,
    ENGINES,
    SHARE,
    UNROLL,
    against_kernels,
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
_SUBLINEAR = 0.9
_FEW = 0.8
"""The exponent up to which distinct linear paths count as growing less than predicates."""
_LEAST = 100_000
"""Fewest subscriptions for judging growth: with fewer most of the time is parsing."""


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
    counts = (
        f"{last['leaf_values']:,} values, {last['leaf_paths']} distinct tag paths to them (holds from 1,000 a path)"
    )
    yield _TAG_PATHS.judged(last["leaf_values"] >= 1_000 * last["leaf_paths"], counts)
    yield _different(ours)
    yield _paths_matched(ours)
    plans = rows.where(workload="nasa", table=IN_DATABASES)
    yield growth(_GROWTH, plans, _SUBLINEAR, "first_seconds")
    yield _better(plans)
    yield against_kernels(_KERNELS, plans)


def _better(rows: WorkloadRows) -> Finding:
    """Whether Unroll grows less than Share, on the database that has all sizes."""
    engine = ENGINES[0]
    powers = [exponent(rows.points("first_seconds", entrant=contestant_name(plan, engine))) for plan in (UNROLL, SHARE)]
    if powers[0] is None or powers[1] is None:
        return _UNROLL_SCALES.unmeasured("it takes two sizes")
    exponents = f"{engine}: Unroll as subscriptions^{powers[0]:.2f}, Share as subscriptions^{powers[1]:.2f}"
    return _UNROLL_SCALES.judged(powers[0] < powers[1], exponents)


def _grows(rows: WorkloadRows) -> Finding:
    seconds = {size: value for size, value in rows.points("first_seconds").items() if size >= _LEAST}
    power = exponent(seconds)
    if power is None:
        return _TIME.unmeasured(f"it takes two sizes from {_LEAST:,} on")
    times = ", ".join(f"{size:,}: {shown(value)} s" for size, value in seconds.items())
    return _TIME.judged(power <= _SUBLINEAR, f"{times}; as subscriptions^{power:.2f} (holds up to {_SUBLINEAR:g})")


def _different(rows: WorkloadRows) -> Finding:
    paths = rows.points("linear_paths")
    power = exponent({int(rows.value("predicates", subscriptions=size) or 1): each for size, each in paths.items()})
    if power is None:
        return _LINEAR_PATHS.unmeasured("it takes two sizes")
    counts = ", ".join(f"{size:,} subscriptions: {each:,}" for size, each in paths.items())
    return _LINEAR_PATHS.judged(power <= _FEW, f"{counts}; as predicates^{power:.2f} (holds up to {_FEW:g})")


def _paths_matched(rows: WorkloadRows) -> Finding:
    paths, parsing = rows.points("path_seconds"), rows.points("parse_seconds")
    times = ", ".join(f"{size:,}: {shown(each)} s" for size, each in paths.items())
    most = max(parsing.values())
    ours = f"{times}, where parsing takes {shown(most)} s (holds up to that)"
    return _PATHS.judged(max(paths.values()) <= most, ours)


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
    "table 5.4: 7 s at 0.13 million subscriptions, 37 s at 2.7 million; parsing 55 s",
    "Each pair that meets is matched once. Measured as the first match of a reloaded engine less its second.",
    "Measured as the first match of a reloaded engine less its second, it includes reading the index for the first "
    "time, and parsing is quick here.",
)
_GROWTH = Claim(
    "The time of the plans grows less than the number of subscriptions",
    "figure 5.2, with parsing and PathMatch in it; its numbers are lost",
    "Documents are parsed and inserted whatever there is, and an index leads from a value to its subscriptions.",
    "The rows that the first equality finds grow with the subscriptions, and little else is left.",
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
_CLAIMS = (_TIME, _TAG_PATHS, _LINEAR_PATHS, _PATHS, _GROWTH, _UNROLL_SCALES, _KERNELS)

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
