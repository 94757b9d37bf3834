"""Sources without `columns`: every value is matched as it is, just as `Engine.match_batch` matches dicts."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.engine import Engine
from harken.pipeline.batch_outcome import outcome
from harken.pipeline.batch_planning import plan
from harken.pipeline.counts import Counts
from harken.pipeline.run import run
from harken.pipeline.stream_sources import find_columns, read
from harken.pipeline.used_attributes import used_attributes

from .project import Project, pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHERES = [
    *("delta > 5", "delta < 3", "NOT (delta > 5)", "delta = 2.5", "delta <> 4", "delta IN (1, 7, 100)"),
    *("delta IS NULL", "delta IS NOT NULL", "flag", "NOT flag", "flag IS NULL", "zip = '4'", "zip = '5'"),
    *("big > 9007199254740993", "big = 9007199254740993", "price = 9007199254740993", "price = 9007199254740992"),
    *("price > 6", "price = '7'", "a.b > 3", "a.b IS NOT NULL", "a.c.d > 5", "a.c.d = 'x'", "id = 'e4'", "id = 1"),
]


def mixed_events() -> list[dict[str, Any]]:
    """Events whose attributes have values of many kinds here and there."""
    events: list[dict[str, Any]] = [
        {
            **{"id": f"e{n}", "delta": n, "big": 2**53 + n, "price": n + n % 2 / 2, "zip": str(n), "flag": n % 2 == 0},
            "a": {"b": n, "c": [{"d": n}, {"d": 2 * n}]},
        }
        for n in range(16)
    ]
    for place, delta in {3: "lots", 5: [3, 100], 7: {"x": 1}, 9: True, 11: None, 13: 2.5}.items():
        events[place]["delta"] = delta
    del events[12]["delta"]
    events[1]["id"], events[3]["price"], events[6]["price"], events[6]["big"] = 1, 2**53 + 1, "7", 0.5
    events[4]["zip"], events[8]["flag"], events[2]["a"]["b"], events[4]["a"]["c"][1]["d"] = 4, "true", "two", "x"
    return events


ODD = {"a.b": 1, "delta": 3, "flag": 1, "zip": 1}


def expected(events: list[dict[str, Any]], wheres: list[str]) -> set[tuple[str, str]]:
    """What an engine finds in the same events as dicts."""
    engine = Engine()
    assert not engine.subscribe_many(zip(wheres, wheres, strict=True)).faults
    found = engine.match_batch(events)
    assert not found.rejected
    return {(str(event["id"]), id) for event, ids in zip(events, found.ids, strict=True) for id in ids}


def subscribed(project: Project, wheres: list[str]) -> None:
    project.write("subscriptions.jsonl", [{"id": where, "where": where} for where in wheres])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_every_value_is_matched_as_it_is(spark: SparkSession, project: Project) -> None:
    events = mixed_events()
    project.write("events.jsonl", events)
    subscribed(project, WHERES)
    config = project.config("columns = none", match='columns = ["delta"]')
    result = run(config)
    rows = project.rows(spark)
    assert pairs(rows) == expected(events, WHERES)
    assert {row["delta"] for row in rows if row["event_id"] in ("e2", "e3", "e13")} == {2.0, None, 2.5}
    assert (result.counts.odd_values, result.counts.dead_letters) == (ODD, {"type": 6})
    assert "· 6 odd values (a.b 1, delta 3, flag 1, zip 1) ·" in str(result)
    letters = {row["event_id"]: row for row in project.rows(spark, "out-dead-letters", "json")}
    assert letters["e3"]["reason"] == '`delta` is "lots", where subscriptions expect a number'
    assert json.loads(letters["e3"]["event"]) == events[3]
    assert {letter["stage"] for letter in letters.values()} == {"type"}
    found = plan(config)
    assert found.odd_values == found.to_dict()["odd_values"] == ODD
    assert found.mixed == ("a", "id", "price")
    assert dict(found.lines())["mixed columns"].startswith("a, id, price: of several types")
    assert dict(found.lines())["odd values"].startswith("a.b 1, delta 3, flag 1, zip 1: of another type")


@pytest.mark.slow
def test_shards_and_duplicates_and_the_kinds_that_are_asked(spark: SparkSession, project: Project) -> None:
    events = mixed_events()
    project.write("events.jsonl", [*events, events[3], events[4]])
    subscriptions = [{"id": where, "where": where} for where in WHERES]
    stamp = project.stamp(subscriptions=subscriptions)
    config = project.config('columns = none\ndeduplicate = "1 hour"', match='strategy = "shard"\nshards = 2')
    found = outcome(read(config, spark, find_columns(config, spark, stamp.version)), config, stamp)
    assert pairs(found.notifications) == expected(events, WHERES)
    assert (found.counts.duplicates, found.counts.odd_values) == (2, ODD)
    found.release()
    used = used_attributes(stamp.version, spark)
    assert used.names == {"a", "big", "delta", "flag", "id", "price", "zip"}
    assert {str(kind) for kind in used.kinds["price",]} == {"number", "string"}
    assert str(used.of_one_kind()["a", "b"]) == "number"


def test_integers_stay_integers(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", [{"id": "1", "n": 2**53 + 1}, {"id": "2", "n": "lots"}, {"id": "3", "n": 5}])
    subscribed(project, ["n = 9007199254740993", "n < 6"])
    config = project.config("columns = none", match='columns = ["n"]')
    assert run(config).counts.odd_values == {"n": 1}
    assert {(row["event_id"], row["n"]) for row in project.rows(spark)} == {("1", 2**53 + 1), ("3", 5)}


def test_a_column_without_any_number_stays_a_string(spark: SparkSession, project: Project) -> None:
    """Then the subscriptions are at fault, and no value is odd."""
    project.write("events.jsonl", [{"id": "1", "price": "3.50"}, {"id": "2", "price": "9"}])
    subscribed(project, ["price < 5", "price IS NOT NULL"])
    config = project.config("columns = none")
    found = find_columns(config, spark, project.index([{"id": "cheap", "where": "price < 5"}]))
    assert found is not None
    assert (found.types["price"].dataType.simpleString(), found.mixed) == ("string", ())
    assert run(config).counts == Counts(2, 2)


def test_csv(spark: SparkSession, project: Project) -> None:
    project.write("events.csv", "id,delta,flag,user\n1,7,true,ann\n2,lots,false,12\n3,2.5,maybe,\n4,,TRUE,bob\n")
    wheres = ["delta > 5", "delta < 3", "delta IS NULL", "delta IS NOT NULL", "flag", "NOT flag", "user = '12'"]
    subscribed(project, wheres)
    result = run(project.config('format = "csv"\npath = "events.csv"\ncolumns = none'))
    events = [
        {"id": "1", "delta": 7, "flag": True, "user": "ann"},
        {"id": "2", "delta": "lots", "flag": False, "user": "12"},
        {"id": "3", "delta": 2.5, "flag": "maybe"},
        {"id": "4", "flag": True, "user": "bob"},
    ]
    assert pairs(project.rows(spark)) == expected(events, wheres)
    assert result.counts.odd_values == {"delta": 1, "flag": 1}


def test_without_a_place_for_dead_letters_odd_values_are_only_counted(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", [{"id": "1", "n": 7}, {"id": "2", "n": "lots"}])
    subscribed(project, ["n > 5"])
    counts = run(project.config("columns = none", sink='[[sink]]\nformat = "console"')).counts
    assert (counts.notifications, counts.odd_values) == (1, {"n": 1})


@pytest.mark.slow
@pytest.mark.skipif("HARKEN_DATA" not in os.environ, reason="HARKEN_DATA is not set")
def test_eight_odd_values_among_real_events(spark: SparkSession, project: Project) -> None:
    path = Path(os.environ["HARKEN_DATA"]) / "wikiticker-2015-09-12-sampled.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        events = [json.loads(line) | {"id": f"w{number}"} for number, line in zip(range(16_008), lines, strict=False)]
    for place, odd in enumerate(["lots", "many", "", True, "7", {"by": 3}, "-", "n/a"]):
        events[2_000 * place + 1]["delta"] = odd
    wheres = [
        *("delta > 1000", "delta < -500", "delta >= 0 AND isRobot", "delta = 0 AND namespace = 'Main'"),
        *("delta IS NULL", "added > 500 AND NOT isAnonymous", "cityName IS NOT NULL AND delta > 10"),
        *("channel = '#fr.wikipedia' OR delta > 5000", "NOT (delta > -100)", "page LIKE 'Talk:%' AND deleted = 0"),
    ]
    project.write("events.jsonl", events)
    subscribed(project, wheres)
    result = run(project.config("columns = none"))
    assert result.counts.odd_values == {"delta": 8}
    assert pairs(project.rows(spark)) == expected(events, wheres)
