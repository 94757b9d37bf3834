"""Columns in Spark's DDL: what is found without Spark, judged by Spark itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.pipeline.config import check_config
from harken.pipeline.config.ddl import MAX_DEPTH, TYPES, DdlColumn, read_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH_SPARK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def spark_takes(spark: SparkSession, text: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        spark.read.schema(text)
    except PySparkException:
        return False
    return True


def test_columns_with_their_types() -> None:
    columns, faults = read_ddl(
        "id STRING NOT NULL COMMENT 'it''s', `a b` decimal(10, 2), c ARRAY<STRUCT<x: INT, y INT>>"
    )
    assert columns == [DdlColumn("id", "string"), DdlColumn("a b", "decimal"), DdlColumn("c", "array")]
    assert faults == []


@pytest.mark.parametrize(
    ("text", "offset", "message", "hint"),
    [
        ("id STRNG", 3, "there is no type STRNG", "did you mean `STRING`?"),
        ("id VARCHAR(20), b INT", 3, "there is no type VARCHAR", "did you mean `STRING`?"),
        ("id bool", 3, "there is no type bool", "did you mean `BOOLEAN`?"),
        ("id", 2, "column `id` has no type before the end", None),
        ("id STRING,", 10, "expected the name of a column, not the end", None),
        ("id STRING price DOUBLE", 10, "expected `,` before `price`", None),
        ("my-id STRING", 2, "column `my` has no type before `-`", "put a name with other characters in backticks"),
        ("größe INT", 2, "column `gr` has no type before `ö`", "put a name with other characters in backticks"),
        ("id: STRING", 2, "column `id` has no type before `:`", None),
        ("7 INT", 0, "expected the name of a column, not `7`", "put a name with other characters in backticks"),
        ("a ARRAY<INT", 11, "expected `>` before the end", None),
        ("a MAP<INT>", 9, "expected `,` before `>`", None),
        ("a STRUCT<b: >", 12, "column `b` has no type before `>`", None),
        ("a DECIMAL(x)", 10, "expected a number, not `x`", None),
        ("a INT NOT NUL", 10, "expected NULL before `NUL`", None),
        ("a INT COMMENT b", 14, "expected a comment in quotes, not `b`", None),
        ("", 0, "expected the name of a column, not the end", None),
    ],
)
def test_a_fault_and_where_it_is(spark: SparkSession, text: str, offset: int, message: str, hint: str | None) -> None:
    _, faults = read_ddl(text)
    assert [(fault.offset, fault.message, fault.hint) for fault in faults] == [(offset, message, hint)]
    assert not spark_takes(spark, text)


def test_all_unknown_types_are_told_and_those_that_are_twice() -> None:
    _, faults = read_ddl("a STRNG(3), b ARRAY<DUBLE>, c FOO<x, (y)>, a INT, a INT")
    assert [fault.message.split()[-1] for fault in faults] == ["STRNG", "DUBLE", "FOO", "twice", "twice"]


@pytest.mark.parametrize("word", [word for word in TYPES if word not in ("ARRAY", "MAP", "STRUCT")])
def test_spark_knows_every_type(spark: SparkSession, word: str) -> None:
    assert spark_takes(spark, f"a {word}, b ARRAY<{word}>")


def test_types_nest_only_so_deep() -> None:
    for depth, right in [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (100_000, False)]:
        assert (not read_ddl("a " + "ARRAY<" * depth + "INT" + ">" * depth)[1]) == right


NAMES = st.sampled_from(["id", "_a", "a1", "order", "`a b`", "`größe`", "`x``y`", "comment", "NOT"])
SCALARS = st.sampled_from(
    [
        "INT",
        "string",
        "Double",
        "DECIMAL(10,2)",
        "decimal(5)",
        "BOOLEAN",
        "DATE",
        "timestamp_ntz",
        "STRING COLLATE UTF8_LCASE",
    ]
)
ENDINGS = st.sampled_from(["", "", " NOT NULL", " COMMENT 'a, b'", ' NOT NULL COMMENT "x"', " /* , */", " -- x\n"])


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    fields = st.lists(st.tuples(NAMES, st.sampled_from([": ", " "]), inner, ENDINGS).map("".join), max_size=3)
    return (
        inner.map(lambda each: f"ARRAY<{each}>")
        | st.tuples(inner, inner).map(lambda each: f"map< {each[0]} , {each[1]} >")
        | fields.map(lambda each: f"STRUCT<{', '.join(each)}>")
    )


COLUMNS = st.lists(
    st.tuples(NAMES, st.just(" "), st.recursive(SCALARS, nested, max_leaves=6), ENDINGS).map("".join),
    min_size=1,
    max_size=4,
).map(", ".join)
PIECES = [
    "id",
    "INT",
    "DUBLE",
    "<",
    ">",
    "(",
    ")",
    ",",
    ":",
    "3",
    "'x'",
    "`a`",
    " ",
    "NOT",
    "NULL",
    "COMMENT",
    "ARRAY",
    "-",
]


def agree(spark: SparkSession, text: str) -> None:
    _, faults = read_ddl(text)
    # Names that are there twice are rejected by Spark when it reads.
    told = [fault for fault in faults if "twice" not in fault.message]
    assert (not told) == spark_takes(spark, text), told


@WITH_SPARK
@given(COLUMNS)
def test_what_is_right_is_right_for_spark(spark: SparkSession, text: str) -> None:
    agree(spark, text)


@WITH_SPARK
@given(COLUMNS, st.data())
def test_what_is_wrong_is_wrong_for_spark(spark: SparkSession, text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 3))
    text = text[:place] + data.draw(st.sampled_from(PIECES)) + text[place + length :]
    _, faults = read_ddl(text)
    if [fault for fault in faults if "twice" not in fault.message]:
        assert not spark_takes(spark, text), faults


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=20).map("".join))
def test_any_text_is_read_or_has_faults_inside_it(text: str) -> None:
    columns, faults = read_ddl(text)
    assert columns or faults
    assert all(0 <= fault.offset <= len(text) for fault in faults)


@pytest.mark.parametrize("unit", ["millisecond", "second", "minute", "hour", "day", "week"])
@pytest.mark.parametrize("number", [0, 1, 7])
def test_spark_understands_every_interval(spark: SparkSession, number: int, unit: str) -> None:
    text = f"""
        mode = "stream"
        checkpoint = "hdfs:///state"
        trigger = "{number} {unit}"
        [source]
        format = "rate"
        [subscriptions]
        table = "rules"
        [[sink]]
        format = "console"
    """
    config, faults = check_config(text)
    assert config is not None, faults
    jvm = spark._jvm
    assert jvm is not None
    # It raises for what it does not understand.
    trigger = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(config.trigger)
    seconds = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
    assert trigger.intervalMs() == number * seconds.get(unit, 604_800_000)
