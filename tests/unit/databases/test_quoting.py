"""Names and literals: every engine reads what was written, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.databases.connection import Connection
from harken.databases.dialects import DIALECTS, Storage
from harken.databases.quoting import literal, quoted
from harken.errors import CapabilityError, OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    "plain",
    "",
    "it's",
    "''",
    "a\\b",
    "\\'",
    "${x}",
    "$1",
    "--",
    "/*",
    "a\nb",
    "\1",
    "é\U0001f600",
    "x'; DROP TABLE t",
]
NUMBERS = [0.0, -1.5, 0.1, 5.000000000000001, 1e300, 5e-324, 2.0**63, inf, -inf]
WHOLES = [0, -(2**63) + 1, 2**63 - 1]


def check_literals(name: str, rows: Callable[[str], list[Any]]) -> None:
    for value in [*TEXTS, *NUMBERS, *WHOLES, None]:
        text = literal(value, DIALECTS[name])
        if isinstance(value, float):  # as the column that it is inserted into
            text = f"CAST({text} AS {DIALECTS[name].types[Storage.NUMBER]})"
        (row,) = rows(f"SELECT {text}")
        assert row[0] == value, value


def test_an_engine_reads_literals_as_they_are_meant(connection: Connection) -> None:
    check_literals(connection.dialect.name, connection.rows)


def test_spark_reads_literals_as_they_are_meant(spark: SparkSession) -> None:
    check_literals("spark", lambda text: [tuple(row) for row in spark.sql(text).collect()])


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_text_with_nul_is_rejected(name: str) -> None:
    with pytest.raises(CapabilityError, match="code 0"):
        literal("a\0b", DIALECTS[name])


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_is_quoted(name: str) -> None:
    connection = names_database().cursor()
    connection.execute(f"CREATE OR REPLACE TABLE kept AS SELECT 1 AS {quoted(name)}")
    assert [row[0] for row in connection.execute("DESCRIBE kept").fetchall()] == [name]


@cache
def names_database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def test_every_engine_keeps_a_hostile_name(connection: Connection) -> None:
    hostile = 'a"; DROP TABLE t; --'
    assert quoted(hostile) == '"a""; DROP TABLE t; --"'
    connection.run(f"CREATE TABLE {quoted(hostile)} (n INTEGER)")
    assert connection.rows(f"SELECT count(*) FROM {quoted(hostile)}") == [(0,)]
    connection.run(f"DROP TABLE {quoted(hostile)}")


@pytest.mark.parametrize("name", ["", "a\0"])
def test_what_is_no_name_is_rejected(name: str) -> None:
    with pytest.raises(OperatorError, match="is no name of a table or column"):
        quoted(name)
