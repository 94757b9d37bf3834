"""Backtests against the engine in one process, on the same events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harken.engine import Engine
from harken.errors import (
    CheckError,
    DuplicateIdError,
    HarkenError,
    MismatchError,
    MismatchWarning,
    ParseError,
    SourceError,
)
from harken.schema import BUILT_IN, Schema
from harken.spark.backtesting import Backtest, backtest
from harken.spark.tallies import tallying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 3, 1, tzinfo=UTC)
COLUMNS = (
    "number long, price decimal(8,2), at timestamp, seller struct<country: string, since: date>, "
    "items array<struct<kind: string, quantity: int>>, `odd.name` string"
)
SUBSCRIPTIONS = {
    "cheap": "price < 2.5",
    "french": "seller.country = 'FR' AND seller.since < DATE '2020-01-01'",
    "two toys": "items.kind = 'toy' AND items.quantity = 2",
    "late": "at >= TIMESTAMP '2026-03-04 00:00:00'",
    "odd": "`odd.name` LIKE 'x%'",
    "never": "price > 1000",
    "unknown": "colour = 'red'",
}


def events(count: int = 400) -> list[dict[str, Any]]:
    return [
        {
            "number": n,
            "price": None if n % 13 == 0 else Decimal(n % 40) / 8,
            "at": None if n % 17 == 0 else START + timedelta(hours=n % 100, minutes=n),
            "seller": None if n % 5 == 0 else {"country": ["FR", "IT", None][n % 3], "since": date(2018 + n % 4, 1, 1)},
            "items": None if n % 7 == 0 else [{"kind": ["toy", "book"][n % 2], "quantity": n % 3}, None],
            "odd.name": "xyz"[n % 3] + "!",
        }
        for n in range(count)
    ]


def frame(spark: SparkSession, rows: list[dict[str, Any]], partitions: int = 6) -> DataFrame:
    # By position: PySpark takes a dot in the name of a key for a path.
    return spark.createDataFrame([tuple(row.values()) for row in rows], COLUMNS).repartition(partitions)


def matched(rows: list[dict[str, Any]], subscriptions: Any = SUBSCRIPTIONS) -> dict[str, list[dict[str, Any]]]:
    """The events that match each subscription, by the engine."""
    engine = Engine()
    engine.subscribe_many(subscriptions.items())
    matches: dict[str, list[dict[str, Any]]] = {id: [] for id in subscriptions}
    for row, ids in zip(rows, engine.match_batch(rows).ids, strict=True):
        for id in ids:
            matches[id].append(row)
    return matches


def counts(test: Backtest) -> dict[str, int]:
    return {row["subscription_id"]: row["matches"] for row in test.counts.collect()}


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> Any:
    with pytest.warns(MismatchWarning, match="`colour` is no column") as caught:
        test = backtest(frame(spark, events()), SUBSCRIPTIONS, event_time="at", examples=4)
    assert [each.filename for each in caught] == [__file__]
    with test:
        yield test


def test_counts_are_the_engines_with_those_that_match_nothing(history: Backtest) -> None:
    expected = {id: len(rows) for id, rows in matched(events()).items()}
    assert expected["never"] == expected["unknown"] == 0
    assert min(expected[id] for id in ("cheap", "french", "two toys", "late", "odd")) > 4
    assert [tuple(row) for row in history.counts.collect()] == sorted(
        expected.items(), key=lambda each: (-each[1], each[0])
    )


def test_the_rate_is_by_day(history: Backtest) -> None:
    expected = Counter(
        (id, None if row["at"] is None else row["at"].date()) for id, rows in matched(events()).items() for row in rows
    )
    assert history.rate.columns == ["subscription_id", "day", "matches"]
    assert {(row[0], row[1]): row[2] for row in history.rate.collect()} == expected
    assert any(day is None for _, day in expected)


def test_examples_are_the_last_events_with_all_columns(spark: SparkSession, history: Backtest) -> None:
    assert history.examples.columns == ["subscription_id", *events(1)[0]]
    assert history.examples.schema["items"] == frame(spark, events(1)).schema["items"]
    by_number = {row["number"]: tuple(row) for row in frame(spark, events()).collect()}
    examples: dict[str, list[Any]] = {}
    for row in history.examples.collect():
        assert tuple(row)[1:] == by_number[row["number"]]
        examples.setdefault(row["subscription_id"], []).append(row)
    expected = {id: rows for id, rows in matched(events()).items() if rows}
    assert examples.keys() == expected.keys()
    for id, rows in expected.items():
        times = sorted((row["at"] or datetime.min.replace(tzinfo=UTC) for row in rows), reverse=True)[:4]
        numbers = {row["number"] for row in rows}
        assert {row["number"] for row in examples[id]} <= numbers
        assert len({row["number"] for row in examples[id]}) == len(times)
        # Without a zone, times come back in that of this process.
        assert [row["at"].astimezone(UTC) for row in examples[id]] == times


def test_the_summary_tells_the_busiest_first(history: Backtest) -> None:
    summary = history.summary()
    expected = {id: len(rows) for id, rows in matched(events()).items()}
    assert (summary.subscriptions, summary.matches, summary.silent) == (7, sum(expected.values()), 2)
    assert [line.matches for line in summary.lines] == sorted(expected.values(), reverse=True)
    first = summary.lines[0]
    days = Counter(str(row["at"].date()) for row in matched(events())[first.subscription_id] if row["at"] is not None)
    assert first.periods == sorted(days.items())
    assert len(first.examples) == 4
    lines = str(summary).splitlines()
    assert lines[0].split() == ["subscription", "matches", "days", "busiest", "day", "example"]
    assert lines[1].split()[:2] == [first.subscription_id, str(first.matches)]
    assert "number=" in lines[1]
    assert lines[-1] == f"{sum(expected.values())} matches of 7 subscriptions, 2 without any"
    assert repr(summary) == str(summary)
    assert "7 subscriptions" in repr(history)


def test_all_matches_can_be_had(history: Backtest) -> None:
    cheap = history.matches.where("subscription_id = 'cheap'").select("event_id").collect()
    assert sorted(row[0] for row in cheap) == [row["number"] for row in matched(events())["cheap"]]


def test_events_are_matched_once_for_all_answers(spark: SparkSession, tmp_path: Path) -> None:
    file = str(tmp_path / "readings")

    def reading(batches: Any) -> Any:
        for batch in batches:
            with open(file, "a") as stream:
                stream.write("x" * batch.num_rows)
            yield batch

    rows = frame(spark, events(60), 4).select("number", "at")
    with backtest(rows.mapInArrow(reading, rows.schema), "number < 10", event_time="at", by="hour") as test:
        assert not Path(file).exists()
        assert counts(test) == {"subscription": 10}
        assert test.rate.columns[1] == "hour"
        assert (test.rate.count(), test.examples.count()) == (10, 5)
        assert len(Path(file).read_text()) == 60
    assert test.rate.count() == 10
    assert len(Path(file).read_text()) == 120  # nothing is cached any more


@pytest.mark.parametrize(
    "given",
    [
        lambda spark, folder: [("a", "number < 3"), {"id": "b", "where": "number = 99"}],
        lambda spark, folder: spark.createDataFrame(
            [("a", "number < 3"), ("b", "number = 99")], "id string, where string"
        ),
        pytest.param(lambda spark, folder: engine(), marks=pytest.mark.slow),
        lambda spark, folder: saved(folder),
        pytest.param(
            lambda spark, folder: pa.table({"id": ["a", "b"], "where": ["number < 3", "number = 99"]}),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["list", "DataFrame", "engine", "path", "Arrow"],
)
def test_subscriptions_come_as_match_takes_them(
    spark: SparkSession, tmp_path: Path, given: Callable[[SparkSession, Path], Any]
) -> None:
    with backtest(frame(spark, events(10), 1), given(spark, tmp_path)) as test:
        assert counts(test) == {"a": 3, "b": 0}


def engine() -> Engine:
    result = Engine()
    result.subscribe_many([("a", "number < 3"), ("b", "number = 99")])
    return result


def saved(folder: Path) -> Path:
    engine().save(folder / "index")
    return folder / "index"


def test_without_a_time_there_is_no_rate_but_all_else(spark: SparkSession) -> None:
    with backtest(frame(spark, events(20)), {"few": "number < 3", "none": "number < 0"}, examples=2) as test:
        with pytest.raises(HarkenError, match="a rate needs the time of events") as raised:
            _ = test.rate
        assert "event_time=" in str(raised.value.hint)
        summary = test.summary()
        assert [(line.matches, len(line.examples)) for line in summary.lines] == [(3, 2), (0, 0)]
        lines = str(summary).splitlines()
        assert lines[0].split() == ["subscription", "matches", "example"]
        assert lines[2].split() == ["none", "0"]


def test_no_events(spark: SparkSession) -> None:
    with backtest(frame(spark, []), SUBSCRIPTIONS, event_time="at", by="month", on_mismatch="ignore") as test:
        summary = test.summary()
        assert [(line.matches, line.periods, line.examples) for line in summary.lines] == [(0, [], [])] * 7
        assert (summary.matches, summary.silent) == (0, 7)


@pytest.mark.parametrize(
    ("by", "kind", "period"),
    [
        pytest.param("hour", "timestamp", "2026-03-04 23:00:00", marks=pytest.mark.slow),
        ("day", "date", "2026-03-04"),
        ("week", "timestamp", "2026-03-02 00:00:00"),
    ],
)
def test_periods(spark: SparkSession, by: str, kind: str, period: str) -> None:
    history = spark.sql("SELECT 1 AS n, TIMESTAMP_NTZ '2026-03-04 23:59:59.9' AS at")
    with backtest(history, "n = 1", event_time="at", by=by) as test:
        assert test.rate.schema[by].dataType.simpleString() == kind
        assert test.rate.selectExpr(f"string({by})", "matches").collect() == [(period, 1)]


@pytest.mark.parametrize(
    ("subscriptions", "options", "error", "message"),
    [
        ("number << 3", {}, ParseError, "unexpected `<`"),
        ({"a": "number < 3", "b": "number <"}, {}, ParseError, "the text ends too early"),
        ("nummer < 3", {"schema": Schema(attributes={("number",): BUILT_IN["integer"]})}, CheckError, "`nummer`"),
        ([("a", "number < 3"), ("a", "number < 4")], {}, DuplicateIdError, "is taken"),
        ("number < 3", {"event_time": "ad"}, SourceError, "the events have no column `ad`"),
        ("number < 3", {"event_time": "number"}, SourceError, "is no time of events, but a bigint"),
        ("number < 3", {"event_id": "id"}, SourceError, "the events have no column `id`"),
        ("number < 3", {"by": "days"}, HarkenError, "there is no period 'days'"),
        ("number < 3", {"examples": -1}, ValueError, "there cannot be -1 examples"),
        ("nummer < 3", {"on_mismatch": "fail"}, MismatchError, "`nummer` is no column"),
        ("number < 3", {"on_mismatch": "warm"}, HarkenError, "there is no on_mismatch 'warm'"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    spark: SparkSession, subscriptions: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        backtest(frame(spark, events(1)), subscriptions, **options)
    if isinstance(raised.value, ParseError | CheckError):
        assert raised.value.place is not None


def test_arguments_come_as_in_match_and_by_their_names(spark: SparkSession) -> None:
    history = frame(spark, events(10), 1)
    with backtest(subscriptions="number < 3", events=history) as test:
        assert [tuple(row) for row in test.counts.collect()] == [("subscription", 3)]
    with pytest.raises(SourceError, match="the events must be a DataFrame, not a str") as raised:
        backtest("number < 3", history)  # type: ignore[arg-type]
    assert "backtest(events, subscriptions)" in (raised.value.hint or "")


def test_which_of_many_is_wrong_is_noted(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ParseError) as raised:
        backtest(frame(spark, events(1)), {"a": "number < 3", "b": "number <", "c": "< 3"})
    assert raised.value.__notes__ == ["This is the subscription 'b', and 1 others are faulty too."]
    with pytest.raises(ParseError) as raised:
        backtest(frame(spark, events(1)), str(saved(tmp_path)))
    assert "pass a pathlib.Path" in raised.value.__notes__[0]


def test_streams_are_rejected(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="backtesting needs a DataFrame that ends"):
        backtest(spark.readStream.format("rate").load(), "value = 1")


def test_a_task_hands_on_what_it_cannot_hold() -> None:
    numbers = np.arange(260_000)
    names = pa.array((numbers % 130_000).astype(str))
    periods = pa.array((numbers % 2).astype(np.int32)).cast(pa.date32())
    whole = pa.StructArray.from_arrays([pa.array(numbers)], ["n"])
    batch = pa.RecordBatch.from_arrays(
        [names, periods, pa.array(numbers), whole], ["subscription_id", "period", "when", "event"]
    )
    answers = list(tallying(1)(batch.slice(start, 20_000) for start in range(0, 260_000, 20_000)))
    assert len(answers) > 2
    table = pa.Table.from_batches(answers)
    counted = table.filter(pc.is_valid(table["matches"]))
    assert pc.sum(counted["matches"]).as_py() == 260_000
    assert counted["event"].null_count == counted.num_rows
    examples = table.filter(pc.is_valid(table["event"])).combine_chunks()
    assert examples["matches"].null_count == examples.num_rows
    ids, last = examples["subscription_id"].to_pylist(), pc.struct_field(examples["event"], "n").to_pylist()
    assert dict(zip(ids, last, strict=True)) == {str(n % 130_000): n for n in range(130_000, 260_000)}


def test_examples_are_the_last_few_of_each_whatever_the_batches() -> None:
    names = ["a", "b", "a", "a", "b", "a", "c", "a"]
    when = [5, 1, None, 7, 2, 7, 0, 6]
    batch = pa.RecordBatch.from_pydict(
        {
            "subscription_id": names,
            "period": pa.nulls(8, pa.date32()),
            "when": pa.array(when, pa.int64()),
            "event": pa.array([{"n": n} for n in range(8)]),
        }
    )
    for size in (1, 3, 8):
        answers = tallying(2)(batch.slice(start, size) for start in range(0, 8, size))
        table = pa.Table.from_batches(answers)
        examples = table.filter(pc.is_valid(table["event"])).to_pylist()
        kept = sorted((row["subscription_id"], row["event"]["n"]) for row in examples)
        assert kept == [("a", 3), ("a", 5), ("b", 1), ("b", 4), ("c", 6)]
        counted = table.filter(pc.is_valid(table["matches"])).to_pylist()
        assert {row["subscription_id"]: row["matches"] for row in counted} == {"a": 5, "b": 2, "c": 1}
    assert list(tallying(2)(iter(()))) == []
