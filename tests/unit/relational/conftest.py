"""Databases for the tests: a test with the fixture `database` runs on DuckDB, SQLite, and a PostgreSQL server."""

from __future__ import annotations

import pytest

from harken.matchers import ALGORITHMS
from unit.databases.conftest import postgres, url

__all__ = ["algorithm", "database", "postgres", "url"]


@pytest.fixture(params=["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.processes)])
def database(request: pytest.FixtureRequest) -> str:
    """A value of the engine's option `database`."""
    name: str = request.getfixturevalue("url") if request.param == "postgres" else request.param
    return name


RELATIONAL = {"sequential_search", "predicate_grouping", "relational_anchored"}


@pytest.fixture(params=[name for name in ALGORITHMS if name in RELATIONAL])
def algorithm(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name
