"""XML publish/subscribe on a relational database, tables 5.1 and 5.2: flat stock messages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from harken_lab.experiments.definition import RELATIONAL_XML, Experiment
from harken_lab.experiments.documents import XPATH, filled_engine, measure_documents, model_of, streams, warm_up
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import LESS, MANY_NOTIFICATIONS, MOSTLY, NEXT_TO_NOTHING, SLIGHT, SUBLINEAR
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run
from harken_lab.experiments.spreads import growth_of, spreads, within
from harken_lab.experiments.xml_plans import (
    ENGINES,
    PLANS,
    UNROLL,
    against_kernels,
    buckets,
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
"""Notifications of 10,000 messages in the runs that vary the number of subscriptions, at the most subscriptions."""
_MEASURED = "notifications"
"""The field of rows with the notifications that there were."""


def measure(run: Run) -> Iterator[Row]:
    size = run["subscriptions"]
    documents = _messages(run, size, run["documents"])
    warm_up(_model(size, _USUAL).texts(200, streams(run.seed)[0]), documents)
    cases = [(size, each) for each in _BY_NOTIFICATIONS] + [(each, _USUAL) for each in run["sizes"] if each != size]
    for subscriptions, notifications in cases:
        run.tell(f"{subscriptions:,} subscriptions, {notifications:,} notifications if there were {size:,}")
        rng, _ = streams(run.seed)
        engine, seconds = filled_engine(_model(size, notifications).texts(subscriptions, rng), run.tell)
        row = measure_documents(run, engine, documents)
        row |= {"fill_seconds": round(seconds, 3), "loaded_per_second": round(subscriptions / seconds)}
        del engine
        for table in _tables(run, subscriptions, notifications):
            yield _row(XPATH, table, subscriptions, notifications) | row
            yield from _of_paper(table, subscriptions, notifications, len(documents))
    yield from _measure_plans(run)


def _measure_plans(run: Run) -> Iterator[Row]:
    """Measure the plans, at sizes that databases can load: on the first one in all cases, on others at the ends."""
    size = run["plan_subscriptions"]
    documents = _messages(run, size, run["plan_documents"])
    cases = [(size, each, IN_5_1) for each in _BY_NOTIFICATIONS]
    cases += [(each, _USUAL, IN_5_2) for each in run["plan_sizes"]]
    with databases(run) as urls:
        for subscriptions, notifications, table in cases:
            is_end = (table == IN_5_1 and notifications in _ENDS) or (subscriptions == size and table == IN_5_2)
            engines = list(urls)[: None if is_end else 1]
            texts = list(_model(size, notifications).texts(subscriptions, streams(run.seed)[0]))
            for row in measure_plans(run, texts, documents, {each: list(PLANS) for each in engines}, urls):
                yield _row(row["entrant"], table, subscriptions, notifications) | row


def _model(subscriptions: int, notifications: int) -> StockXml:
    """The workload in which 10,000 messages have this many notifications if there are these subscriptions.

    It has fewer symbols the fewer subscriptions there are, so that a message's symbol leads to as many of them.
    """
    symbols = max(1, round(StockXml.symbols * subscriptions / _SUBSCRIPTIONS))
    selectivity = notifications / (_MESSAGES * subscriptions)
    model = model_of(_WORKLOAD, symbols=symbols, selectivity=selectivity)
    assert isinstance(model, StockXml)
    return model


def _messages(run: Run, subscriptions: int, count: int) -> list[bytes]:
    _, rng = streams(run.seed)
    events = _model(subscriptions, _USUAL).events(count, rng)
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
        row = _row(f"{plan} (paper)", table, subscriptions, notifications) | {_MEASURED: notifications}
        yield row | {"us_per_event": seconds / documents * 1e6, "seconds": seconds}


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    by_notifications = rows.where(entrant=XPATH, table="5.1")
    yield _grows(_NOTIFICATIONS, by_notifications, _MEASURED, SLIGHT)
    yield _grows(_SIZES, rows.where(entrant=XPATH, table="5.2"), "subscriptions", SUBLINEAR)
    yield _parsing(by_notifications)
    plans = rows.where(table=IN_5_1)
    yield _paths(plans)
    few = max(plans.each(_MEASURED), default=0) < MANY_NOTIFICATIONS
    for finding in (flatter(_FLATTER, plans, _MEASURED), buckets(_BUCKETS, plans, _MEASURED, (LESS, math.inf))):
        is_told = finding.is_measured and few
        yield replace(finding, holds=None, why=_TOO_FEW) if is_told else finding
    yield growth(_GROWTH, rows.where(table=IN_5_2), SUBLINEAR)
    yield against_kernels(_KERNELS, rows.where(table=IN_5_2))


def _parsing(rows: WorkloadRows) -> Finding:
    shares = spreads(rows, "parse_share", _MEASURED)
    if not shares:
        return _PARSING.unmeasured("no size was measured")
    least, share = next(iter(shares.items()))
    ours = f"{share.middle:.0%} at {least:,} (holds from {MOSTLY:.0%})"
    return _PARSING.judged(within(share, MOSTLY), ours)


def _paths(rows: WorkloadRows) -> Finding:
    """The share of matching linear paths in the time of the first documents, by the plan that computes PathMatch."""
    measured = [
        row for row in rows if row.get("path_seconds") is not None and row["entrant"] == f"{UNROLL} on {ENGINES[0]}"
    ]
    if not measured:
        return _PATHS.unmeasured("no plan was measured")
    row = max(measured, key=lambda each: int(each[_MEASURED]))
    share = row["path_seconds"] / row["first_seconds"]
    ours = (
        f"{row['entrant']}: {shown(row['path_seconds'])} of {shown(row['first_seconds'])} s for {row['events']:,} "
        "messages, the first match less the second"
    )
    if share <= NEXT_TO_NOTHING:
        return _PATHS.judged(True, f"{ours} (holds up to {NEXT_TO_NOTHING:.0%})")
    return _PATHS.judged(None, ours, "It bounds the time from above: a first match also prepares statements.")


def _grows(claim: Claim, rows: WorkloadRows, by: str, most: float) -> Finding:
    seconds = spreads(rows, TIME, by)
    power = growth_of(seconds)
    if power is None:
        return claim.unmeasured(f"it takes two numbers of {by}")
    messages = {row[by]: row.get("events", _MESSAGES) for row in rows}
    times = ", ".join(f"{place:,}: {shown(each.middle * messages[place] / 1e6)} s" for place, each in seconds.items())
    return claim.judged(within(power, most=most), f"{times}; as {by}^{power} (holds up to {most:g})")


_TOO_FEW = (
    f"There are less than {MANY_NOTIFICATIONS:,} notifications at the most: what is measured is what every batch of "
    "messages costs."
)
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
    "Each pair that meets is matched once, and PathMatch remembers it.",
    "Path matching is a share of the time of the first messages.",
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
            x=_MEASURED,
            y="seconds",
            x_title="notifications",
            y_title="seconds",
            facet=None,
            where={"table": "5.1"},
        ),
        Plot("sizes", "Time of all messages", y="seconds", y_title="seconds", facet=None, where={"table": "5.2"}),
        Plot(
            "plans",
            "Time of all messages, in databases",
            x=_MEASURED,
            y="seconds",
            x_title="notifications",
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
