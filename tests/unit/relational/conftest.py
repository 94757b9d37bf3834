"""Databases for the tests: whatever asks for `database` runs on DuckDB, SQLite, and a PostgreSQL server."""

from __future__ import annotations

import pytest

from harken.matchers import ALGORITHMS
from unit.databases.conftest import postgres, url

__all__ = ["algorithm", "database", "postgres", "url"]


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
