"""The columns of Arrow and of Spark, and the schemas that are made of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from harken import Engine, Schema
from harken.errors import CheckError
from harken.schema import BUILT_IN, EventColumns, parse_path
from harken.schema.event_columns import Entries, Fields, Leaf

ARROW = pa.schema(
    [
        ("name", pa.string()),
        ("view", pa.string_view()),
        ("word", pa.dictionary(pa.int32(), pa.large_string())),
        ("count", pa.uint8()),
        ("price", pa.float32()),
        ("amount", pa.decimal128(12, 2)),
        ("is_new", pa.bool_()),
        ("at", pa.timestamp("ns", "UTC")),
        ("day", pa.date64()),
        ("tags", pa.list_(pa.string())),
        ("seller", pa.struct([("country", pa.string()), ("since", pa.date32())])),
        ("items", pa.large_list(pa.struct([("qty", pa.int64()), ("blob", pa.binary())]))),
        ("nothing", pa.null()),
        ("blob", pa.binary()),
        ("took", pa.duration("s")),
        ("labels", pa.map_(pa.string(), pa.int64())),
        ("a.b", pa.int64()),
        ("event_type", pa.string()),
    ]
)
SPARK = (
    spark.StructType()
    .add("name", spark.StringType())
    .add("code", spark.CharType(3))
    .add("short", spark.VarcharType(9))
    .add("count", spark.ByteType())
    .add("big", spark.LongType())
    .add("price", spark.DoubleType())
    .add("amount", spark.DecimalType(12, 2))
    .add("is_new", spark.BooleanType())
    .add("at", spark.TimestampType())
    .add("local", spark.TimestampNTZType())
    .add("day", spark.DateType())
    .add("tags", spark.ArrayType(spark.StringType()))
    .add("seller", spark.StructType().add("country", spark.StringType()).add("since", spark.DateType()))
    .add(
        "items",
        spark.ArrayType(spark.StructType().add("qty", spark.IntegerType()).add("blob", spark.BinaryType())),
    )
    .add("nothing", spark.NullType())
    .add("blob", spark.BinaryType())
    .add("doc", spark.VariantType())
    .add("took", spark.DayTimeIntervalType())
    .add("labels", spark.MapType(spark.StringType(), spark.LongType()))
    .add("a.b", spark.ShortType())
    .add("event_type", spark.StringType())
)


def domains(schema: Schema) -> dict[str, str]:
    return {".".join(path): domain.name for path, domain in schema.attributes.items()}


def test_schema_from_arrow() -> None:
    assert domains(Schema.from_arrow(ARROW)) == {
        "name": "string",
        "view": "string",
        "word": "string",
        "count": "integer",
        "price": "float",
        "amount": "float",
        "is_new": "boolean",
        "at": "timestamp",
        "day": "date",
        "tags": "string",
        "seller.country": "string",
        "seller.since": "date",
        "items.qty": "integer",
        "a.b": "integer",
    }
    assert Schema.from_arrow(ARROW).domain_of(("a.b",)) == BUILT_IN["integer"]


def test_schema_from_spark() -> None:
    assert domains(Schema.from_spark(SPARK)) == {
        "name": "string",
        "code": "string",
        "short": "string",
        "count": "integer",
        "big": "integer",
        "price": "float",
        "amount": "float",
        "is_new": "boolean",
        "at": "timestamp",
        "local": "timestamp",
        "day": "date",
        "tags": "string",
        "seller.country": "string",
        "seller.since": "date",
        "items.qty": "integer",
        "a.b": "integer",
    }


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("prise > 1", "did you mean `price`"),
        ("price > '1'", "does not compare"),
        ("items.qtty > 1", "did you mean `items.qty`"),
        ("blob = 'x'", "no attribute `blob`"),
    ],
)
def test_subscriptions_are_checked_by_it_when_they_come(where: str, reason: str) -> None:
    with pytest.raises(CheckError, match=reason):
        Engine(Schema.from_arrow(ARROW)).subscribe("a", where)


def test_events_of_these_columns_are_valid_by_it() -> None:
    table = pa.table({"price": [0.5, 2.0], "count": [1, 2], "seller": [{"country": "BE"}, None]})
    engine = Engine(Schema.from_arrow(table.schema))
    engine.subscribe("a", "price > 1 AND count = 2")
    engine.subscribe("b", "seller.country = 'BE'")
    found = engine.match_batch(table)
    assert (found.ids, found.rejected) == ([["b"], ["a"]], ())


@pytest.mark.parametrize("columns", [EventColumns.from_arrow(ARROW), EventColumns.from_spark(SPARK)])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("price", "number"), ("tags", "string"), ("items.qty", "number"), ("labels.anything", "number"), ("blob", None)],
)
def test_what_is_at_a_path(columns: EventColumns, name: str, kind: str | None) -> None:
    found = columns.at(parse_path(name))
    assert isinstance(found, Leaf)
    assert found.kind == kind


@pytest.mark.parametrize("columns", [EventColumns.from_arrow(ARROW), EventColumns.from_spark(SPARK)])
def test_what_is_no_leaf(columns: EventColumns) -> None:
    assert isinstance(columns.at(("seller",)), Fields)
    assert isinstance(columns.at(("items",)), Fields)
    assert isinstance(columns.at(("labels",)), Entries)
    assert columns.at(("a", "b")) is None
    assert columns.at(("price", "cents")) is None
    assert columns.at(("PRICE",)) is None
