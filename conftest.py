"""What all tests share: how hard Hypothesis tries, which tests wait for the long run, and one Spark session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from properties.replay import Bulk

LONG = os.environ.get("HARKEN_LONG") == "1"
QUICK = os.environ.get("HARKEN_QUICK") == "1"

# From "default", not from what is loaded: on a CI machine Hypothesis loads a profile that draws the same values always.
# Only the long run draws other values each time: `make test` passes or fails for what is in the tree.
settings.register_profile(
    "normal",
    settings.get_profile("default"),
    deadline=None,
    derandomize=True,
    max_examples=60,
    print_blob=True,
)
settings.register_profile("long", settings.get_profile("normal"), derandomize=False, max_examples=1_000)
settings.register_profile("quick", settings.get_profile("normal"), max_examples=10)
settings.load_profile("long" if LONG else "quick" if QUICK else "normal")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a run. A test that asks for it is marked `spark` by that."""
    from harken.spark.session import local_session

    session = local_session("harken-tests")
    yield session
    session.stop()


@pytest.fixture
def bulk(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Bulk]:
    """A bulk test, which records how many pairs it compared and the seed that replays them: see the summary below."""
    from properties.replay import Bulk

    run = Bulk(request.node.name)
    print(f"to replay: HARKEN_SEED={run.seed}")
    yield run
    record_property("pairs", run.pairs)
    record_property("seed", run.seed)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        for group in ("spark", "processes"):
            if item.get_closest_marker(group) is not None:
                # Those with a match server are as many as all others that start processes.
                is_served = group == "processes" and "server" in item.path.parts
                item.add_marker(pytest.mark.xdist_group("servers" if is_served else group))
                break
        else:
            if item.get_closest_marker("together") is not None:
                item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if QUICK:
        _deselect(config, items, "slow", "spark", "processes", "seconds")
    elif not LONG:
        _deselect(config, items, "slow")


def _deselect(config: pytest.Config, items: list[pytest.Item], *marks: str) -> None:
    left_out = [item for item in items if any(item.get_closest_marker(mark) is not None for mark in marks)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        held = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in held]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the bulk tests compared, and how to replay them."""
    for report in [report for reports in terminalreporter.stats.values() for report in reports]:
        told = dict(getattr(report, "user_properties", ()))
        if getattr(report, "when", None) == "teardown" and told.get("pairs"):
            terminalreporter.write_line(f"{report.nodeid}: {told['pairs']:,} pairs, HARKEN_SEED={told['seed']}")
