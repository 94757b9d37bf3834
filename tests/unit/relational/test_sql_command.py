"""The script of `harken sql --dialect`, run by each database, with hostile ids, names and values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from harken import Engine
from harken.cli import app
from harken.databases.dialects import DIALECTS
from harken.databases.quoting import literal
from harken.schema import format_path

from .test_faults import HOSTILE, events_with, subscriptions_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("harken_attributes", "harken_subscriptions", "harken_events")
# Ranges of numbers and of days as well: PostgreSQL finds those by another index.
SUBSCRIPTIONS = {
    **{id: where for text in HOSTILE for id, where in subscriptions_with(text).items() if "pattern" not in id},
    "narrow": "price BETWEEN 3 AND 7",
    "wide": "price > 3",
    "exact": "price >= 0.1 AND price <= 0.1",
    "late": "ok = TRUE AND price < 4",
}
EVENTS: list[dict[str, Any]] = [
    *(event for text in HOSTILE for event in events_with(text)[:4]),
    *({"price": price} for price in (0.1, 3.0, 7.0, 7.000000000000001, 1e300)),
    {"price": 3.0, "ok": True},
]
Execute = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def expected() -> set[tuple[str, str]]:
    engine = Engine(algorithm="naive")
    assert not engine.subscribe_many(SUBSCRIPTIONS.items()).faults
    matches = engine.match_batch(EVENTS).ids
    return {(str(place), id) for place, ids in enumerate(matches) for id in ids}


@pytest.fixture
def printed(tmp_path: Path) -> Callable[[str], list[str]]:
    """The statements of a dialect, the query last."""
    file = tmp_path / "subscriptions.jsonl"
    lines = (json.dumps({"id": id, "where": where}) for id, where in SUBSCRIPTIONS.items())
    file.write_text("\n".join(lines), encoding="utf-8")

    def run(dialect: str) -> list[str]:
        result = CliRunner().invoke(app, ["sql", str(file), "--dialect", dialect, "--json"])
        assert result.exit_code == 0, result.output
        return [json.loads(line)["sql"] for line in result.stdout.splitlines()]

    return run


def run_script(statements: list[str], name: str, execute: Execute) -> set[tuple[str, str]]:
    """Run all statements, and insert the events before the query. Returns the matches."""
    dialect = DIALECTS[name]
    *before, query = statements
    for statement in before:
        execute(statement)
    columns = dict(execute("SELECT attribute, name FROM harken_attributes"))
    rows = [(str(place), *map(_flat(event).get, columns)) for place, event in enumerate(EVENTS)]
    values = ", ".join(f"({', '.join(literal(each, dialect) for each in row)})" for row in rows)
    execute(f"INSERT INTO harken_events (event, {', '.join(columns.values())}) VALUES {values}")
    pairs = execute(query)
    assert all(exact == 1 for _, _, exact in pairs)
    return {(event, id) for event, id, _ in pairs}


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    """An event by the names in `harken_attributes`, with booleans as integers, as columns hold them."""
    return {format_path((key,)): int(value) if value is True else value for key, value in event.items()}


def test_sqlite(printed: Callable[[str], list[str]], expected: set[tuple[str, str]]) -> None:
    connection = sqlite3.connect(":memory:")
    assert run_script(printed("sqlite"), "sqlite", lambda text: connection.execute(text).fetchall()) == expected
    connection.close()


def test_duckdb(printed: Callable[[str], list[str]], expected: set[tuple[str, str]]) -> None:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        assert run_script(printed("duckdb"), "duckdb", lambda text: connection.execute(text).fetchall()) == expected


@pytest.mark.processes
def test_postgresql(printed: Callable[[str], list[str]], expected: set[tuple[str, str]], url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:

        def execute(text: str) -> list[Any]:
            cursor.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

        statements = printed("postgres")
        assert any("USING gist" in text for text in statements)
        assert run_script(statements, "postgres", execute) == expected
        connection.rollback()


@pytest.mark.slow
def test_spark(printed: Callable[[str], list[str]], expected: set[tuple[str, str]], spark: SparkSession) -> None:
    def execute(text: str) -> list[Any]:
        return [tuple(row) for row in spark.sql(text).collect()]

    try:
        assert run_script(printed("spark"), "spark", execute) == expected
    finally:
        for table in TABLES:
            spark.sql(f"DROP TABLE IF EXISTS {table}")
