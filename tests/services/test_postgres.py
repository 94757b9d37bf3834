"""The server that the tests start, and Spark's JDBC source and sink against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services import postgres_round_trip
from services.maven import POSTGRESQL_VERSION
from services.postgres import Postgres, PostgresError, running_postgres
from services.scripts import run_spark_script

pytestmark = pytest.mark.processes


def test_queries_return_rows_and_raise_what_the_server_says(postgres: Postgres) -> None:
    assert postgres.query("SELECT 1, NULL, 'grün', ''; SELECT 2.5, true, 'x', 'y'") == [
        ("1", None, "grün", ""),
        ("2.5", "t", "x", "y"),
    ]
    assert postgres.query("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)") == []
    assert postgres.query("TABLE kept") == [("7",)]
    with pytest.raises(PostgresError, match='relation "nowhere" does not exist'):
        postgres.query("SELECT * FROM nowhere")


def test_a_wrong_password_is_rejected(postgres: Postgres) -> None:
    with pytest.raises(PostgresError, match="password authentication failed"):
        Postgres(postgres.port, password="wrong").query("SELECT 1")


def test_spark_reads_and_writes_tables(postgres: Postgres) -> None:
    postgres.query("""
        CREATE TABLE events (id text, price double precision);
        CREATE TABLE doubled (id text, price double precision);
        INSERT INTO events VALUES ('a', 1.5), ('b', 2), ('c', NULL)
    """)

    script = Path(postgres_round_trip.__file__)
    login = (postgres.url, postgres.user, postgres.password)
    done = run_spark_script(script, *login, "events", "doubled", formats=["jdbc:postgresql"])

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["a", 1.5], ["b", 2.0], ["c", None]]
    assert postgres.query("SELECT * FROM doubled ORDER BY id") == [("a", "3"), ("b", "4"), ("c", None)]


@pytest.mark.slow
def test_the_server_from_maven_serves_as_well() -> None:
    with running_postgres(of_machine=False) as server:
        assert server.query("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7); TABLE kept") == [("7",)]
        assert server.query("SHOW server_version") == [(POSTGRESQL_VERSION.removesuffix(".0"),)]
