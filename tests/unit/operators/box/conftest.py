"""A server of PostgreSQL for look-ups: the machine's own or one from Maven, else its tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """As psycopg takes it."""
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"
