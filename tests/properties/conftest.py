"""Bulk tests record how many pairs they compared and the seed that replays them; tests/conftest.py prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from properties.replay import Bulk


@pytest.fixture
def bulk(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Bulk]:
    run = Bulk(request.node.name)
    print(f"to replay: HARKEN_SEED={run.seed}")
    yield run
    record_property("pairs", run.pairs)
    record_property("seed", run.seed)
