"""All connections: statements, transactions, rows in bulk, errors, and children of `fork()`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from harken.databases.connection import ColumnValues, Connection, is_postgres
from harken.databases.dialects import Storage
from harken.databases.on_postgres import PostgresConnection
from harken.databases.on_sqlite import SqliteConnection
from harken.errors import reason_of

COLUMNS: ColumnValues = {
    "n": (Storage.WHOLE, [1, None, -(2**63), 2**63 - 1]),
    "x": (Storage.NUMBER, [0.1, float("inf"), None, -0.0]),
    "t": (Storage.TEXT, ["", "it's \\ $1 ?1 %s\n", "\U0001f600", None]),
}
ROWS = list(zip(*(values for _, values in COLUMNS.values()), strict=True))


def create(connection: Connection, columns: ColumnValues = COLUMNS) -> None:
    listed = ", ".join(f"{name} {connection.dialect.types[storage]}" for name, (storage, _) in columns.items())
    connection.run(f"CREATE TEMPORARY TABLE kept ({listed})")


def kept(connection: Connection) -> list[Any]:
    return connection.rows("SELECT n FROM kept ORDER BY n")


def test_rows_in_bulk_are_those_that_were_inserted(connection: Connection) -> None:
    create(connection)
    connection.insert("kept", COLUMNS)
    assert connection.rows("SELECT n, x, t FROM kept") == ROWS


@pytest.mark.parametrize("count", [1, 7, 8, 1_500])
def test_rows_of_columns_without_stated_types(connection: Connection, count: int) -> None:
    if not isinstance(connection, SqliteConnection | PostgresConnection):
        pytest.skip("look-ups and matching insert columns")
    create(connection)
    rows = [(place, place / 8, f"t{place}") for place in range(count)]
    connection.insert_rows("kept", ("n", "x", "t"), rows)
    assert connection.rows("SELECT n, x, t FROM kept ORDER BY n") == rows
    with connection.transaction():
        assert list(connection.stream("SELECT n, x, t FROM kept ORDER BY n")) == rows


def test_sqlite_takes_more_columns_than_one_statement_has_values_for() -> None:
    connection = SqliteConnection()
    connection.connect()
    wide: ColumnValues = {f"c{place}": (Storage.WHOLE, list(range(1_000))) for place in range(600)}
    create(connection, wide)
    connection.insert("kept", wide)
    assert connection.rows("SELECT count(*), sum(c0), sum(c599) FROM kept") == [(1_000, 499_500, 499_500)]
    connection.close()


def test_a_value_is_named_as_often_as_it_is_needed(connection: Connection) -> None:
    first, second = connection.parameter(1), connection.parameter(2)
    query = f"SELECT CAST({first} AS INTEGER) + CAST({second} AS INTEGER) * CAST({first} AS INTEGER)"
    assert connection.rows(query, (2, 5)) == [(12,)]
    create(connection)
    connection.run_many(f"INSERT INTO kept (n) VALUES ({first})", [(1,), (2,)])
    assert connection.integers("SELECT n, n + 1 FROM kept ORDER BY n").tolist() == [[1, 2], [2, 3]]
    assert connection.integers("SELECT n, n FROM kept WHERE n > 9").shape == (0, 2)


def test_statements_with_question_marks_are_as_the_driver_takes_them() -> None:
    text = "UPDATE t SET a = ? WHERE b IN (?, ?)"
    assert SqliteConnection().marked(text) == text
    assert PostgresConnection("postgresql://").marked(text) == "UPDATE t SET a = $1 WHERE b IN ($2, $3)"


def test_rows_that_a_query_reads_as_a_table(connection: Connection) -> None:
    for place in (1, 2):
        beginning, values = connection.relation("given", {"n": (Storage.WHOLE, [place, None])})
        query = f"{beginning}SELECT n FROM given WHERE n IS NOT NULL"
        assert connection.integers(query, values).tolist() == [[place]]
    beginning, values = connection.relation("given", {"t": (Storage.TEXT, ["a"])})
    assert connection.rows(f"{beginning}SELECT t FROM given", values) == [("a",)]


def test_a_transaction_is_made_whole_or_not_at_all(connection: Connection) -> None:
    create(connection)
    with connection.transaction():
        connection.run("INSERT INTO kept (n) VALUES (1)")

    def fail(error: type[BaseException] | None) -> None:
        with connection.transaction():
            connection.run("INSERT INTO kept (n) VALUES (2)")
            if error is not None:
                raise error
            connection.run("INSERT INTO nowhere (n) VALUES (3)")

    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
    with pytest.raises(connection.errors()):
        fail(None)
    assert kept(connection) == [(1,)]
    assert connection.is_usable


def test_an_error_of_a_statement_is_not_transient_and_loses_no_connection(connection: Connection) -> None:
    with pytest.raises(connection.errors()) as caught:
        connection.rows("SELECT * FROM nowhere_at_all")
    assert not connection.is_transient(caught.value)
    assert not connection.is_lost(caught.value)
    assert "nowhere_at_all" in reason_of(caught.value)
    assert "\n" not in reason_of(caught.value)


def test_a_connection_is_reopened(connection: Connection) -> None:
    create(connection)
    connection.connect()
    with pytest.raises(connection.errors()):
        kept(connection)
    connection.close()
    connection.close()
    assert not connection.is_usable


def test_a_child_of_fork_leaves_the_connection_of_its_parent_alone(connection: Connection) -> None:
    create(connection)
    child = os.fork()
    if not child:
        connection.close()
        os._exit(1 if connection.is_usable else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept(connection) == []


@pytest.mark.processes
def test_a_session_in_a_transaction_is_not_usable(url: str) -> None:
    connection = PostgresConnection(url)
    connection.connect()
    connection.run("BEGIN")
    assert not connection.is_usable
    connection.roll_back()
    assert connection.is_usable
    connection.close()


def test_urls_of_postgresql() -> None:
    assert is_postgres("postgresql://host/base")
    assert is_postgres("postgres://host/base")
    assert not is_postgres("store.db")
    assert not is_postgres("jdbc:postgresql://host/base")
