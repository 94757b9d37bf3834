"""Streams: batches follow each other and the subscriptions' changes; what fails is told, and nothing of it is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harken.errors import HarkenError, SegmentError, SourceError
from harken.pipeline.config import load_config
from harken.pipeline.counts import Counts
from harken.pipeline.reports import BatchReport, RefreshReport, Report
from harken.pipeline.stream import stream
from harken.spark.building import build_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, Any] = {
    "mode": "stream",
    "checkpoint": "state",
    "trigger": "available-now",
    "source.format": "json",
    "source.path": "events",
    "source.columns": "id STRING, price DOUBLE, at TIMESTAMP",
    "source.event_id": "id",
    "source.event_time": "at",
    "source.max_files_per_trigger": 1,
    "subscriptions.path": "rules.jsonl",
    "sink.format": "json",
    "sink.path": "out",
}
AT = "2026-01-01T00:00:00Z"


class Pipeline:
    """A pipeline in a folder: what goes in, and what came out."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.told: list[Report] = []
        (folder / "events").mkdir()
        self.set()
        self.rules(cheap="price < 5")

    def set(self, **changes: Any) -> None:
        """Write the configuration, some of it other than usual. Underscores before a name are dots."""
        settings = SETTINGS | {name.replace("__", "."): value for name, value in changes.items()}
        tables: dict[str, list[str]] = {"": []}
        for name, value in settings.items():
            table, _, key = name.rpartition(".")
            if value is not None:
                tables.setdefault(table, []).append(f"{key} = {json.dumps(value)}")
        head = tables.pop("")
        heads = {"sink": "[[sink]]", "second": "[[sink]]"}
        parts = ["\n".join([heads.get(name, f"[{name}]"), *lines]) for name, lines in tables.items()]
        (self.folder / "pipeline.toml").write_text("\n".join([*head, *parts]))

    def rules(self, **rules: str) -> None:
        lines = [json.dumps({"id": id, "where": where, "owner": f"{id}'s"}) for id, where in rules.items()]
        self._put("rules.jsonl", lines)

    def events(self, name: str, *prices: Any, lines: tuple[str, ...] = (), at: str = AT) -> None:
        """Put a file of events where it is seen. Their ids are made of its name and their places."""
        found = [json.dumps({"id": f"{name}{place}", "price": price, "at": at}) for place, price in enumerate(prices)]
        self._put(f"events/{name}.json", [*found, *lines])
        # Files are taken by their times, which may be too near to each other to tell.
        os.utime(self.folder / f"events/{name}.json", (ord(name[0]), ord(name[0])))

    def _put(self, name: str, lines: list[str]) -> None:
        unfinished = self.folder / "unfinished"
        unfinished.write_text("".join(f"{line}\n" for line in lines))
        unfinished.replace(self.folder / name)

    def run(self, hear: Callable[[Report], None] = lambda told: None, stop: threading.Event | None = None) -> Counts:
        def tell(told: Report) -> None:
            self.told.append(told)
            hear(told)

        return stream(load_config(self.folder / "pipeline.toml"), self.spark, tell, stop)

    def reports(self) -> list[BatchReport]:
        return [each for each in self.told if isinstance(each, BatchReport)]

    def changes(self) -> list[RefreshReport]:
        return [each for each in self.told if isinstance(each, RefreshReport)]

    def lines(self, folder: str = "out") -> list[dict[str, Any]]:
        files = sorted((self.folder / folder).glob("batch=*/*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def pairs(self, folder: str = "out") -> list[tuple[str, str]]:
        return sorted((each["event_id"], each["subscription_id"]) for each in self.lines(folder))

    def dead(self) -> list[tuple[str, str]]:
        return sorted((each["stage"], each["event"]) for each in self.lines("state/dead-letters"))


@pytest.fixture
def pipeline(tmp_path: Path, spark: SparkSession) -> Pipeline:
    return Pipeline(tmp_path, spark)


def test_every_step_of_a_batch_is_announced(pipeline: Pipeline) -> None:
    pipeline.events("a", 1, lines=("no event",))
    steps: list[str] = []
    stream(load_config(pipeline.folder / "pipeline.toml"), pipeline.spark, reached=steps.append)
    wrote = ["wrote elsewhere", "wrote json", "wrote elsewhere", "wrote dead letters"]
    assert steps == ["pinned", "begun", "matched", *wrote, "remembered", "done", "returned"]


@pytest.mark.slow
def test_a_stream_finds_its_columns_and_keeps_them(pipeline: Pipeline) -> None:
    """What is odd follows the subscriptions of each batch; the types of the columns stay."""
    pipeline.set(source__columns=None, source__event_time=None, match__columns=["price"])
    pipeline.events("a", 1, "lots", 9)
    pipeline.events("b", "lots", 2, 2.5)

    def change(told: Report) -> None:
        if isinstance(told, BatchReport) and told.batch == 0:
            pipeline.rules(cheap="price < 5", words="price = 'lots'")

    counts = pipeline.run(change)
    assert pipeline.pairs() == [("a0", "cheap"), ("b0", "words"), ("b1", "cheap"), ("b2", "cheap")]
    assert [report.counts.odd_values for report in pipeline.reports()] == [{"price": 1}, {}]
    assert (counts.odd_values, counts.dead_letters) == ({"price": 1}, {"type": 1})
    kept = pipeline.folder / "state" / "columns.json"
    before = kept.read_text()
    pipeline.rules(words="price = 'lots'")
    pipeline.events("c", "lots", 3)
    pipeline.run()
    assert kept.read_text() == before
    assert pipeline.pairs()[-1] == ("c0", "words")
    assert [line["price"] for line in pipeline.lines() if line["price"] is not None] == [1.0, 2.0, 2.5]
    reasons = [line["reason"] for line in pipeline.lines("state/dead-letters")]
    assert reasons == ['`price` is "lots", where subscriptions expect a number']


def test_a_stream_takes_over_changes_from_the_next_batch_and_rejects_bad_ones(pipeline: Pipeline) -> None:
    for name in "abcd":
        pipeline.events(name, 3, 7, lines=("no json",) if name == "a" else ())

    def hear(told: Report) -> None:
        if isinstance(told, BatchReport) and told.batch == 0:
            pipeline.rules(cheap="price < 5", dear="price > 5")
        if isinstance(told, BatchReport) and told.batch == 1:
            pipeline.rules(cheap="price <")
        if isinstance(told, BatchReport) and told.batch == 2:
            pipeline.rules(dear="price > 5")

    counts = pipeline.run(hear)
    assert pipeline.pairs() == [
        ("a0", "cheap"),
        ("b0", "cheap"),
        ("b1", "dear"),
        ("c0", "cheap"),
        ("c1", "dear"),
        ("d1", "dear"),
    ]
    assert [each.version.version for each in pipeline.reports()] == [1, 2, 2, 3]
    added, rejected, removed = pipeline.changes()
    assert (added.added, removed.removed) == (1, 1)
    assert rejected.rejected is not None
    assert "rules.jsonl, line 1" in rejected.rejected
    assert pipeline.dead() == [("decode", "no json")]
    assert (counts.events, counts.notifications, counts.dead_letter_count) == (9, 6, 1)

    first = pipeline.lines()[0]
    assert {name: first[name] for name in ("owner", "index_version", "batch_id")} == {
        "owner": "cheap's",
        "index_version": 1,
        "batch_id": 0,
    }
    assert datetime.fromisoformat(first["event_time"]) == datetime.fromisoformat(AT)
    assert datetime.fromisoformat(first["match_time"]) == pipeline.reports()[0].time

    pipeline.told.clear()
    assert pipeline.run() == Counts()
    assert pipeline.told == []


@pytest.mark.slow
def test_fifty_changes_of_the_subscriptions_leave_few_versions(pipeline: Pipeline) -> None:
    for place in range(51):
        pipeline.events(chr(0x100 + place), 3)

    def hear(told: Report) -> None:
        if isinstance(told, BatchReport):
            pipeline.rules(cheap=f"price < {6 + told.batch}")

    pipeline.run(hear)
    assert [each.version.version for each in pipeline.reports()] == list(range(1, 52))
    versions = {each.name for each in (pipeline.folder / "state").rglob("version-*") if each.is_dir()}
    assert len(versions) <= 12


def test_a_batch_that_failed_is_done_again_as_it_was_begun(pipeline: Pipeline) -> None:
    pipeline.set(second__format="json", second__path="second")
    pipeline.events("a", 3, 7)
    (pipeline.folder / "second").write_text("a file where a folder should be")
    with pytest.raises(SourceError, match="batch 0 cannot be written to the sink `json-2`"):
        pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap")]
    (begun,) = pipeline.lines()

    (pipeline.folder / "second").unlink()
    pipeline.rules(dear="price > 5")
    pipeline.events("b", 3, 7)
    pipeline.run()
    assert pipeline.pairs() == pipeline.pairs("second") == [("a0", "cheap"), ("b1", "dear")]
    assert pipeline.lines()[0] == pipeline.lines("second")[0] == begun
    assert [(each.batch, each.is_replay) for each in pipeline.reports()] == [(0, True), (1, False)]


def test_a_batch_that_spark_does_not_know_to_be_done_is_not_done_again(pipeline: Pipeline) -> None:
    pipeline.events("a", 3)
    pipeline.run()
    written = {file: file.stat().st_mtime_ns for file in (pipeline.folder / "out").rglob("*")}
    for name in ("0", ".0.crc"):
        (pipeline.folder / "state/spark/commits" / name).unlink()
    pipeline.events("b", 4)
    pipeline.told.clear()
    pipeline.run()
    assert [each.batch for each in pipeline.reports()] == [1]
    assert pipeline.pairs() == [("a0", "cheap"), ("b0", "cheap")]
    assert {file: file.stat().st_mtime_ns for file in written} == written


def test_a_checkpoint_is_kept_as_a_whole(pipeline: Pipeline) -> None:
    pipeline.events("a", 3)
    pipeline.run()
    shutil.rmtree(pipeline.folder / "state/spark")
    with pytest.raises(SegmentError, match="belong to another query"):
        pipeline.run()
    shutil.rmtree(pipeline.folder / "state")
    with pytest.raises(SourceError, match="the sink `json` has batches already"):
        pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap")]


def test_no_input_is_no_batch(pipeline: Pipeline) -> None:
    assert pipeline.run() == Counts()
    assert pipeline.told == []
    assert not (pipeline.folder / "out").exists()
    pipeline.events("a")
    assert pipeline.run().events == 0
    pipeline.events("b", 3)
    assert pipeline.run().notifications == 1


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "event"])
def test_a_stream_stops_after_the_batch_that_is_running(pipeline: Pipeline, how: str) -> None:
    pipeline.set(trigger="1 second")
    for name in "ab":
        pipeline.events(name, 3)
    stop = threading.Event()
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]

    def hear(told: Report) -> None:
        if how == "event":
            stop.set()
        elif len(pipeline.reports()) == 1:
            os.kill(os.getpid(), getattr(signal, how))

    pipeline.run(hear, stop)
    reports = len(pipeline.reports())
    assert reports >= 1
    assert len(list((pipeline.folder / "state/batches").glob("*/done.json"))) == reports
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before

    pipeline.set()
    pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap"), ("b0", "cheap")]
    assert [each.batch for each in pipeline.reports()] == [0, 1]


def test_duplicate_and_late_events(pipeline: Pipeline) -> None:
    pipeline.set(source__deduplicate="1 hour", source__late_after="10 minutes", source__late="reject")
    again = json.dumps({"id": "a0", "price": 3, "at": AT})
    pipeline.events("a", 3, lines=(again,))
    pipeline.events("b", 3, lines=(again,), at="2999-01-01T00:00:00Z")
    now = datetime.now().astimezone().isoformat()
    pipeline.events("c", 3, at=now)
    counts = pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap"), ("b0", "cheap"), ("c0", "cheap")]
    assert counts.duplicates == 2
    assert counts.late == 0
    pipeline.events("d", 3, lines=(again,))
    counts = pipeline.run()
    assert [(stage, json.loads(event)["id"]) for stage, event in pipeline.dead()] == [("late", "a0"), ("late", "d0")]
    assert counts.dead_letters == {"late": 2}
    assert len(pipeline.pairs()) == 3


def test_columns_that_appear_vanish_or_are_of_another_type(pipeline: Pipeline) -> None:
    pipeline.events("a", 3)
    wider = json.dumps({"id": "more", "price": 4, "at": AT, "colour": "red"})
    narrower = json.dumps({"id": "less"})
    other = json.dumps({"id": "other", "price": "cheap", "at": AT})
    pipeline.events("b", lines=(wider, narrower, other))
    pipeline.events("c", 3)
    counts = pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap"), ("c0", "cheap"), ("more", "cheap")]
    assert pipeline.dead() == [("decode", other)]
    assert counts.events == 5


def test_a_parquet_file_of_another_type_stops_the_stream_until_it_is_mended(pipeline: Pipeline) -> None:
    pipeline.set(source__format="parquet", source__columns="id STRING, price DOUBLE", source__event_time=None)
    place = pipeline.folder / "events"

    def put(name: str, price: Any) -> None:
        pq.write_table(pa.table({"id": [name], "price": [price]}), place / f"{name}.parquet")
        os.utime(place / f"{name}.parquet", (ord(name), ord(name)))

    put("a", 3.0)
    put("b", "cheap")
    put("c", 4.0)
    with pytest.raises(HarkenError) as raised:
        pipeline.run()
    assert "b.parquet" in raised.value.message
    assert len(raised.value.message) < 1_000
    assert pipeline.pairs() == [("a", "cheap")]
    put("b", 3.0)
    pipeline.run()
    assert pipeline.pairs() == [("a", "cheap"), ("b", "cheap"), ("c", "cheap")]


def test_an_index_that_vanishes_stops_the_stream_until_it_is_back(pipeline: Pipeline) -> None:
    place, elsewhere = pipeline.folder / "index", pipeline.folder / "elsewhere"
    build_index({"cheap": "price < 5"}, place)
    pipeline.set(subscriptions__path=None, subscriptions__index="index")
    for name in "ab":
        pipeline.events(name, 3)
    with pytest.raises(SegmentError, match="does not have version 1"):
        pipeline.run(lambda told: None if isinstance(told, RefreshReport) else shutil.move(place, elsewhere))
    assert pipeline.pairs() == [("a0", "cheap")]
    (change,) = pipeline.changes()
    assert change.rejected is not None
    shutil.move(elsewhere, place)
    pipeline.run()
    assert pipeline.pairs() == [("a0", "cheap"), ("b0", "cheap")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a file system that is small enough to be full can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(file: Path) -> None:
    """Let a file grow until there is no room."""
    with suppress(OSError), file.open("wb", 0) as stream:
        while stream.write(b"x" * 4_096):
            pass


@pytest.mark.parametrize("full", ["sink", "checkpoint"])
def test_a_full_disk_stops_the_stream_until_there_is_room(pipeline: Pipeline, small_disk: Path, full: str) -> None:
    changes = {"sink": {"sink__path": "disk/out"}, "checkpoint": {"checkpoint": "disk/state"}}[full]
    pipeline.set(**changes, subscriptions__keep="kept")
    out = "disk/out" if full == "sink" else "out"
    pipeline.events("a", 3)
    pipeline.run()
    filler = small_disk / "filler"
    fill(filler)
    pipeline.events("b", *range(50))
    with pytest.raises(HarkenError, match=r"(?i)no space left|cannot be written") as raised:
        pipeline.run()
    assert len(raised.value.message) < 1_000
    assert set(pipeline.pairs(out)) <= {("a0", "cheap"), *((f"b{price}", "cheap") for price in range(5))}
    filler.unlink()
    pipeline.run()
    assert pipeline.pairs(out) == sorted([("a0", "cheap"), *((f"b{price}", "cheap") for price in range(5))])
