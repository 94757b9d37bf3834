"""The services, one of each for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.kafka import Kafka, running_kafka
from services.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server
