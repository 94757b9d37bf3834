"""XML publish/subscribe on a relational database, tables 5.1 and 5.2: flat stock messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harken_lab.experiments.definition import RELATIONAL_XML, Experiment
from harken_lab.experiments.documents import XPATH, filled_engine, measure_documents, model_of, streams, warm_up
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding, exponent
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.xml_plans import (
    ENGINES,
    PLANS,
    against_kernels,
    buckets_help,
    databases,
    flatter,
    growth,
    measure_plans,
)
from harken_lab.harness.charts import shown
from harken_lab.workloads.stock_xml import StockXml

_WORKLOAD = "stock-xml"
_PLANS = ("Unroll", "Share", "Share-Bucket")
_MESSAGES, _SUBSCRIPTIONS = 10_000, 1_000_000
_BY_NOTIFICATIONS = {
    # notifications of 10,000 messages and 1,000,000 subscriptions: seconds of the plans
    1_000: (56, 107, 26.3),
    10_000: (61, 154, 44.6),
    100_000: (70, 504, 195),
    1_000_000: (161, 2_369, 1_210),
}
_BY_SUBSCRIPTIONS = {100_000: (52, 101, 75), 200_000: (55, 221, 119), 1_000_000: (70, 504, 195)}
IN_5_1, IN_5_2 = "5.1 in databases", "5.2 in databases"
_ENDS = (min(_BY_NOTIFICATIONS), max(_BY_NOTIFICATIONS))
_USUAL = 100_000
"""Notifications of 10,000 messages and 1,000,000 subscriptions in the runs that vary the number of subscriptions."""
_FLAT, _SUBLINEAR = 0.5, 0.9
"""The exponents up to which a time counts as growing much less, and less, than what it depends on."""


def measure(run: Run) -> Iterator[Row]:
    documents = _messages(run)
    texts = _model(_USUAL).texts(200, streams(run.seed)[0])
    warm_up(texts, documents)
    size = run["subscriptions"]
    cases = [(size, each) for each in _BY_NOTIFICATIONS] + [(each, _USUAL) for each in run["sizes"] if each != size]
    for subscriptions, notifications in cases:
        run.tell(f"{subscriptions:,} subscriptions, {notifications:,} notifications of 10 billion pairs")
        rng, _ = streams(run.seed)
        engine, seconds = filled_engine(_model(notifications).texts(subscriptions, rng), run.tell)
        row = measure_documents(run, engine, documents)
        row |= {"fill_seconds": round(seconds, 3), "loaded_per_second": round(subscriptions / seconds)}
        del engine
        for table in _tables(run, subscriptions, notifications):
            yield _row(XPATH, table, subscriptions, notifications) | row
            yield from _of_paper(table, subscriptions, notifications, len(documents))
    yield from _measure_plans(run, documents[: run["plan_documents"]])


def _measure_plans(run: Run, documents: list[bytes]) -> Iterator[Row]:
    """Measure the plans, at sizes that databases can load: on the first one in all cases, on others at the ends."""
    size = run["plan_subscriptions"]
    cases = [(size, each, IN_5_1) for each in _BY_NOTIFICATIONS]
    cases += [(each, _USUAL, IN_5_2) for each in run["plan_sizes"]]
    with databases(run) as urls:
        for subscriptions, notifications, table in cases:
            is_end = (table == IN_5_1 and notifications in _ENDS) or (subscriptions == size and table == IN_5_2)
            engines = list(urls)[: None if is_end else 1]
            texts = list(_model(notifications).texts(subscriptions, streams(run.seed)[0]))
            for row in measure_plans(run, texts, documents, {each: list(PLANS) for each in engines}, urls):
                yield _row(row["entrant"], table, subscriptions, notifications) | row


def _model(notifications: int) -> StockXml:
    model = model_of(_WORKLOAD, selectivity=notifications / (_MESSAGES * _SUBSCRIPTIONS))
    assert isinstance(model, StockXml)
    return model


def _messages(run: Run) -> list[bytes]:
    _, rng = streams(run.seed)
    events = _model(_USUAL).events(run["documents"], rng)
    return [text.encode() for text in events["document"].to_pylist()]


def _tables(run: Run, subscriptions: int, notifications: int) -> Iterator[str]:
    if subscriptions == run["subscriptions"]:
        yield "5.1"
    if notifications == _USUAL and subscriptions in run["sizes"]:
        yield "5.2"


def _row(entrant: str, table: str, subscriptions: int, notifications: int) -> Row:
    return {
        "workload": _WORKLOAD,
        "subscriptions": subscriptions,
        "entrant": entrant,
        "algorithm": entrant,
        "options": {},
        "table": table,
        "selectivity": notifications,
    }


def _of_paper(table: str, subscriptions: int, notifications: int, documents: int) -> Iterator[Row]:
    """The paper's own figures, if it has these sizes."""
    figures: Mapping[int, tuple[float, ...]] = _BY_NOTIFICATIONS if table == "5.1" else _BY_SUBSCRIPTIONS
    place = notifications if table == "5.1" else subscriptions
    if documents != _MESSAGES or place not in figures or (table == "5.1" and subscriptions != _SUBSCRIPTIONS):
        return
    for plan, seconds in zip(_PLANS, figures[place], strict=True):
        row = _row(f"{plan} (paper)", table, subscriptions, notifications)
        yield row | {"us_per_event": seconds / documents * 1e6, "seconds": seconds}


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    by_notifications = rows.where(entrant=XPATH, table="5.1")
    yield _grows(_NOTIFICATIONS, by_notifications.points("seconds", "selectivity"), "notifications", _FLAT)
    yield _grows(_SIZES, rows.where(entrant=XPATH, table="5.2").points("seconds"), "subscriptions", _SUBLINEAR)
    yield from _parsing(by_notifications)
    plans = rows.where(table=IN_5_1)
    yield flatter(_FLATTER, plans, "selectivity")
    yield buckets_help(_BUCKETS, plans, "selectivity")
    yield growth(_GROWTH, rows.where(table=IN_5_2), _SUBLINEAR)
    yield against_kernels(_KERNELS, rows.where(table=IN_5_2))


def _parsing(rows: WorkloadRows) -> Iterator[Finding]:
    """Findings on the share of parsing, and on the time of matching linear paths with tag paths."""
    shares = rows.points("parse_share", "selectivity")
    if not shares:
        yield _PARSING.unmeasured("no size was measured")
        yield _PATHS.unmeasured("no size was measured")
        return
    least, share = next(iter(shares.items()))
    yield _PARSING.judged(share >= 0.5, f"{share:.0%} at {least:,} (holds from 50 %)")
    paths, parsing = (max(rows.points(each, "selectivity").values()) for each in _COSTS)
    ours = f"{shown(paths)} s at most, where parsing takes {shown(parsing)} s (holds up to a tenth)"
    yield _PATHS.judged(10 * paths <= parsing, ours)


_COSTS = ("path_seconds", "parse_seconds")


def _grows(claim: Claim, seconds: Mapping[int, float], of: str, most: float) -> Finding:
    power = exponent(seconds)
    if power is None:
        return claim.unmeasured(f"it takes two numbers of {of}")
    times = ", ".join(f"{place:,}: {shown(value)} s" for place, value in seconds.items())
    return claim.judged(power <= most, f"{times}; as {of}^{power:.2f} (holds up to {most:g})")


_NOTIFICATIONS = Claim(
    "The time grows much less than the number of notifications",
    "table 5.1: a thousand times as many take 2.9 times as long by Unroll (notifications^0.15), 22 by Share, 46 by "
    "Share-Bucket",
    "Candidates are found by their symbol, which is as rare whatever the inequalities say: only matches cost more.",
    "Writing a notification costs more than examining a candidate.",
)
_SIZES = Claim(
    "The time grows less than the number of subscriptions",
    "table 5.2: ten times as many take 1.3 times as long by Unroll, 5.0 by Share, 2.6 by Share-Bucket",
    "An index leads to the subscriptions of a symbol, and parsing costs the same whatever there is.",
    "Little is left beside the candidates, of which there are in proportion to the subscriptions.",
)
_PARSING = Claim(
    "With few notifications, most of the time is parsing",
    "section 5.1: 24 s of 26.3 s by Share-Bucket at 1,000 notifications, of 56 s by Unroll",
    "The rest is examining some hundred candidates a message.",
    "Parsing by a kernel leaves little of it.",
)
_PATHS = Claim(
    "Matching linear paths with tag paths costs next to nothing",
    "section 5.1: ignorable, there are 7 distinct tag paths",
    "Each pair that meets is matched once, and remembered.",
    "The messages are few and small, so that little of anything is done.",
)

_FLATTER = Claim(
    "The time of Unroll hardly depends on the selectivity, that of the recursive plans does",
    "table 5.1, a thousand times as many notifications: 2.9 times as long by Unroll, 22 by Share, 46 by Share-Bucket",
    "The symbol leads to as many rows of Predicate_Unroll whatever the inequalities let through.",
    "In memory a probe of an index costs little, and at this size a share of the time does not depend on selectivity.",
)
_BUCKETS = Claim(
    "Buckets make the recursive plan quicker where there are inequalities",
    "table 5.1, Share by Share-Bucket: 4.1 at 1,000 notifications, 3.5, 2.6, 2.0 at 1,000,000",
    "Few rows stand for the first inequality of all subscriptions of a symbol.",
    "Behind its symbol a subscription shares its first inequality with few, so that a bucket is one more step.",
)
_GROWTH = Claim(
    "The time of all plans grows less than the number of subscriptions",
    "table 5.2: ten times as many take 1.3 times as long by Unroll, 5.0 by Share, 2.6 by Share-Bucket",
    "Messages are parsed and inserted whatever there is, and an index leads to the subscriptions of a symbol.",
    "Without an index tables are read as a whole, and the rows that the symbol finds grow with them.",
)
_KERNELS = Claim(
    "Matching inside a database costs more than matching in memory",
    "section 2 sets memory against scale, and tables 5.1 and 5.2 have no figure of an automaton in memory",
    "A database makes rows of all messages first, and compares values that kernels compare in place.",
    "The column beside this says which plan wins, and where.",
)

EXPERIMENT = Experiment(
    name="xml-stock",
    title="Flat stock messages against XPath subscriptions",
    paper=f"{RELATIONAL_XML}, tables 5.1 and 5.2",
    scales={
        "smoke": {
            **{"subscriptions": 2_000, "sizes": [1_000, 2_000], "documents": 200},
            **{
                "plan_subscriptions": 200,
                "plan_sizes": [100, 200],
                "plan_documents": 40,
                "engines": ["DuckDB", "SQLite"],
            },
        },
        "laptop": {
            **{"subscriptions": 200_000, "sizes": [50_000, 100_000, 200_000], "documents": 10_000},
            **{"plan_subscriptions": 10_000, "plan_sizes": [2_500, 5_000, 10_000], "plan_documents": 1_000},
            "engines": list(ENGINES),
        },
        "full": {
            **{"subscriptions": _SUBSCRIPTIONS, "sizes": list(_BY_SUBSCRIPTIONS), "documents": _MESSAGES},
            **{"plan_subscriptions": 200_000, "plan_sizes": [50_000, 100_000, 200_000], "plan_documents": _MESSAGES},
            "engines": list(ENGINES),
        },
    },
    measure=measure,
    judge=judge,
    plots=(
        Plot(
            "notifications",
            "Time of all messages",
            x="selectivity",
            y="seconds",
            x_title="notifications of 10 billion pairs",
            y_title="seconds",
            facet=None,
            where={"table": "5.1"},
        ),
        Plot("sizes", "Time of all messages", y="seconds", y_title="seconds", facet=None, where={"table": "5.2"}),
        Plot(
            "plans",
            "Time of all messages, in databases",
            x="selectivity",
            y="seconds",
            x_title="notifications of 10 billion pairs",
            y_title="seconds",
            facet=None,
            where={"table": IN_5_1},
        ),
        Plot(
            "plan_sizes",
            "Time of all messages, in databases",
            y="seconds",
            y_title="seconds",
            facet=None,
            where={"table": IN_5_2},
        ),
    ),
)
