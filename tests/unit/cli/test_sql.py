"""`harken sql`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import SUBSCRIPTIONS, Run, Write, lines


@pytest.fixture
def file(write: Write) -> Path:
    return write("subscriptions.jsonl", SUBSCRIPTIONS)


def test_the_script_runs(run: Run, file: Path) -> None:
    result = run("sql", str(file), "--dialect", "sqlite")
    assert result.exit_code == 0
    *statements, query = [each["sql"] for each in lines(run("sql", str(file), "--dialect", "sqlite", "--json").stdout)]
    assert result.stdout == "".join(f"{each};\n\n" for each in [*statements, query])
    connection = sqlite3.connect(":memory:")
    connection.executescript(";".join(statements))
    names = dict(connection.execute("SELECT attribute, name FROM harken_attributes"))
    insert = f"INSERT INTO harken_events (event, {names['category']}, {names['price']}) VALUES (?, ?, ?)"
    connection.executemany(insert, [("A1", "Toy", 3.5), ("A2", "Lamp", 30.0), ("A3", "Toy", 7.0)])
    assert sorted(connection.execute(query)) == [("A1", "alice", 1), ("A2", "bob", 1), ("A3", "bob", 1)]
    connection.close()


def test_rows_that_are_left_out_are_told(run: Run, file: Path) -> None:
    result = run("sql", str(file), "--rows", "1")
    assert "'alice'" in result.stdout
    assert "'bob'" not in result.stdout
    assert "1 of 2 rows were left out: --rows is 1" in result.stderr


def test_what_cannot_be_understood_is_told_and_left_out(run: Run, write: Write) -> None:
    file = write("bad.jsonl", [{"id": "bad", "where": "price <"}, *SUBSCRIPTIONS])
    result = run("sql", str(file))
    assert result.exit_code == 1
    assert "bad: " in result.stderr
    assert "'alice'" in result.stdout


def test_a_dialect_that_there_is_not(run: Run, file: Path) -> None:
    result = run("sql", str(file), "--dialect", "oracle")
    assert result.exit_code == 2
    assert "spark, postgres, duckdb, sqlite" in result.stderr
