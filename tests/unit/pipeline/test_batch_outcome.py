"""The way of a batch: what is told, what is rejected and why, what is counted; and that a replay tells the same."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken import Limits
from harken.engine import Engine
from harken.errors import HarkenError, SchemaError, SegmentError, SourceError
from harken.live.notifications import DeadLetterRow, NotificationRow, names_of
from harken.pipeline.batch_outcome import BatchOutcome, Stamp, outcome, spark_schema
from harken.pipeline.config import Config
from harken.pipeline.counts import Counts
from harken.pipeline.stream_sources import read
from harken.schema import parse_schema

from .project import EVENTS, NOW, PAIRS, Project, pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

BAD = '{"id": "B1", "price": "cheap"}'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def done(config: Config, spark: SparkSession, stamp: Stamp) -> BatchOutcome:
    return outcome(read(config, spark), config, stamp)


def letters(found: BatchOutcome) -> list[tuple[Any, ...]]:
    rows = found.dead_letters.collect()
    assert len(rows) == found.counts.dead_letter_count
    return sorted(((row["stage"], row["event_id"], row["reason"], row["event"]) for row in rows), key=str)


def types_of(columns: StructType) -> list[tuple[str, DataType]]:
    return [(each.name, each.dataType) for each in columns]


def persisted(spark: SparkSession) -> int:
    context: Any = spark.sparkContext
    return int(context._jsc.getPersistentRDDs().size())


def test_what_a_notification_has(spark: SparkSession, project: Project) -> None:
    config = project.config('event_time = "at"', match='columns = ["price", "category"]')
    stamp = project.stamp(batch=7)
    before = persisted(spark)
    found = done(config, spark, stamp)
    row = next(each for each in found.notifications.collect() if each["event_id"] == "A1")
    assert found.notifications.columns == [*names_of(NotificationRow), "price", "category"]
    assert types_of(found.notifications.schema)[:-2] == types_of(spark_schema(NotificationRow))
    assert row.asDict() == {
        "event_id": "A1",
        "subscription_id": "alice",
        "owner": "Alice",
        "event_time": datetime(2024, 5, 1, 10, tzinfo=UTC).astimezone().replace(tzinfo=None),
        "match_time": NOW.astimezone().replace(tzinfo=None),
        "index_version": stamp.version.version,
        "batch_id": 7,
        "price": 3.5,
        "category": "Toy",
    }
    assert pairs(found.notifications) == PAIRS
    assert found.counts == Counts(3, 3, max_event_time=datetime(2024, 5, 1, 10, 2, tzinfo=UTC))
    assert found.dead_letters.collect() == []
    assert found.dead_letters.columns == list(names_of(DeadLetterRow))
    assert types_of(found.dead_letters.schema) == types_of(spark_schema(DeadLetterRow))
    found.release()
    assert persisted(spark) == before


def test_what_is_rejected_and_why(spark: SparkSession, project: Project) -> None:
    project.write(
        "events.jsonl", "\n".join([*map(json.dumps, EVENTS), BAD, "not json", '{"price": 6, "category": "Toy"}'])
    )
    found = done(project.config(), spark, project.stamp())
    assert letters(found) == [
        ("decode", "B1", "`price` is not of type DOUBLE", BAD),
        ("decode", None, "the text is not JSON", "not json"),
        ("validate", None, "the event has no id: `id` is missing", '{"category":"Toy","price":6.0}'),
    ]
    assert found.counts == Counts(6, 3, {"decode": 2, "validate": 1})
    assert pairs(found.notifications) == PAIRS, "the others are told all the same"
    found.release()


CLOSED = """
[attributes]
category = "category"
price = "float"
seller = "string"
[domains.category]
type = "enumerated"
values = ["Toy", "Lamp"]
[event_types.Offer]
category = "mandatory"
price = "optional"
seller = "optional"
"""


@pytest.mark.parametrize("strategy", ["replicate", "shard"])
def test_a_schema_judges_events_without_their_id_and_time(spark: SparkSession, project: Project, strategy: str) -> None:
    schema = parse_schema(CLOSED)
    project.write("schema.toml", CLOSED)
    events = [{**event, "event_type": "Offer"} for event in EVENTS]
    events.append({"id": "B1", "event_type": "Offer", "category": "Car", "price": 7})
    project.write("events.jsonl", events)
    match = f'strategy = "{strategy}"\ncolumns = ["id", "price", "at"]' + (
        "\nshards = 2" if strategy == "shard" else ""
    )
    config = project.config('columns = none\nevent_time = "at"', head='schema = "schema.toml"', match=match)
    found = done(config, spark, project.stamp(schema=schema))
    assert pairs(found.notifications) == PAIRS
    assert {row["id"] for row in found.notifications.collect()} == {"A1", "A2", "A3"}
    ((stage, id, reason, event),) = letters(found)
    assert (stage, id, json.loads(event)) == ("validate", "B1", events[-1])
    assert "Car" in reason
    assert found.counts.dead_letters == {"validate": 1}
    found.release()


def test_a_subscription_that_fails_on_an_event(spark: SparkSession, project: Project) -> None:
    many = {name: list(range(10)) for name in "abcd"}
    events: list[dict[str, Any]] = [{"id": "1", **many}, {"id": "2", "a": [1], "b": [1], "c": [1], "d": [1]}]
    project.write("events.jsonl", events)
    texts = [
        {"id": "hard", "where": "a < b AND b < c AND c < d AND d < a"},
        {"id": "easy", "where": "a IS NOT NULL"},
    ]
    stamp = Stamp(0, project.index(texts, limits=Limits(max_bindings=50)), NOW)
    found = done(project.config("columns = none"), spark, stamp)
    assert pairs(found.notifications) == {("1", "easy"), ("2", "easy")}
    (row,) = found.dead_letters.collect()
    assert (row["stage"], row["event_id"], row["subscription_id"]) == ("match", "1", "hard")
    assert json.loads(row["event"]) == events[0]
    found.release()


def test_the_same_as_the_engine_says(spark: SparkSession, project: Project) -> None:
    drawn = random.Random(4)
    events = [{"id": str(place), "price": drawn.randrange(100), "seller": drawn.choice("abc")} for place in range(400)]
    texts = [
        {"id": f"s{place}", "where": f"price < {drawn.randrange(100)} AND seller = '{drawn.choice('abc')}'"}
        for place in range(50)
    ]
    project.write("events.jsonl", events)
    stamp = Stamp(0, project.index(texts), NOW)
    engine = Engine()
    engine.subscribe_many(texts)
    expected = {(event["id"], id) for event in events for id in engine.match(event).ids}
    assert expected
    for match in ('strategy = "replicate"', 'strategy = "shard"\nshards = 3'):
        found = done(project.config(match=match), spark, stamp)
        assert pairs(found.notifications) == expected
        found.release()


def test_a_replay_tells_the_same(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", [*EVENTS, EVENTS[0]])
    config = project.config('deduplicate = "1 hour"')
    stamp = project.stamp(batch=3)
    rows = []
    for _ in range(2):
        found = done(config, spark, stamp)
        rows.append(sorted(map(str, found.notifications.collect())))
        found.release()
    assert rows[0] == rows[1]


def test_columns_with_the_names_of_ours(spark: SparkSession, project: Project) -> None:
    """An event may have columns that are called as those of an answer are."""
    project.write("events.jsonl", [{"id": "1", "error": "none", "subscription_id": "x", "price": 9}])
    found = done(project.config("columns = none", match='columns = ["error"]'), spark, project.stamp())
    (row,) = found.notifications.collect()
    assert (row["subscription_id"], row["error"]) == ("bob", "none")
    found.release()


def test_an_index_that_vanishes(spark: SparkSession, project: Project) -> None:
    stamp = Stamp(0, project.index([{"id": "a name that no other test has", "where": "price > 17.5"}]), NOW)
    shutil.rmtree(project.folder / "index")
    before = persisted(spark)
    with pytest.raises(SegmentError, match="version 1 of the index is not in"):
        done(project.config(), spark, stamp)
    assert persisted(spark) == before


def test_a_time_that_is_none(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", [{"id": "1", "at": 17}])
    with pytest.raises(SourceError, match="`at` is BIGINT, which is no time of an event"):
        done(project.config('columns = none\nevent_time = "at"'), spark, project.stamp())


# Events that come again


STREAM = 'mode = "stream"\ncheckpoint = "state"'


def batch(
    config: Config, spark: SparkSession, project: Project, stamp: Stamp, events: list[dict[str, Any]]
) -> BatchOutcome:
    """A batch of a stream as Spark would hand it over: the events of one file."""
    from dataclasses import replace

    path = project.write(f"batch-{stamp.batch}.jsonl", events)
    still = replace(config, mode="batch", source=replace(config.source, path=str(path)))
    found = outcome(read(still, spark), config, stamp)
    found.remember()
    found.release()
    return found


def test_the_first_of_one_id_is_taken(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", [EVENTS[0], {**EVENTS[0], "price": 100}, EVENTS[1]])
    found = done(project.config('deduplicate = "1 hour"'), spark, project.stamp())
    assert pairs(found.notifications) == {("A1", "alice"), ("A2", "bob")}
    assert found.counts == Counts(3, 2, duplicates=1)
    found.release()


def test_ids_are_known_again_within_the_window(spark: SparkSession, project: Project) -> None:
    (project.folder / "watched").mkdir()
    config = project.config('path = "watched"\ndeduplicate = "10 minutes"', head=STREAM)
    version = project.index()

    def counts(number: int, minutes: int, *events: dict[str, Any]) -> tuple[int, int]:
        stamp = Stamp(number, version, NOW + timedelta(minutes=minutes))
        found = batch(config, spark, project, stamp, list(events)).counts
        return found.notifications, found.duplicates

    assert counts(0, 0, EVENTS[0]) == (1, 0)
    assert counts(0, 0, EVENTS[0]) == (1, 0), "a replay does not know its own ids"
    assert counts(1, 5, EVENTS[0], EVENTS[1]) == (1, 1)
    assert counts(2, 16, EVENTS[0], EVENTS[1]) == (2, 0), "batch 0 and 1 are too old"
    kept = sorted(each.name for each in (project.folder / "state" / "seen").iterdir())
    assert kept == ["batch=2"]


def test_an_event_that_was_rejected_may_come_again_mended(spark: SparkSession, project: Project) -> None:
    (project.folder / "watched").mkdir()
    project.write("schema.toml", CLOSED)
    head = STREAM + '\nschema = "schema.toml"'
    config = project.config('path = "watched"\ncolumns = none\ndeduplicate = "1 hour"', head=head)
    version = project.index(schema=parse_schema(CLOSED))
    wrong = {"id": "A1", "event_type": "Offer", "category": "Car", "price": 7}
    first = batch(config, spark, project, Stamp(0, version, NOW), [wrong])
    assert first.counts.dead_letters == {"validate": 1}
    second = batch(config, spark, project, Stamp(1, version, NOW), [{**wrong, "category": "Toy"}])
    assert second.counts == Counts(1, 1)


# Events that come late


@pytest.mark.parametrize("late", ["match", "reject"])
def test_late_events(spark: SparkSession, project: Project, late: str) -> None:
    (project.folder / "watched").mkdir()
    source = f'path = "watched"\nevent_time = "at"\nlate_after = "1 minute"\nlate = "{late}"'
    config = project.config(source, head=STREAM)
    stamp = project.stamp(late_before=datetime(2024, 5, 1, 10, 1, tzinfo=UTC))
    path = project.write("watched/1.jsonl", [*EVENTS, {"id": "A4", "price": 9}])
    from dataclasses import replace

    still = replace(config, mode="batch", source=replace(config.source, path=str(path)))
    found = outcome(read(still, spark), config, stamp)
    assert found.counts.late == 1
    assert found.counts.max_event_time == datetime(2024, 5, 1, 10, 2, tzinfo=UTC)
    told = {event for event, _ in pairs(found.notifications)}
    if late == "match":
        assert told == {"A1", "A2", "A3", "A4"}
        assert found.counts.dead_letter_count == 0
    else:
        assert told == {"A2", "A3", "A4"}, "an event without a time is not late"
        ((stage, id, reason, _),) = letters(found)
        assert (stage, id) == ("late", "A1")
        assert reason == "the time of the event is 2024-05-01 10:00:00, before 2024-05-01 10:01:00+0000"
    found.release()


# Reference tables


RATED = [{"id": "good", "where": "seller_rating >= 4"}, {"id": "unknown", "where": "seller_rating IS NULL"}]
ENRICH = '[[enrich]]\npath = "sellers.csv"\non = ["seller"]\nprefix = "seller_"\n'


@pytest.mark.parametrize(("how", "expected"), [("left", {"A1", "A2", "A3"}), ("inner", {"A1", "A2"})])
def test_events_are_joined_with_a_table(spark: SparkSession, project: Project, how: str, expected: set[str]) -> None:
    project.write("sellers.csv", "seller,rating,country\ns1,5,FR\ns2,4,DE\n,3,IT\n,2,IT\n")
    config = project.config(more=ENRICH + f'how = "{how}"', match='columns = ["seller_country"]')
    found = done(config, spark, Stamp(0, project.index(RATED), NOW))
    assert {event for event, _ in pairs(found.notifications)} == expected
    countries = {row["event_id"]: row["seller_country"] for row in found.notifications.collect()}
    assert countries == {id: {"A1": "FR", "A2": "DE"}.get(id) for id in expected}
    assert found.counts.events == 3
    found.release()


@pytest.mark.parametrize(
    ("table", "more", "message"),
    [
        ("seller,rating\ns1,5\ns1,4\n", "", r"has 2 rows for seller = 's1': the join would duplicate events"),
        ("vendor,rating\ns1,5\n", "", "no column `seller`"),
        ("seller,rating\ns1,5\n", 'columns = ["rated"]', "no column `rated`"),
        ("seller,price\ns1,5\n", 'prefix = ""', "the events have a column `price` before"),
    ],
)
def test_a_table_that_does_not_fit(spark: SparkSession, project: Project, table: str, more: str, message: str) -> None:
    project.write("sellers.csv", table)
    enrich = ENRICH.replace('prefix = "seller_"\n', "") if "prefix" in more else ENRICH + more
    with pytest.raises(HarkenError, match=message):
        done(project.config(more=enrich), spark, Stamp(0, project.index(RATED), NOW))


def test_keys_of_csv_are_of_the_type_that_events_have(spark: SparkSession, project: Project) -> None:
    """A key that looks like a number is none: 007 stays 007."""
    project.write("events.jsonl", [{"id": "1", "seller": "007"}, {"id": "2", "seller": "7"}])
    project.write("sellers.csv", "seller,rating\n007,5\n")
    found = done(project.config(more=ENRICH), spark, Stamp(0, project.index(RATED), NOW))
    assert pairs(found.notifications) == {("1", "good"), ("2", "unknown")}
    found.release()


def test_keys_of_two_types(spark: SparkSession, project: Project) -> None:
    project.write("sellers.json", [{"seller": 7, "rating": 5}])
    message = "`seller` has two types that cannot be joined, STRING in events and BIGINT in"
    with pytest.raises(SourceError, match=message):
        done(project.config(more=ENRICH.replace("csv", "json")), spark, project.stamp())


def test_an_index_with_another_schema(spark: SparkSession, project: Project) -> None:
    project.write("schema.toml", CLOSED)
    stamp = project.stamp()
    config = project.config(head='schema = "schema.toml"')
    with pytest.raises(SchemaError, match="the index has another schema than the pipeline, or none"):
        done(config, spark, stamp)


def test_no_row_of_a_table_fits(spark: SparkSession, project: Project) -> None:
    """Spark then finds that no event is needed, and counts none on the way."""
    project.write("events.jsonl", "".join(json.dumps(each) + "\n" for each in EVENTS) + BAD)
    project.write("sellers.csv", "seller,rating,country\n")
    config = project.config(more=ENRICH + 'how = "inner"')
    found = done(config, spark, Stamp(0, project.index(RATED), NOW))
    assert found.counts == Counts(4, 0, {"decode": 1})
    assert [letter[0] for letter in letters(found)] == ["decode"]
    found.release()


def test_what_comes_behind_a_rejected_event_of_its_id_is_not_lost(spark: SparkSession, project: Project) -> None:
    schema = '[domains.grade]\ntype = "enumerated"\nvalues = ["low", "high"]\n[attributes]\ngrade = "grade"\n'
    project.write("schema.toml", schema)
    rows = [{"id": "e1", "grade": "none"}, {"id": "e1", "grade": "low"}, {"id": "e2", "grade": "low"}]
    project.write("events.jsonl", [*rows, rows[2]])
    version = project.index([{"id": "a", "where": "grade = 'low'"}], schema=parse_schema(schema))
    given = 'deduplicate = "1 hour"\ncolumns = "id STRING, grade STRING"'
    config = project.config(given, head='schema = "schema.toml"')
    found = done(config, spark, Stamp(0, version, NOW))
    assert pairs(found.notifications) == {("e2", "a")}
    told = letters(found)
    assert [letter[:2] for letter in told] == [("validate", "e1"), ("validate", "e1")]
    assert any("came after another" in letter[2] for letter in told)
    found.release()
