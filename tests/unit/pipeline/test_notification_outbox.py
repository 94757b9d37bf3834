"""A store as a sink: notifications with their events, once each, whenever a batch is repeated, as subscribers want."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.errors import SourceError
from harken.pipeline import notification_outbox as outbox
from harken.pipeline.batch_outcome import Stamp
from harken.pipeline.config import Sink, load_config
from harken.pipeline.config.secrets import SecretUrl
from harken.pipeline.counts import Counts
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.micro_batch import run_batch
from harken.pipeline.reports import BatchReport, Report
from harken.pipeline.run import run
from harken.pipeline.sinks import write
from harken.pipeline.stream import stream
from harken.pipeline.stream_sources import read
from harken.store import Notified, Store, StoredDelivery, StoredSubscription, StoredThrottle, open_store
from harken.store.store import microseconds
from harken.store.stored import JSON, WAITING, XML
from services.postgres import running_postgres

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = """
[source]
format = "json"
path = "events"
columns = "id STRING, price DOUBLE, tags ARRAY<STRING>, at TIMESTAMP"
event_id = "id"
[subscriptions]
store = "harken.db"
[[sink]]
format = "store"
"""
STREAM = 'mode = "stream"\ncheckpoint = "state"\ntrigger = "available-now"\n'
HOUR = 3_600_000_000


class CrashError(Exception):
    """Ends a run as a kill would, as far as the store can tell."""


class Place:
    """A folder with a store, events and a pipeline."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.store = open_store(str(folder / "harken.db"))
        (folder / "events").mkdir()
        self.set(SETTINGS)

    def set(self, text: str) -> None:
        (self.folder / "pipeline.toml").write_text(text)

    def create(self, *ids: str, where: str = "price < 5", **given: Any) -> None:
        now = microseconds()
        given = {"expires_at": now + HOUR, "created_at": now, **given}
        made = [StoredSubscription(id, where, "sql", ticket=id.encode(), **given) for id in ids]
        with self.store.writing() as writing:
            assert [each.id for each in writing.create(made) if isinstance(each, StoredSubscription)] == list(ids)

    def remove(self, id: str) -> None:
        with self.store.writing() as writing:
            writing.remove(id)

    def events(self, name: str, *prices: float, **more: Any) -> None:
        lines = [json.dumps({"id": f"{name}{place}", "price": price, **more}) for place, price in enumerate(prices)]
        self.put(f"{name}.json", "".join(f"{line}\n" for line in lines))

    def put(self, name: str, text: str) -> None:
        path = self.folder / "events" / name
        path.write_text(text)
        os.utime(path, (ord(name[0]), ord(name[0])))  # files are taken by their times

    def run(self) -> Counts:
        return run(load_config(self.folder / "pipeline.toml")).counts

    def stream(
        self, reached: Callable[[str], None] = lambda step: None, hear: Callable[[Report], None] = lambda told: None
    ) -> Counts:
        return stream(load_config(self.folder / "pipeline.toml"), self.spark, hear, reached=reached)

    def notified(self, *ids: str) -> list[Notified]:
        since = {each.id: each.since for each in self.store.subscriptions_of(ids)}
        return self.store.notifications(since, 0, 100_000)

    def told(self, *ids: str) -> list[tuple[str, str]]:
        """(event, subscription), sorted: what comes twice is there twice."""
        return sorted((content(each)["id"], each.subscription) for each in self.notified(*ids))


def content(notified: Notified) -> dict[str, Any]:
    assert notified.event is not None
    assert b"\n" not in notified.event.body
    found: dict[str, Any] = json.loads(notified.event.body)
    return found


@pytest.fixture
def place(tmp_path: Path, spark: SparkSession) -> Iterator[Place]:
    found = Place(tmp_path, spark)
    with closing(found.store):
        yield found


def test_a_batch_is_told_with_its_events(place: Place) -> None:
    place.create("cheap", "low")
    place.create("dear", where="price > 5", owner="Ann")
    place.events("a", 1, 9, tags=["x", "grün 🌿"], at="2026-01-01T10:00:00.123456Z")
    place.events("b", 5)
    counts = place.run()
    assert (counts.events, counts.notifications) == (3, 3)
    assert place.told("cheap", "low", "dear") == [("a0", "cheap"), ("a0", "low"), ("a1", "dear")]
    found = place.notified("cheap", "dear")
    at = "2026-01-01T10:00:00.123456Z"
    assert content(found[0]) == {"id": "a0", "price": 1.0, "tags": ["x", "grün 🌿"], "at": at}
    assert {each.event.kind for each in found if each.event} == {JSON}
    assert [each.number for each in place.store.latest_events(9)] == [1, 2]  # one of them for two
    assert place.store.last_notification == 3


def test_a_batch_that_is_run_anew_is_another(place: Place) -> None:
    """It has no checkpoint by which it could know what was told."""
    place.create("cheap")
    place.events("a", 1)
    place.run()
    place.events("b", 2)
    place.run()
    assert place.told("cheap") == [("a0", "cheap"), ("a0", "cheap"), ("b0", "cheap")]


def test_nothing_matched_is_nothing_told(place: Place) -> None:
    place.create("cheap")
    place.events("a", 9)
    assert place.run().notifications == 0
    assert (place.store.latest_events(9), place.store.last_notification) == ([], 0)


def test_a_stream_takes_a_subscription_that_comes_between_two_batches(place: Place) -> None:
    place.set(STREAM + SETTINGS.replace("event_id", "max_files_per_trigger = 1\nevent_id"))
    place.create("cheap")
    for name in "abc":
        place.events(name, 1)

    def hear(told: Report) -> None:
        if isinstance(told, BatchReport) and told.batch == 0:
            place.create("late")
        if isinstance(told, BatchReport) and told.batch == 1:
            place.remove("cheap")

    place.stream(hear=hear)
    assert place.told("late") == [("b0", "late"), ("c0", "late")]
    assert [each.subscription for each in place.store.notifications({"cheap": 0}, 0, 99)] == ["cheap"] * 2
    place.events("d", 2)
    place.stream()
    assert place.told("late")[2:] == [("d0", "late")]


@pytest.mark.parametrize(("pairs", "crash"), [(1, 1), (1, 4), (3, 2), (1_000, 1)])
def test_a_batch_that_is_repeated_is_told_once(
    place: Place, pairs: int, crash: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_PAIRS", pairs)
    place.set(STREAM + SETTINGS)
    place.create("one", "two")
    place.create("many", where="price < 100")
    place.events("a", 1, 2, 50, 3, 1)
    steps: list[str] = []

    def reached(step: str) -> None:
        steps.append(step)
        if steps.count("appended a chunk") == crash or step == "wrote store":
            raise CrashError

    with pytest.raises(SourceError, match="Crash"):
        place.stream(reached)
    place.create("later")  # it is not in the version that the batch began with
    place.stream()
    small = [(f"a{number}", id) for number in (0, 1, 3, 4) for id in ("one", "two")]
    assert place.told("one", "two", "many") == sorted([*small, *((f"a{number}", "many") for number in range(5))])
    assert place.told("later") == []
    assert place.store.last_notification == 13


def test_a_new_checkpoint_begins_anew(place: Place) -> None:
    """Spark numbers its batches from 0 again. That they have been told under these numbers does not keep them back."""
    place.set(STREAM + SETTINGS)
    place.create("cheap")
    place.events("a", 1)
    place.stream()
    place.set((STREAM + SETTINGS).replace('"state"', '"another"'))
    place.stream()
    assert place.told("cheap") == [("a0", "cheap")] * 2


def test_webhooks_are_woken_and_throttles_hold(place: Place) -> None:
    place.create(
        "hook", delivery=StoredDelivery(url="https://example.org/", secret="s", throttle=StoredThrottle(2, 3_600))
    )
    place.create("plain")
    place.events("a", 1, 2, 3, 4)
    place.run()
    assert place.told("hook") == [("a0", "hook"), ("a1", "hook")]
    assert place.told("plain") == [(f"a{number}", "plain") for number in range(4)]
    (claimed,) = place.store.claim(microseconds(), microseconds() + HOUR, 9)
    assert (claimed.subscription, claimed.state) == ("hook", WAITING)


def write_batch(place: Place, change: Callable[[], None]) -> Store:
    """Match the events, and write what was found after a change of the store."""
    config = load_config(place.folder / "pipeline.toml")
    version = Subscriptions(config, place.spark).current()

    def reached(step: str) -> None:
        if step == "matched":
            change()

    run_batch(read(config, place.spark), config, Stamp(0, version, datetime.now(UTC)), reached)
    return place.store


def test_who_is_gone_or_another_by_now_is_not_told(place: Place) -> None:
    place.create("gone", "again", "still", "changed")
    place.create("expired", expires_at=microseconds() + HOUR)
    place.events("a", 1, 2)

    def change() -> None:
        for id in ("gone", "again"):
            place.remove(id)
        place.create("again", "new")
        with place.store.writing() as writing:
            writing.renew("expired", microseconds() - 1)
            writing.change(StoredSubscription("changed", "price > 9", "sql", microseconds() + HOUR, 0))

    store = write_batch(place, change)
    every = store.notifications(dict.fromkeys(("gone", "again", "still", "changed", "expired", "new"), 0), 0, 99)
    assert sorted((content(each)["id"], each.subscription) for each in every) == [
        (event, id) for event in ("a0", "a1") for id in ("changed", "still")
    ]


def test_events_that_nobody_is_told_of_any_more_are_not_journalled(place: Place) -> None:
    place.create("gone")
    place.events("a", 1, 2)
    assert write_batch(place, lambda: place.remove("gone")).latest_events(9) == []


def test_an_event_is_told_as_it_was_matched(place: Place) -> None:
    """With what enriched it, and with values that their columns cannot hold."""
    source = SETTINGS.replace('columns = "id STRING, price DOUBLE, tags ARRAY<STRING>, at TIMESTAMP"\n', "")
    place.set(source.replace("[sub", '[[enrich]]\npath = "sellers.csv"\non = ["seller"]\n[sub'))
    (place.folder / "sellers.csv").write_text("seller,country\ns1,FR\n")
    place.create("french", where="country = 'FR' AND price > 5")
    text = '{"id": "a0", "price": 9007199254740993, "seller": "s1"}\n{"id": "a1", "price": "lots", "seller": "s1"}\n'
    place.put("a.json", text + '{"id": "a2", "price": 7.5, "seller": "s1", "note": null}\n')
    place.run()
    bodies = [each.event.body.decode() for each in place.notified("french") if each.event]
    assert [json.loads(each) for each in bodies] == [
        {"id": "a0", "price": 9007199254740993, "seller": "s1", "country": "FR"},
        {"id": "a2", "price": 7.5, "seller": "s1", "country": "FR"},
    ]
    assert "9007199254740993" in bodies[0]


def test_documents_are_told_as_xml(place: Place) -> None:
    place.set(
        SETTINGS.replace('"json"', '"xml"\nrow_tag = "order"', 1)
        .replace('event_id = "id"\n', "")
        .replace('columns = "id STRING, price DOUBLE, tags ARRAY<STRING>, at TIMESTAMP"\n', "")
    )
    now = microseconds()
    with place.store.writing() as writing:
        writing.create([StoredSubscription("q", "/order[price < 5]", "xpath", now + HOUR, now, ticket=b"q")])
    place.put("a.xml", "<orders><order><price>1</price></order><order>\n<price>9</price></order></orders>")
    place.run()
    (found,) = place.notified("q")
    assert found.event is not None
    assert (found.event.kind, found.event.body) == (XML, b"<order><price>1</price></order>")


def test_other_sinks_see_nothing_of_it(place: Place) -> None:
    place.set(SETTINGS + '[[sink]]\nformat = "json"\npath = "out"\n')
    place.create("cheap", owner="Ann")
    place.events("a", 1)
    place.run()
    (file,) = (place.folder / "out/batch=0").glob("*.json")
    assert json.loads(file.read_text()).keys() == {
        *("event_id", "subscription_id", "owner", "event_time", "match_time", "index_version", "batch_id")
    }
    assert place.told("cheap") == [("a0", "cheap")]


def test_subscriptions_of_a_file_are_told_by_their_ids(place: Place) -> None:
    (place.folder / "rules.jsonl").write_text('{"id": "cheap", "where": "price < 5"}\n{"id": "x", "where": "true"}\n')
    place.set(SETTINGS.replace('store = "harken.db"', 'path = "rules.jsonl"') + 'store = "harken.db"')
    place.create("cheap", where="price > 100")
    place.events("a", 1)
    place.run()
    assert place.told("cheap", "x") == [("a0", "cheap")]


def test_a_store_that_cannot_be_written_is_told_with_batch_and_sink(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(name="told", format="store", store=str(tmp_path / "nowhere.db"))
    frame = frame_of(spark, [("e", "s")])
    with pytest.raises(SourceError, match="batch 4 cannot be written to the sink `told`: there is no store"):
        write(sink, frame, 4, pipeline="p")


@pytest.mark.processes
def test_a_store_in_postgresql(spark: SparkSession) -> None:
    with running_postgres() as server:
        url = f"postgresql://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.database}"
        with closing(open_store(url)) as store:
            now = microseconds()
            with store.writing() as writing:
                writing.create([StoredSubscription("s", "true", "sql", now + HOUR, now, ticket=b"s")])
            sink = Sink(name="told", format="store", store=SecretUrl(url))
            for _ in range(2):
                write(sink, frame_of(spark, [("e1", "s"), ("e2", "s"), ("e1", "nobody")]), 0, pipeline="p")
            found = store.notifications({"s": 0}, 0, 9)
            assert [(content(each)["id"], each.number, each.event_number) for each in found] == [
                ("e1", 1, 1),
                ("e2", 2, 2),
            ]


# Chunks


def frame_of(spark: SparkSession, pairs: list[tuple[str, str]]) -> DataFrame:
    rows = [(event, id, None, JSON, f'{{"id": "{event}"}}', 7) for event, id in pairs]
    columns = "event_id STRING, subscription_id STRING, created_at STRING, kind STRING, event STRING, time LONG"
    return spark.createDataFrame(rows, columns, verifySchema=False)


@pytest.mark.parametrize(
    ("pairs", "characters", "most", "expected"),
    [
        (100, 100, 100, ["aaabcc"]),
        (1, 100, 100, ["aaa", "b", "cc"]),
        (4, 100, 100, ["aaab", "cc"]),
        (100, 2, 100, ["aaab", "cc"]),
        (100, 1, 100, ["aaa", "b", "cc"]),
        (1, 100, 2, ["aa", "a", "b", "cc"]),
        (100, 100, 5, ["aaabc", "c"]),
    ],
)
def test_chunks_end_between_events_unless_one_is_too_large(
    pairs: int, characters: int, most: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_PAIRS", pairs), ("_CHARACTERS", characters), ("_MOST_PAIRS", most)):
        monkeypatch.setattr(outbox, name, value)
    rows = [
        {"event_id": text, "event": text, "subscription_id": str(number), "created_at": None, "kind": JSON, "time": 7}
        for number, text in enumerate("aaabcc")
    ]
    found = list(outbox._chunks(rows))
    assert [time for time, _ in found] == [7] * len(expected)
    assert ["".join(told.text * len(told.pairs) for told in chunk) for _, chunk in found] == expected
    assert [id for _, chunk in found for told in chunk for id, _ in told.pairs] == [str(number) for number in range(6)]


def test_events_of_one_id_that_differ_stay_apart() -> None:
    rows = [
        {"event_id": "e", "event": text, "subscription_id": "s", "created_at": None, "kind": JSON, "time": 7}
        for text in ("1", "1", "2")
    ]
    ((_, chunk),) = outbox._chunks(rows)
    assert [(told.text, len(told.pairs)) for told in chunk] == [("1", 2), ("2", 1)]


def test_the_order_of_rows_and_their_partitions_do_not_matter(place: Place) -> None:
    """A batch may be repeated on a machine with another number of cores."""
    place.create(*"rst")
    sink = Sink(name="told", format="store", store=str(place.folder / "harken.db"))
    pairs = [(f"e{event}", id) for event in range(7) for id in "rst"]
    for count, order in ((1, 1), (5, -1), (3, 1)):
        write(sink, frame_of(place.spark, pairs[::order]).repartition(count), 2, pipeline="p")
    assert place.told(*"rst") == sorted(pairs)
    write(sink, frame_of(place.spark, pairs), 2, pipeline="another")
    write(sink, frame_of(place.spark, pairs), 3, pipeline="p")
    assert place.told(*"rst") == sorted(pairs * 3)
