"""Events and subscriptions sorted into good and bad by Spark, against what the library says of the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.engine import Engine
from harken.errors import HarkenError, SourceError
from harken.events import Event
from harken.events import validate as validate_rows
from harken.limits import Limits
from harken.schema import BUILT_IN, Schema, parse_schema
from harken.spark.validation import attribute_of, check, reason_of, validate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLOSED = parse_schema("""
[domains.period]
type = "enumerated"
values = ["XVI", "XVII"]

[domains.quantity]
type = "integer"
low = 1
high = 10

[attributes]
price = "float"
quantity = "quantity"
period = "period"
closes = "timestamp"
"seller.country" = "string"
"lots.made" = "date"

[event_types.antiques]
price = "mandatory"
period = "mandatory"
quantity = "optional"
closes = "optional"
"seller.country" = "optional multiple"
"lots.made" = "optional multiple"

[event_types.toys]
price = "mandatory"
quantity = "mandatory"
""")
COLUMNS = (
    "id string, event_type array<string>, price decimal(12,2), quantity int, period string, closes timestamp, "
    "seller struct<country: string>, lots array<struct<made: date>>"
)
OPEN = Schema(attributes={("n",): BUILT_IN["integer"], ("s", "t"): BUILT_IN["string"]})


def antiques(count: int) -> list[dict[str, Any]]:
    """Events of which about half have something wrong."""
    rng = random.Random(7)
    noon = datetime(2026, 7, 1, 12)
    return [
        {
            "id": f"e{number}",
            "event_type": rng.choice([*[["antiques"]] * 9, ["toys"], ["antiques", "toys"], ["antique"], [], None]),
            "price": rng.choice([Decimal("3.50"), Decimal("0.10"), Decimal("-1"), None]),
            "quantity": rng.choice([1, 5, 10, 11, None]),
            "period": rng.choice([*["XVI", "XVII"] * 3, "XX", None]),
            "closes": rng.choice([noon + timedelta(microseconds=number), None]),
            "seller": rng.choice([{"country": "FR"}, {"country": None}, None]),
            "lots": rng.choice([[{"made": date(1700, 1, 1)}, None, {"made": None}], [], None]),
        }
        for number in range(count)
    ]


def test_events_are_judged_as_the_library_judges_them(spark: SparkSession) -> None:
    rows = antiques(300)
    events = spark.createDataFrame(rows, COLUMNS).repartition(7)
    judged = validate_rows([{name: row[name] for name in row if name != "id"} for row in rows], CLOSED)
    expected = {rows[each.position]["id"]: each.error for each in judged.rejected}
    assert 50 < len(expected) < 250

    validated = validate(events, CLOSED, event_id="id")

    assert validated.valid.schema == events.schema
    assert validated.rejected.columns == [*events.columns, "reason", "path"]
    came = {row["id"]: row for row in events.collect()}
    tagged = {row["id"]: row for row in validated.tagged.collect()}
    rejected = {id: row for id, row in tagged.items() if row["reason"] is not None}
    assert {id: row["reason"] for id, row in rejected.items()} == {id: reason_of(each) for id, each in expected.items()}
    assert {row["path"] for row in rejected.values()} >= {"event_type", "price", "quantity", "period"}
    assert {id: row[: len(events.columns)] for id, row in tagged.items()} == {
        id: tuple(row) for id, row in came.items()
    }
    assert {row["id"] for row in validated.valid.collect()} == came.keys() - expected.keys()
    assert {row["id"] for row in validated.rejected.collect()} == expected.keys()


def test_rows_stay_as_they_were_to_the_last_bit(spark: SparkSession) -> None:
    events = spark.sql("""
        SELECT * FROM VALUES
          (1, 0.0D, 1.00BD, TIMESTAMP '0002-01-01 00:00:00', TIMESTAMP_NTZ '9999-12-31 23:59:59.9', DATE '1582-10-15'),
          (2, -0.0D, 12345678901234567890.12BD, TIMESTAMP '1969-12-31 23:59:59.999999', NULL, NULL),
          (3, double('nan'), NULL, NULL, TIMESTAMP_NTZ '1900-01-01 00:00:00', DATE '9999-12-31'),
          (4, double('-infinity'), -0.01BD, NULL, NULL, NULL)
        AS t(n, d, b, z, l, y)
    """).selectExpr(
        "*",
        "named_struct('t', string(n), 'u', array(n, NULL)) AS s",
        "map('k', n, 'l', NULL) AS m",
        "array(array(d), array(), NULL) AS a",
        "NULL AS v",
        "float(d) AS f",
        "tinyint(n) AS i",
        "'\\u0000é😀' AS `a.b``c`",
    )
    validated = validate(events.repartition(3), OPEN)
    assert validated.valid.schema == events.schema
    assert sorted(map(repr, validated.valid.collect())) == sorted(map(repr, events.collect()))
    assert validated.rejected.count() == 0


def test_an_open_schema_rejects_what_it_declares_and_passes_the_rest(spark: SparkSession) -> None:
    events = spark.sql("SELECT * FROM VALUES ('x', 1, named_struct('t', 5)), ('y', 2, NULL) AS t(n, other, s)")
    validated = validate(events, OPEN)
    (rejected,) = validated.rejected.where("other = 2").collect()
    assert (rejected["path"], "got 'y'" in rejected["reason"]) == ("n", True)
    (rejected,) = validated.rejected.where("other = 1").collect()
    assert rejected["path"] in ("n", "s.t")


def test_an_event_without_id_is_rejected(spark: SparkSession) -> None:
    events = spark.sql("SELECT * FROM VALUES (1.5D, 1), (double('nan'), 2), (NULL, 3), (NULL, NULL) AS t(id, n)")
    validated = validate(events, OPEN, event_id="id")
    assert [row["n"] for row in validated.valid.collect()] == [1]
    assert {(row["reason"], row["path"]) for row in validated.rejected.collect()} == {
        ("the event has no id: `id` is missing", "id")
    }
    assert validate(events, OPEN).rejected.count() == 0


def test_what_is_valid_is_what_matches(spark: SparkSession) -> None:
    from harken.spark import match

    closed = parse_schema('[attributes]\nprice = "float"\n[event_types.sale]\nprice = "mandatory"')
    rows = "VALUES (1, 'sale', 2.0D, 'x'), (2, 'sale', NULL, 'x'), (3, 'sail', 2.0D, 'x'), (NULL, 'sale', 3.0D, 'x')"
    events = spark.sql(f"SELECT * FROM {rows} AS t(id, event_type, price, _harken_offset)")
    validated = validate(events, closed)
    matched = match(events, [("any", "price > 0")], schema=closed)
    assert (
        {row["id"] for row in validated.valid.collect()} == {row["event_id"] for row in matched.collect()} == {1, None}
    )
    strict = validate(events, closed, event_id="id")
    assert [row["id"] for row in strict.valid.collect()] == [1]


def test_nothing_is_read_before_it_is_asked_for(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    events = spark.range(3).selectExpr("id AS n", "raise_error('it was read') AS s")
    validated = validate(events.withColumn("s", events["s"].cast("string")), Schema())
    with pytest.raises(PySparkException, match="it was read"):
        validated.rejected.collect()


def test_no_events_no_rejections(spark: SparkSession) -> None:
    validated = validate(spark.createDataFrame([], COLUMNS), CLOSED, event_id="id")
    assert validated.tagged.collect() == []


def test_streams_are_validated_too(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.json").write_text('{"n": 1}\n{"n": 2000}\n')
    (source / "2.json").write_text('{"n": -5}\n{"n": 3}\n')
    small = parse_schema('[domains.small]\ntype = "integer"\nlow = 0\nhigh = 9\n[attributes]\nn = "small"')
    events = spark.readStream.schema("n long").json(str(source))
    validated = validate(events, small)
    assert validated.valid.isStreaming
    for name, frame in {"valid_n": validated.valid, "rejected_n": validated.rejected}.items():
        query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
    assert sorted(row["n"] for row in spark.table("valid_n").collect()) == [1, 3]
    assert sorted((row["n"], row["path"]) for row in spark.table("rejected_n").collect()) == [(-5, "n"), (2000, "n")]


@pytest.mark.parametrize(
    ("select", "options", "message", "hint"),
    [
        ("1 AS ident", {"event_id": "idents"}, "the events have no column `idents`", "did you mean `ident`?"),
        ("1 AS n", {"event_id": "zzz"}, "the events have no column `zzz`", "there are n"),
        ("1 AS path", {}, "the DataFrame already has a column `path`", "pass path= another name"),
        ("1 AS why", {"reason": "why"}, "the DataFrame already has a column `why`", "pass reason= another name"),
        ("1 AS n", {"reason": "path"}, "have the same name, `path`", None),
        (
            "array(X'00') AS n",
            {},
            "the column `n` has the Arrow type binary, which an event cannot hold",
            "drop the column",
        ),
        ("struct(array(INTERVAL '1' DAY) AS b) AS n", {}, "the column `n.b` has the Arrow type duration", "cast it"),
        ("INTERVAL '1' MONTH AS n", {}, "Spark cannot hand the columns to Python", "cast it"),
        ("1 AS n, 2 AS n", {}, "the column `n` occurs twice", "rename or drop"),
    ],
)
def test_what_cannot_be_validated_is_rejected_at_once(
    spark: SparkSession, select: str, options: dict[str, str], message: str, hint: str | None
) -> None:
    with pytest.raises(SourceError) as raised:
        validate(spark.sql(f"SELECT {select}"), OPEN, **options)
    assert message in raised.value.message
    assert hint is None or hint in str(raised.value.hint)


def test_where_names_have_no_case_a_column_is_taken_in_any(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS Reason")
    assert validate(events, OPEN).tagged.columns == ["Reason", "reason", "path"]
    spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        with pytest.raises(SourceError, match="already has a column `reason`"):
            validate(events, OPEN)
    finally:
        spark.conf.set("spark.sql.caseSensitive", "true")


def test_an_id_of_a_type_that_no_event_holds_may_still_be_one(spark: SparkSession) -> None:
    events = spark.sql("SELECT X'01' AS id, 'x' AS n")
    assert [row["path"] for row in validate(events, OPEN, event_id="id").rejected.collect()] == ["n"]


def rejection(raw: Any, schema: Schema | None = None, limits: Limits | None = None) -> HarkenError:
    with pytest.raises(HarkenError) as raised:
        Event.of(raw, schema, limits or Limits())
    return raised.value


@pytest.mark.parametrize(
    ("raw", "schema", "path"),
    [
        ({"n": "x"}, OPEN, "n"),
        ({"s": [{"t": 1}]}, OPEN, "s.t"),
        ({"s": {"t": {"u": 1}}}, OPEN, "s.t"),
        ({"a.b": {"it`s `c`": b""}}, None, "`a.b`.`it``s ``c```"),
        ({"a` is `b": b""}, None, "`a`` is ``b`"),
        ({"é": {"in": 2**70}}, None, "é.`in`"),
        ({"a\nb": Decimal("1e999")}, None, "`a\nb`"),
        ({"m": {5: 1}}, None, "m"),
        ({"m": {"in `x`": {("in `y`",): 1}}}, None, "m.`in ``x```"),
        ({"a" * 300: b""}, None, None),
        ({5: 1}, None, None),
        ({"price": 1.0, "period": "XVI"}, CLOSED, "event_type"),
        ({"event_type": "antiquities"}, CLOSED, "event_type"),
        ({"event_type": "antiques", "price": 1.0}, CLOSED, "period"),
        ({"event_type": "antiques", "price": [1.0, 2.0], "period": "XVI"}, CLOSED, "price"),
        ({"event_type": "toys", "price": 1.0, "quantity": 1, "period": "XVI"}, CLOSED, "period"),
        ({"event_type": "toys", "price": 1.0, "quantity": 1, "colour": "red"}, CLOSED, "colour"),
    ],
)
def test_the_attribute_at_fault(raw: Any, schema: Schema | None, path: str | None) -> None:
    assert attribute_of(rejection(raw, schema)) == path


def test_a_limit_is_no_attributes_fault() -> None:
    assert attribute_of(rejection({"a": [1, 2, 3]}, limits=Limits(max_event_values=2))) is None


# Subscriptions

TEXTS = [
    ("good", "price < 5 AND period = 'XVI'"),
    ("good in lines", "price < 5\nOR quantity = 2"),
    ("parse", "price << 5"),
    ("parse in line 2", "price < 5\nAND AND"),
    ("name", "prize < 5"),
    ("type", "price = 'dear'"),
    ("domain", "period = 'XX'"),
    ("never", "price < 5 AND price > 6"),
    ("empty", ""),
    ("", "price < 5"),
    (None, "price < 5"),
    ("no text", None),
]


@pytest.mark.parametrize("schema", [None, CLOSED], ids=["without schema", "with schema"])
def test_subscriptions_are_judged_as_the_engine_judges_them(spark: SparkSession, schema: Schema | None) -> None:
    rows = [{"id": id, "where": where} for id, where in TEXTS]
    faults = (
        Engine(schema)
        .subscribe_many([{name: value for name, value in row.items() if value is not None} for row in rows])
        .faults
    )
    expected = {rows[each.position]["id"]: each.error for each in faults}
    validated = check(spark.createDataFrame(rows, "id string, where string").repartition(3), schema)
    assert validated.valid.columns == ["id", "where"]
    rejected = {row["id"]: (row["reason"], row["place"]) for row in validated.rejected.collect()}
    assert rejected == {id: (reason_of(each), each.place and str(each.place)) for id, each in expected.items()}
    assert {row["id"] for row in validated.valid.collect()} == {id for id, _ in TEXTS} - expected.keys()
    if schema is not None:
        assert rejected["name"] == (
            "the schema has no attribute `prize`; hint: did you mean `price`?",
            "line 1, column 1",
        )
        assert rejected["parse in line 2"][1] == "line 2, column 5"


def test_of_those_with_one_id_the_smallest_text_stays(spark: SparkSession) -> None:
    rows = [
        ("a", "price < 2", None, "ann"),
        ("a", "price < 1", None, "bob"),
        ("a", "<< nothing", None, "cat"),
        ("b", "price < 1", "sql", "ann"),
        ("c", "price < 1", "sql", "dan"),
        ("c", "price < 1", "sql", "bob"),
        ("c", "price < 1", "sql", "bob"),
        ("d", "price < 1", "latin", "bob"),
        ("d", "price < 2", "sql", "bob"),
    ]
    subscriptions = spark.createDataFrame(rows, "id string, where string, language string, owner string")
    validated = check(subscriptions.repartition(4))
    valid, rejected = validated.valid.collect(), validated.rejected.collect()
    assert sorted(map(tuple, valid), key=str) == [rows[1], rows[3], rows[5], rows[8]]
    assert sorted([*map(tuple, valid), *(tuple(row)[:4] for row in rejected)], key=str) == sorted(rows, key=str)
    copies = [row for row in rejected if row["reason"].startswith("another subscription has this id")]
    assert sorted((row["id"], row["owner"]) for row in copies) == [("a", "ann"), ("c", "bob"), ("c", "dan")]
    assert "'latin' is not available" in next(row["reason"] for row in rejected if row["id"] == "d")
    report = Engine().subscribe_many([row.asDict() for row in valid])
    assert (report.accepted, report.faults) == (4, [])


def test_numbers_are_ids_and_other_columns_may_be_anything(spark: SparkSession) -> None:
    given = spark.sql("SELECT * FROM VALUES (1L, 'a = 1', map('x', X'01')), (1L, 'a = 2', NULL) AS t(id, where, extra)")
    validated = check(given, reason="why", place="at")
    assert [(row["id"], row["where"]) for row in validated.valid.collect()] == [(1, "a = 1")]
    assert validated.rejected.columns == ["id", "where", "extra", "why", "at"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (lambda spark: spark.sql("SELECT 1 AS id, '' AS wher"), "the subscriptions have no column `where`"),
        (lambda spark: spark.sql("SELECT '' AS where"), "the subscriptions have no column `id`"),
        (lambda spark: spark.sql("SELECT 1 AS id, '' AS where, 1 AS place"), "already has a column `place`"),
        (lambda spark: spark.readStream.format("rate").load(), "checking subscriptions needs a DataFrame that ends"),
    ],
)
def test_what_cannot_be_checked_is_rejected_at_once(
    spark: SparkSession, frame: Callable[[SparkSession], DataFrame], message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        check(frame(spark))


def test_timestamps_of_any_zone_are_the_same_moments(spark: SparkSession) -> None:
    late = Schema(attributes={("at",): BUILT_IN["timestamp"]})
    events = spark.createDataFrame([(datetime(2026, 7, 1, 12, tzinfo=UTC),)], "at timestamp")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        validated = validate(events, late)
        assert validated.valid.selectExpr("unix_micros(at)").first()[0] == 1782907200000000  # type: ignore[index]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
