"""Connections for the tests: whatever asks for `connection` runs on DuckDB, SQLite, and a PostgreSQL server."""

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
    """An open connection. Tables that a test makes at a server have to be temporary, or dropped."""
    made: Connection
    if request.param == "postgres":
        made = PostgresConnection(request.getfixturevalue("url"))
    else:
        made = DuckConnection() if request.param == "duckdb" else SqliteConnection()
    made.connect()
    yield made
    made.close()
