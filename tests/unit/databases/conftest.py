"""Connections for the tests: a test with the fixture `connection` runs on DuckDB, SQLite, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.databases.connection import Connection
from harken.databases.on_duckdb import DuckConnection
from harken.databases.on_postgres import PostgresConnection
from harken.databases.on_sqlite import SqliteConnection
from services.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"


@pytest.fixture(params=["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.processes)])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """An open connection. A test has to drop the tables that it creates on a server, unless they are temporary."""
    new: Connection
    if request.param == "postgres":
        new = PostgresConnection(request.getfixturevalue("url"))
    else:
        new = DuckConnection() if request.param == "duckdb" else SqliteConnection()
    new.connect()
    yield new
    new.close()
