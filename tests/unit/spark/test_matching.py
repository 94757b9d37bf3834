"""`match` on DataFrames: columns and fields of the result, invalid events, and options that are rejected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from drawn import generate
from harken import Engine
from harken.errors import (
    HarkenError,
    MismatchError,
    MismatchWarning,
    SchemaError,
    SegmentError,
    SourceError,
    SubscriptionError,
)
from harken.limits import Limits
from harken.schema import parse_schema
from harken.spark import Index, match
from harken.spark.matching import choose
from harken.spark.task import MatchTask, matching_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTIONS = [
    {"id": "alice", "where": "category = 'Toy' AND price < 5", "owner": "A", "level": 3},
    {"id": "bob", "where": "price < 5 OR category LIKE '%oo%'", "owner": "B"},
    {"id": "never", "where": "price > 100"},
]


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows = [("e1", "Toy", 3.5, b"raw"), ("e2", "Toy", 9.0, b"x"), ("e3", "Book", 50.0, None), ("e4", None, None, b"")]
    return spark.createDataFrame(rows, "id string, category string, price double, payload binary")


def rows_of(matches: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in matches.collect()), key=repr)


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
def test_pairs(events: DataFrame, strategy: str) -> None:
    matches = match(events, SUBSCRIPTIONS, strategy=strategy, columns=["price", "payload"], fields=["owner", "level"])
    assert matches.columns == ["event_id", "subscription_id", "owner", "level", "price", "payload"]
    assert rows_of(matches) == [
        ("e1", "alice", "A", "3", 3.5, bytearray(b"raw")),
        ("e1", "bob", "B", None, 3.5, bytearray(b"raw")),
        ("e3", "bob", "B", None, 50.0, None),
    ]


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
def test_lists_and_counts_have_a_row_for_every_event(events: DataFrame, strategy: str) -> None:
    lists = match(events, SUBSCRIPTIONS, strategy=strategy, output="lists", columns=["category"])
    assert [(id, sorted(ids), category) for id, ids, category in rows_of(lists)] == [
        ("e1", ["alice", "bob"], "Toy"),
        ("e2", [], "Toy"),
        ("e3", ["bob"], "Book"),
        ("e4", [], None),
    ]
    counts = match(events, SUBSCRIPTIONS, strategy=strategy, output="counts")
    assert rows_of(counts) == [("e1", 2), ("e2", 0), ("e3", 1), ("e4", 0)]


def test_only_needed_columns_are_sent_to_python(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    match(events, [("a", "price < 5")]).explain()
    plan = capsys.readouterr().out
    assert "harken_replicate_index_version_1" in plan
    assert "payload" not in plan.split("Scan")[0]
    match(events, [("a", "price < 5")], strategy="shard", shards=3).explain()
    assert "harken_shard_of_3_index_version_1" in capsys.readouterr().out


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_a_workload_matches_as_in_one_process(spark: SparkSession, strategy: str, partitions: int) -> None:
    workload = generate("mixed", 4_000, 600)
    engine = Engine()
    engine.subscribe_many(workload.table())
    expected = engine.match_batch(workload.events)
    events = workload.events.append_column("n", pa.array(range(600)))
    frame = spark.createDataFrame(events).repartition(partitions)
    matches = match(frame, engine, event_id="n", strategy=strategy)
    pairs = sorted((row["event_id"], row["subscription_id"]) for row in matches.collect())
    assert pairs == sorted((place, id) for place, ids in enumerate(expected.ids) for id in ids)


def test_a_version_is_pinned_when_match_is_called(events: DataFrame, tmp_path: Path) -> None:
    index = Index(tmp_path)
    engine = Engine()
    engine.subscribe("first", "price < 5")
    index.publish(engine)
    before = match(events, tmp_path)
    engine.subscribe("second", "price < 5")
    index.publish(engine)
    assert [row["subscription_id"] for row in before.collect()] == ["first"]
    assert sorted(row["subscription_id"] for row in match(events, str(tmp_path)).collect()) == ["first", "second"]


def test_what_an_engine_saved_is_an_index(events: DataFrame, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("cheap", "price < 5")
    engine.save(tmp_path)
    assert rows_of(match(events, tmp_path)) == [("e1", "cheap")]


def test_subscriptions_come_in_many_ways(spark: SparkSession, events: DataFrame) -> None:
    ways = [
        {"cheap": "price < 5"},
        [("cheap", "price < 5")],
        pa.table({"id": ["cheap"], "where": ["price < 5"]}),
        spark.createDataFrame([("cheap", "price < 5")], "id string, where string"),
    ]
    for way in ways:
        assert rows_of(match(events, way)) == [("e1", "cheap")], type(way)


def test_an_answer_is_a_dataframe_like_any_other(events: DataFrame) -> None:
    matches = match(events, SUBSCRIPTIONS)
    joined = matches.join(events, matches["event_id"] == events["id"]).groupBy("category").count()
    assert {(row["category"], row["count"]) for row in joined.collect()} == {("Toy", 2), ("Book", 1)}
    assert matches.union(matches).distinct().count() == 3


def test_nested_values_and_times(spark: SparkSession) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    rows = [(1, moment, Decimal("1.5"), [(1, 9.0), (2, 1.0)], {"deep": 2**62 + 1}), (2, None, None, [], None)]
    kinds = "n long, at timestamp, price decimal(10,2), items array<struct<qty:int, cost:double>>, o struct<deep:long>"
    texts = {
        "time": "at < TIMESTAMP '2026-01-02T03:04:05.678902Z' AND at > TIMESTAMP '2026-01-02T03:04:05.6789Z'",
        "decimal": "price = 1.5",
        "binding": "items.qty = 2 AND items.cost < 5",
        "no_binding": "items.qty = 2 AND items.cost > 5",
        "large": f"o.deep > {2**62}",
        "missing": "items IS NULL AND o IS NULL",
    }
    matches = match(spark.createDataFrame(rows, kinds), texts, event_id="n")
    assert rows_of(matches) == [(1, "binding"), (1, "decimal"), (1, "large"), (1, "time"), (2, "missing")]


def test_names_that_spark_does_not_pass_on(spark: SparkSession) -> None:
    events = spark.createDataFrame(pa.table({"the.id": [1, 2], "a`b": [3, 4], "c d": ["x", "y"]}))
    matches = match(events, {"s": "`a``b` = 3 AND `c d` = 'x'"}, event_id="the.id", columns=["c d", "a`b"])
    assert rows_of(matches) == [(1, "s", "x", 3)]


def test_no_events_and_no_subscriptions(spark: SparkSession, events: DataFrame) -> None:
    assert match(events.limit(0), SUBSCRIPTIONS).collect() == []
    assert match(events, []).collect() == []
    assert rows_of(match(events, [], output="counts")) == [("e1", 0), ("e2", 0), ("e3", 0), ("e4", 0)]
    assert rows_of(match(events, [], output="counts", strategy="shard")) == rows_of(match(events, [], output="counts"))


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
def test_exact_values_are_matched_in_place_of_the_columns(spark: SparkSession, strategy: str) -> None:
    rows = [
        *(("e1", 3.5, None), ("e2", None, '{"price":"lots"}'), ("e3", 2.0**53, '{"price":9007199254740993,"no":1}')),
        ("e4", None, None),
    ]
    events = spark.createDataFrame(rows, "id string, price double, beside string")
    wheres = ["price < 5", "price = 'lots'", "price = 9007199254740993", "price IS NULL", "no = 1"]
    matches = match(
        events, dict(zip(wheres, wheres, strict=True)), strategy=strategy, on_mismatch="ignore", exact_values="beside"
    )
    assert matches.columns == ["event_id", "subscription_id"]
    assert rows_of(matches) == [
        ("e1", "price < 5"),
        ("e2", "price = 'lots'"),
        ("e3", "price = 9007199254740993"),
        ("e4", "price IS NULL"),
    ]


def test_a_column_of_exact_values_is_no_attribute(spark: SparkSession) -> None:
    schema = parse_schema('[attributes]\nprice = "float"\n[event_types.sale]\nprice = "mandatory"')
    prices = [("e1", 3.5, None), ("e2", None, '{"price":4}'), ("e3", None, '{"price":"lots"}')]
    rows = [(id, "sale", *price) for id, *price in prices]
    events = spark.createDataFrame(rows, "id string, event_type string, price double, beside string")
    matches = match(events, [("a", "price < 5")], schema=schema, on_error="tell", exact_values="beside")
    outcomes = {row["event_id"]: (row["subscription_id"], row["error"] is None) for row in matches.collect()}
    assert outcomes == {"e1": ("a", True), "e2": ("a", True), "e3": (None, False)}
    with pytest.raises(SourceError, match="have no column `besides`"):
        match(events, [("a", "price < 5")], exact_values="besides")


SCHEMA = parse_schema("""
[domains.grade]
type = "enumerated"
values = ["low", "high"]
[attributes]
grade = "grade"
price = "float"
""")


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
def test_events_that_are_not_valid(spark: SparkSession, strategy: str) -> None:
    events = spark.createDataFrame([(1, "low"), (2, "medium"), (3, "high")], "id long, grade string")
    options: dict[str, Any] = {"schema": SCHEMA, "strategy": strategy}
    texts = {"low": "grade = 'low'", "any": "grade IS NOT NULL"}
    assert rows_of(match(events, texts, **options)) == [(1, "any"), (1, "low"), (3, "any")]
    assert rows_of(match(events, texts, output="counts", **options)) == [(1, 2), (2, None), (3, 1)]
    rows = rows_of(match(events, texts, output="counts", on_error="tell", **options))
    assert [row[:2] for row in rows] == [(1, 2), (2, None), (3, 1)]
    assert "medium" in rows[1][2]
    assert rows[0][2] is None
    pairs = [row for row in rows_of(match(events, texts, on_error="tell", **options)) if row[2] is not None]
    assert {row[:2] for row in pairs} == {(2, None)}
    with pytest.raises(Exception, match="medium"):
        match(events, texts, on_error="fail", **options).collect()


def test_subscriptions_that_fail_on_an_event(spark: SparkSession) -> None:
    """A search for a binding that would take too long fails for that event alone."""
    engine = Engine(limits=Limits(max_bindings=50))
    engine.subscribe("hard", "a < b AND b < c AND c < d AND d < a")
    engine.subscribe("easy", "n > 0")
    many, one = list(range(10)), [1]
    events = spark.createDataFrame(
        [(1, many, many, many, many), (2, one, one, one, one)],
        "n long, a array<int>, b array<int>, c array<int>, d array<int>",
    )
    matches = rows_of(match(events, engine, event_id="n", on_error="tell"))
    assert {(id, name) for id, name, error in matches if error is None} == {(1, "easy"), (2, "easy")}
    (failed,) = [row for row in matches if row[2] is not None]
    assert failed[:2] == (1, "hard")
    lists = rows_of(match(events, engine, event_id="n", output="lists", on_error="tell"))
    assert lists[0][1] == ["easy"]
    assert "hard" in lists[0][2]


def test_wrong_calls(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the events have no column of ids"):
        match(events.drop("id"), SUBSCRIPTIONS)
    with pytest.raises(SourceError, match="no column `pricee`") as caught:
        match(events, SUBSCRIPTIONS, columns=["pricee"])
    assert "price" in (caught.value.hint or "")
    with pytest.raises(HarkenError, match="no strategy 'shards'") as caught:
        match(events, SUBSCRIPTIONS, strategy="shards")
    assert "shard" in (caught.value.hint or "")
    with pytest.raises(HarkenError, match="no output"):
        match(events, SUBSCRIPTIONS, output="pair")
    with pytest.raises(HarkenError, match="two columns `event_id`"):
        match(events.withColumnRenamed("price", "event_id"), SUBSCRIPTIONS, event_id="id", columns=["event_id"])
    with pytest.raises(HarkenError, match="are columns of pairs, not of"):
        match(events, SUBSCRIPTIONS, output="lists", fields=["owner"])
    with pytest.raises(SubscriptionError, match="'bad' is faulty, and 1 others"):
        match(events, {"bad": "price <", "worse": "", "good": "price < 5"})
    with pytest.raises(SchemaError, match="has the schema that it was built with"):
        match(events, tmp_path, schema=SCHEMA)
    with pytest.raises(SegmentError, match="has no index") as caught:
        match(events, "price > 5")
    assert caught.value.hint == "it reads like a condition: pass pairs, [('id', 'price > 5')], or a DataFrame"
    with pytest.raises(SourceError, match="no column `where`"):
        match(events, spark.createDataFrame([("a", "x = 1")], "id string, query string"))


def test_the_strategy_goes_by_size(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("a", "x = 1")
    version = Index(tmp_path).publish(engine)
    assert choose(version, spark).name == "replicate"
    small = choose(version, spark, memory=version.nbytes // 3 - 1)
    assert (small.name, small.shards) == ("shard", 4)
    assert "MB" in str(small)
    assert choose(version, spark, strategy="shard", shards=5).shards == 5
    with pytest.raises(HarkenError, match="goes with the strategy shard"):
        choose(version, spark, strategy="replicate", shards=2)


def test_shards_reject_the_same_events_as_the_whole_index(spark: SparkSession) -> None:
    engine = Engine(limits=Limits(max_event_values=20))
    engine.subscribe_many([(f"t{place}", f"tags = {place}") for place in range(20)])
    engine.subscribe_many([(f"p{place}", f"price >= {place}") for place in range(20)])
    events = spark.createDataFrame([(1, list(range(30)), 5), (2, [3], 1)], "id long, tags array<int>, price int")
    whole = rows_of(match(events, engine, on_error="tell"))
    assert rows_of(match(events, engine, on_error="tell", strategy="shard", shards=4)) == whole
    assert [row[:2] for row in whole if row[2] is not None] == [(1, None)]


def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def test_results_come_in_batches_of_bounded_size(tmp_path: Path) -> None:
    """With many matches after a stretch without any, and with long columns."""
    engine = Engine()
    engine.subscribe_many([(f"s{place}", "x = 1") for place in range(300)])
    version = Index(tmp_path).publish(engine)
    for length, most_rows in ((10, 1 << 18), (100_000, 2_000)):
        rows = 4_000 if length == 10 else 40
        table = pa.table({"id": range(rows), "x": [0] * (rows // 2) + [1] * (rows // 2), "text": ["a" * length] * rows})
        task = MatchTask(((version, None),), "pairs", "id", ("text",), (), "skip", ("event_id", "s", "text"))
        batches = list(sizes(matching_step(task)(table.to_batches())))
        assert sum(each.column("rows")[0].as_py() for each in batches) == rows // 2 * 300
        assert max(each.column("rows")[0].as_py() for each in batches) <= most_rows
        assert max(each.column("bytes")[0].as_py() for each in batches) < 1 << 28
    listed = MatchTask(((version, None),), "lists", "id", (), (), "skip", ("event_id", "s"))
    table = pa.table({"id": range(8_000), "x": [0] * 4_000 + [1] * 4_000})
    lists = list(matching_step(listed)(table.to_batches()))
    assert sum(len(each.column(1).flatten()) for each in lists) == 4_000 * 300
    assert len(lists) > 2


def test_fields_of_many_matches(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe_many([{"id": f"s{n}", "where": f"x >= {n}", "owner": f"o{n % 3}", "n": n} for n in range(50)])
    Index(tmp_path).publish(engine)
    events = spark.range(200).selectExpr("id", "id % 60 AS x")
    matches = match(events, tmp_path, fields=["owner", "n"]).collect()
    assert len(matches) > 1_000
    assert all(row["owner"] == f"o{int(row['n']) % 3}" and row["subscription_id"] == f"s{row['n']}" for row in matches)


def test_an_engine_that_is_matched_with_stays_what_it_was(events: DataFrame, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("cheap", "price < 5")
    engine.save(tmp_path)
    follower = Engine.load(tmp_path, follow=True)
    assert len(match(events, follower).collect()) == 1
    engine.subscribe("dear", "price > 40")
    engine.save(tmp_path)
    assert follower.match({"price": 50}).ids == ["dear"]


def test_a_version_that_a_query_uses_stays(events: DataFrame, tmp_path: Path) -> None:
    index, engine = Index(tmp_path), Engine()
    engine.subscribe("cheap", "price < 5")
    index.publish(engine)
    matches = match(events, tmp_path)
    for _ in range(3):
        index.publish(engine, keep=1)
    assert index.versions() == [1, 4]
    assert rows_of(matches) == [("e1", "cheap")]


@pytest.mark.parametrize("kind", ["map<string,int>", "struct<deep: array<map<string,int>>>"])
def test_events_with_maps_are_matched_in_shards(spark: SparkSession, kind: str) -> None:
    texts = {"first": "n = 1", "any": "n > 0", "third": "n = 3"}
    value = {"k": 1} if kind.startswith("map") else ([{"k": 1}, {}],)
    rows = [(value, 1), (value, 2), (None, 3)]
    events = spark.createDataFrame(rows, f"held {kind}, n long")
    for options in ({"event_id": "n", "columns": ["held"]}, {"event_id": "held", "columns": ["n"]}):
        for output in ("pairs", "lists", "counts"):
            matches = [
                [
                    tuple(sorted(part) if name == "subscription_ids" else part for name, part in row.asDict().items())
                    for row in match(events, texts, strategy=strategy, output=output, **options).collect()
                ]
                for strategy in ("replicate", "shard")
            ]
            assert sorted(matches[1], key=repr) == sorted(matches[0], key=repr)


def test_every_shard_has_tasks_of_its_own(spark: SparkSession) -> None:
    """If Spark partitions by id, and if it only partitions by a hash, as before 4.1."""
    from pyspark.sql import functions as f

    from harken.spark.matching import _placed

    class Before41:
        """The DataFrame without the methods that Spark 4.1 added."""

        def __init__(self, rows: DataFrame) -> None:
            self.repartition, self.sparkSession = rows.repartition, rows.sparkSession

    rows = spark.range(200).select((f.col("id") % 12).cast("int").alias("wanted"))
    for frame in (rows, Before41(rows)):
        placed = _placed(frame, f.col("wanted"), 12)  # type: ignore[arg-type]
        partitions = placed.select("wanted", f.spark_partition_id()).distinct().collect()
        assert len(partitions) == len({row[1] for row in partitions}) == 12


def test_a_column_keeps_its_watermark(spark: SparkSession) -> None:
    events = spark.readStream.format("rate").load().withColumnRenamed("value", "id")
    marked = events.withWatermark("timestamp", "10 minutes")
    matches = match(marked, {"all": "id >= 0"}, columns=["timestamp"])
    assert matches.schema["timestamp"].metadata == marked.schema["timestamp"].metadata != {}
    assert match(events, {"all": "id >= 0"}, columns=["timestamp"]).schema["timestamp"].metadata == {}


# Against the columns


def test_what_subscriptions_ask_for_is_compared_with_the_columns(events: DataFrame) -> None:
    texts = {"typo": "prise > 1", "case": "PRICE > 1", "text": "price > '1'", "good": "price < 5", "id": "id = 'e1'"}
    with pytest.warns(MismatchWarning) as caught:
        matches = match(events, texts)
    assert rows_of(matches) == [("e1", "good"), ("e1", "id")]
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).splitlines()[:4] == [
        "3 of 5 subscriptions can never match these events:",
        "  `PRICE` is no column: 1 subscription asks for it ('case'); did you mean `price`? Names are case-sensitive",
        "  `price` is of type double: 1 subscription compares it with a string ('text'); write numbers without quotes",
        "  `prise` is no column: 1 subscription asks for it ('typo'); did you mean `price`?",
    ]


def test_a_mismatch_may_fail_or_be_ignored(events: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="`prise` is no column"):
        match(events, {"typo": "prise > 1"}, on_mismatch="fail")
    match(events, {"typo": "prise > 1"}, on_mismatch="ignore", fields=["nope"])
    with pytest.raises(HarkenError, match="there is no on_mismatch 'never'"):
        match(events, {"typo": "prise > 1"}, on_mismatch="never")  # type: ignore[arg-type]


def test_an_index_that_fits_is_not_opened_to_see_that(events: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.spark.mismatches.opened", lambda *given, **named: pytest.fail("it was opened"))
    match(events, SUBSCRIPTIONS, on_mismatch="fail")


def test_a_field_that_no_subscription_has(events: DataFrame) -> None:
    with pytest.warns(MismatchWarning, match="no subscription has a field `ownr`; did you mean `owner`"):
        match(events, SUBSCRIPTIONS, fields=["owner", "ownr"])
    with pytest.raises(MismatchError, match="no subscription has a field `nope`"):
        match(events, SUBSCRIPTIONS, fields=["nope"], on_mismatch="fail")


@pytest.mark.parametrize("option", ["columns", "fields"])
def test_a_text_is_no_list_of_names(events: DataFrame, option: str) -> None:
    with pytest.raises(HarkenError, match=rf"`{option}` is a list of names.*\n.*write {option}=\['price'\]"):
        match(events, SUBSCRIPTIONS, **{option: "price"})  # type: ignore[arg-type]


def test_a_column_that_no_event_can_hold_is_rejected_at_once(events: DataFrame) -> None:
    listed = events.selectExpr("id", "price", "array(payload) AS payload")
    with pytest.raises(SourceError, match=r"`payload` is of type binary.*the subscription 'raw' asks for `payload`"):
        match(listed, {"good": "price < 5", "raw": "payload = 'x'"})
    nested = events.selectExpr("id", "struct(price, payload) AS s", "parse_json('1') AS doc")
    with pytest.raises(SourceError, match=r"`s.payload` is of type binary.*the subscription 'a' asks for `s.price`"):
        match(nested, {"a": "s.price < 5"})
    with pytest.raises(SourceError, match=r"`doc` is of type variant.*the subscription 'a' asks for `doc`"):
        match(nested, {"a": "doc IS NOT NULL"})
    assert match(nested, {"a": "id = 'e1'"}, columns=["s"]).count() == 1
