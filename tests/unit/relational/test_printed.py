"""The script that `harken sql` prints, run by each database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from harken.databases.dialects import DIALECTS
from harken.databases.quoting import literal
from harken.language.compiled import Compiler
from harken.relational.printed import EVENTS, Script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBSCRIPTIONS = {
    "toy": "category = 'Toy' AND price <= 5",
    "x'; DROP TABLE harken_events; --": "price > 3 AND `a'b` = 'it''s'",
    "not": "price <> 3 AND price NOT BETWEEN 10 AND 20",
    "either": "category IN ('Toy', 'Lamp') OR price = 0.1",
    "like": "category LIKE '%a%p%'",
    "always": "category IS NULL OR category IS NOT NULL",
    "range": "price >= 0.1 AND price < 5",
}
CELLS: list[tuple[str, str | None, float | None, str | None]] = [
    ("1", "Toy", 5.0, None),
    ("2", "Toy", 5.000000000000001, "it's"),
    ("3", "Lamp", 0.1, None),
    ("4", None, 15.0, None),
    ("5", None, None, None),
]
"""An event's name, category, price, and a'b."""
MATCHES = {
    ("1", "toy", 1), ("1", "not", 1), ("1", "either", 1), ("1", "always", 1),
    ("2", "x'; DROP TABLE harken_events; --", 1), ("2", "not", 1), ("2", "either", 1), ("2", "always", 1),
    ("3", "not", 1), ("3", "either", 1), ("3", "always", 1), ("3", "range", 1), ("3", "like", 0),
    ("4", "always", 1), ("5", "always", 1),
    ("1", "like", 0), ("2", "like", 0),
}  # fmt: skip

Execute = Callable[[str], list[Any]]


def check_script(name: str, execute: Execute) -> None:
    dialect, script, compiler = DIALECTS[name], Script(), Compiler()
    for id, where in SUBSCRIPTIONS.items():
        script.add(id, compiler.compile(where).normal_form)
    *statements, query = script.statements(dialect)
    for statement in statements:
        execute(statement)
    columns = dict(execute("SELECT attribute, name FROM harken_attributes"))
    assert set(columns) == {"category", "price", "`a'b`"}
    names = [columns["category"], columns["price"], columns["`a'b`"]]
    rows = ", ".join(f"({', '.join(literal(value, dialect) for value in row)})" for row in CELLS)
    execute(f"INSERT INTO {EVENTS} (event, {', '.join(names)}) VALUES {rows}")
    assert {(event, id, int(exact)) for event, id, exact in execute(query)} == MATCHES


def on_sqlite(test: Callable[[Execute], None]) -> None:
    connection = sqlite3.connect(":memory:")
    test(lambda text: connection.execute(text).fetchall())
    connection.close()


def on_duckdb(test: Callable[[Execute], None]) -> None:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        test(lambda text: connection.execute(text).fetchall())


def on_postgres(url: str, test: Callable[[Execute], None]) -> None:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:

        def execute(text: str) -> list[Any]:
            cursor.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

        test(execute)
        connection.rollback()


def test_sqlite_runs_it() -> None:
    on_sqlite(lambda execute: check_script("sqlite", execute))


def test_duckdb_runs_it() -> None:
    on_duckdb(lambda execute: check_script("duckdb", execute))


@pytest.mark.processes
def test_postgresql_runs_it(url: str) -> None:
    on_postgres(url, lambda execute: check_script("postgres", execute))


def test_spark_runs_it(spark: SparkSession) -> None:
    tables = ("harken_attributes", "harken_subscriptions", "harken_events")
    try:
        check_script("spark", lambda text: [tuple(row) for row in spark.sql(text).collect()])
    finally:
        for table in tables:
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_rows_are_bounded_and_the_query_is_not() -> None:
    script, compiler = Script(), Compiler()
    for place in range(450):
        script.add(str(place), compiler.compile(f"a{place % 3} = {place}").normal_form)
    whole, cut = list(script.statements(DIALECTS["duckdb"])), list(script.statements(DIALECTS["duckdb"], 10))
    assert sum(text.startswith("INSERT INTO harken_subscriptions") for text in whole) == 3
    assert sum(text.count("\n(") for text in cut if text.startswith("INSERT INTO harken_subscriptions")) == 10
    assert whole[-1] == cut[-1]
