"""Bulk tests tell how many pairs they compared and the seed that replays them."""

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in [report for reports in terminalreporter.stats.values() for report in reports]:
        told = dict(getattr(report, "user_properties", ()))
        if getattr(report, "when", None) == "teardown" and told.get("pairs"):
            terminalreporter.write_line(f"{report.nodeid}: {told['pairs']:,} pairs, HARKEN_SEED={told['seed']}")
