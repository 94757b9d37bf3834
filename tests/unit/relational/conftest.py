"""Databases for the tests: whatever asks for `database` runs on DuckDB, SQLite, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.matchers import ALGORITHMS
from services.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"


@pytest.fixture(params=["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.processes)])
def database(request: pytest.FixtureRequest) -> str:
    """What an engine takes as its option `database`."""
    found: str = request.getfixturevalue("url") if request.param == "postgres" else request.param
    return found


RELATIONAL = {"sequential_search", "predicate_grouping", "relational_anchored"}


@pytest.fixture(params=[name for name in ALGORITHMS if name in RELATIONAL])
def algorithm(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name
