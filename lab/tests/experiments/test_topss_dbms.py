"""ToPSS's tables with the DBMS: what is measured without a server, and how its claims are judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harken_lab.experiments import find_experiment, topss_dbms
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.topss_dbms import (
    ANCHORED,
    BITS,
    ENGINES,
    GROUPING,
    LISTS,
    OLD_LISTS,
    SEQUENTIAL,
    contestant_name,
    judge,
)
from harken_lab.harness.postgres_server import running_postgres
from harken_lab.harness.result_files import Unavailable

REASON = "there is no PostgreSQL server on this machine"


@pytest.mark.seconds
def test_without_a_server_its_rows_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def absent() -> Iterator[str]:
        raise Unavailable(REASON)
        yield

    monkeypatch.setattr(topss_dbms, "running_postgres", absent)
    result = find_experiment("topss-dbms").run("smoke", 0, lambda _: None, sizes=[200], events=4)
    rejected = [row for row in result.rows if "rejected" in row and row["entrant"] != OLD_LISTS]
    assert [row["entrant"] for row in rejected] == [
        contestant_name(each, "PostgreSQL") for each in (SEQUENTIAL, GROUPING, ANCHORED)
    ]
    assert all(REASON in row["rejected"] for row in rejected)
    measured = [row for row in result.rows if "rejected" not in row and row["entrant"] != OLD_LISTS]
    assert len(measured) == 3 + 2 * 3
    assert all(row["bytes"] > 0 and row["us_per_event"] > 0 and row["fill_seconds"] > 0 for row in measured)
    assert {row["events"] for row in measured if row["algorithm"] == ANCHORED} == {4}, "it matches a batch"
    untold = [finding for finding in result.findings if finding.claim.endswith("PostgreSQL")]
    assert [(finding.holds, REASON in finding.why) for finding in untold] == [(None, True)]


@pytest.mark.processes
@pytest.mark.seconds
def test_a_server_leaves_no_address_behind() -> None:
    try:
        with running_postgres():
            pass
    except Unavailable as error:
        pytest.skip(str(error))
    result = find_experiment("topss-dbms").run("smoke", 0, lambda _: None, sizes=[200], events=4)
    assert "postgresql://" not in result.to_json()
    assert not [row for row in result.rows if "rejected" in row and row["entrant"] != OLD_LISTS]
    assert {row["options"]["database"] for row in result.rows if "database" in row["options"]} == set(ENGINES)


# Judging

SIZES = (10_000, 100_000)


def rows(times: float, loading: float, size: float, growth: float = 1.0, copied: float | None = None) -> WorkloadRows:
    """Databases that need so many times as much as counting; loading them grows as a power of the size.

    Lists as published, if there are any, load `copied` times as long as ours.
    """
    found: list[Row] = []
    for place in SIZES:
        in_memory = {"us_per_event": place / 100, "fill_seconds": place / 1e6, "bytes": place * 10}
        found += [{"subscriptions": place, "entrant": each} | in_memory for each in (BITS, LISTS)]
        if copied is not None:
            slower = {**in_memory, "fill_seconds": in_memory["fill_seconds"] * copied}
            found.append({"subscriptions": place, "entrant": OLD_LISTS} | slower)
        for engine in ENGINES:
            figures = {
                "us_per_event": in_memory["us_per_event"] * times,
                "fill_seconds": loading * (place / SIZES[0]) ** growth * SIZES[0] / 1e6,
                "bytes": in_memory["bytes"] * size,
            }
            for algorithm, factor in ((SEQUENTIAL, 2.0), (GROUPING, 1.0), (ANCHORED, 0.1)):
                entrant = contestant_name(algorithm, engine)
                slowed = {**figures, "us_per_event": figures["us_per_event"] * factor}
                found.append({"subscriptions": place, "entrant": entrant} | slowed)
    return WorkloadRows(found)


def held(found: WorkloadRows) -> dict[str, Finding]:
    return {finding.claim: finding for finding in judge(found)}


def test_what_the_paper_found_holds() -> None:
    found = held(rows(times=300, loading=4, size=4, growth=0.9, copied=40))
    assert [finding.holds for finding in found.values()] == [True] * 9
    assert sum("table 1" in finding.paper_figure for finding in found.values()) == 6
    assert sum("table 2" in finding.paper_figure for finding in found.values()) == 2
    assert "DuckDB 10,000: 300, 100,000: 300" in next(iter(found.values())).ours


def test_what_does_not_hold_is_said_so() -> None:
    found = held(rows(times=50, loading=4, size=0.5, copied=1))
    wrong = [claim for claim, finding in found.items() if finding.holds is False]
    assert [claim.split(":")[0] for claim in wrong[:3]] == [
        "List-based counting is two orders of magnitude quicker than the DBMS"
    ] * 3
    assert wrong[3:] == ["A DBMS needs more memory than bit-wise counting"]


def test_loading_is_judged_by_lists_that_grow_as_the_papers_do() -> None:
    claim = "A DBMS loads quicker than lists when subscriptions are very many"
    ours = held(rows(300, 4, 4))[claim]
    assert (ours.is_measured, "not by a constant" in ours.why) == (False, True)
    published = held(rows(300, 4, 4, copied=10))[claim]
    assert (published.holds, "0.4 times" in published.ours) == (True, False)
    assert "list-based, as published 1 s, predicate_grouping on DuckDB 0.4 s" in published.ours
    too_few = held(rows(300, 4, 4, copied=1))[claim]
    assert (too_few.is_measured, "500,000 subscriptions" in too_few.why) == (False, True)


def test_one_slow_round_is_no_verdict() -> None:
    """The spread decides: 300 times as long, but in one of three rounds only 50 times, is no two orders."""
    claim = "List-based counting is two orders of magnitude quicker than the DBMS: SQLite"
    data = list(rows(300, 4, 4))
    for row in data:
        factors = [0.16, 1.0, 1.1] if row["entrant"] == contestant_name(GROUPING, "SQLite") else [1.0] * 3
        row["rounds"] = {"us_per_event": [row["us_per_event"] * each for each in factors]}
    found = held(WorkloadRows(data))
    assert found[claim].holds is None
    assert "10,000: 300 ?" in found[claim].ours
