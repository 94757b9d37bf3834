"""Anchored rows and their indexes: bounds of ranges on every database, GiST on PostgreSQL, the size of tables."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from harken import Engine
from harken.databases.dialects import DIALECTS, Storage
from harken.databases.on_postgres import PostgresConnection
from harken.relational.anchored_tables import Anchor, indexes, queries, range_indexes

LARGE = 2**53
RANGES = {
    "closed": "x BETWEEN 3 AND 7",
    "open": "x > 3 AND x < 7",
    "below": "x < 3",
    "above": "x >= 7",
    "between doubles": f"x > {LARGE} AND x < {LARGE + 1}",
    "beside a double": f"x >= {LARGE + 1} AND x <= {LARGE + 2}",
    "tiny": "x >= 0 AND x < 5e-324",
    "largest": "x > 1.7976931348623157e308",
    "day": "day >= DATE '2026-01-02' AND day < DATE '2026-01-04'",
    "later": "day > DATE '2026-01-02'",
    "last day": "day >= DATE '9999-12-31'",
    "words": "word >= 'b' AND word < 'c'",
    "no word": "word > 'zz'",
}
NUMBERS = [
    3,
    7,
    5.5,
    2.9999999999999996,
    7.000000000000001,
    0.0,
    -0.0,
    5e-324,
    LARGE,
    LARGE + 1,
    LARGE + 2,
    1e308,
    -1e308,
]
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "0001-01-01", "9999-12-31"]
EVENTS: list[dict[str, Any]] = [
    *({"x": number} for number in NUMBERS),
    *({"day": date.fromisoformat(day)} for day in DAYS),
    *({"word": word} for word in ("b", "bz", "c", "zz", "zz\1", "zza", "")),
]


def test_the_ends_of_ranges(database: str) -> None:
    engine, judge = Engine(algorithm="relational_anchored", database=database), Engine(algorithm="naive")
    for each in (engine, judge):
        assert not each.subscribe_many(RANGES.items()).faults
    matches, expected = engine.match_batch(EVENTS), judge.match_batch(EVENTS)
    assert not expected.rejected
    assert [sorted(ids) for ids in matches.ids] == [sorted(ids) for ids in expected.ids]
    assert sum(expected.counts) > 20


@pytest.mark.processes
def test_postgresql_finds_ranges_by_gist(url: str) -> None:
    """Including ranges of an attribute that was added after other rows."""
    engine = Engine(algorithm="relational_anchored", database=url)
    for name in ("x", "y"):
        texts = (f"{name} BETWEEN {place} AND {place + 2}" for place in range(2_000))
        engine.subscribe_many((f"{name}{place}", text) for place, text in enumerate(texts))
    matches = engine.match({"x": 100.5, "y": -1})
    assert (sorted(matches.ids), matches.candidates) == (["x100", "x99"], 2)
    matcher: Any = engine._live.matcher
    database: PostgresConnection = matcher._session.database
    (query,) = queries(database.dialect, matcher._columns, "e.event, s.sid")
    events = "WITH events(event, c1, c2) AS MATERIALIZED (SELECT 1::int8, 100.5::float8, 7::float8) "
    plan = "\n".join(line for (line,) in database.driver.execute(f"EXPLAIN {events}{query}").fetchall())
    assert "anchored_ranges_1" in plan
    assert "anchored_ranges_2" in plan


def test_sqlite_reads_no_whole_index_for_one_event() -> None:
    engine = Engine(algorithm="relational_anchored", database="sqlite")
    engine.subscribe_many((str(place), f"x = {place} AND y < {place}") for place in range(2_000))
    assert engine.match({"x": 5, "y": 4}).ids == ["5"]
    matcher: Any = engine._live.matcher
    (query,) = queries(DIALECTS["sqlite"], matcher._columns, "e.event, s.sid")
    connection = matcher._session.database.driver
    plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert plan == ["SCAN e", "SEARCH s USING INDEX anchored_num (anchor=? AND num_lo=?)"]


def test_a_dialect_has_the_indexes_that_its_engine_has() -> None:
    anchors = [Anchor(1, Storage.NUMBER), Anchor(2, Storage.NUMBER, True), Anchor(3, Storage.TEXT, True)]
    made = {name: range_indexes(dialect, anchors) for name, dialect in DIALECTS.items()}
    assert {name: len(each) for name, each in made.items()} == {"duckdb": 0, "sqlite": 0, "postgres": 1, "spark": 0}
    assert "harken_ranges(num_lo, num_hi)) WHERE anchor = -2" in made["postgres"][0]
    assert {name: len(indexes(each)) for name, each in DIALECTS.items()} == {
        "duckdb": 0,
        "sqlite": 3,
        "postgres": 3,
        "spark": 0,
    }


def test_the_size_of_tables(algorithm: str, database: str) -> None:
    engine = Engine(algorithm=algorithm, database=database)
    assert engine.stats()["matcher"]["memory"] == {}, "there are no tables yet"
    engine.subscribe_many((str(place), f"x = {place} AND y < {place}") for place in range(5_000))
    assert 5_000 * 8 < engine.stats()["matcher"]["memory"]["tables"] < 5_000 * 5_000
