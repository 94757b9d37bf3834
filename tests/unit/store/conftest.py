"""Stores for the tests: whatever asks for `place`, `opened` or `store` runs on SQLite, and on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harken.store import Store, open_store
from services.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    """The URL of a PostgreSQL database without a store. A test that asks for it is marked `processes`."""
    postgres.query("DROP SCHEMA IF EXISTS harken CASCADE")
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.processes)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made."""
    found: str = str(tmp_path / "store.db") if request.param == "sqlite" else request.getfixturevalue("url")
    return found


@pytest.fixture
def is_sqlite(place: str) -> bool:
    return "://" not in place


@pytest.fixture
def opened(place: str) -> Iterator[Callable[[], Store]]:
    """Opens the store, as another process would, as often as it is called."""
    stores: list[Store] = []

    def another() -> Store:
        stores.append(open_store(place))
        return stores[-1]

    yield another
    for each in stores:
        each.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()
