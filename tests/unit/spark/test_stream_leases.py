"""Leases of versions: a streaming query lets go of what it used some batches ago, a process when it ends."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harken import Engine
from harken.spark import Index, backtest, match
from harken.spark.stream_leases import MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def publish(index: Index, *thresholds: int, keep: int = 1) -> None:
    engine = Engine()
    engine.subscribe_many([(f"above {each}", f"n > {each}") for each in thresholds])
    index.publish(engine, keep=keep)


def test_a_query_holds_what_it_used_in_this_batch_and_the_last(tmp_path: Path) -> None:
    index = Index(tmp_path)
    for version in range(1, 51):
        publish(index, version)
        for _ in range(2):  # as a batch does that matches twice
            index.hold(version, MicroBatch("4f-11", str(version)))
        assert sorted(index.pinned().values()) == [version - 1, version][-version:]
    assert index.versions() == [48, 49, 50]


def test_a_version_that_every_batch_uses_is_never_let_go_of(tmp_path: Path) -> None:
    index = Index(tmp_path)
    for version in range(1, 6):
        publish(index, version)
        index.hold(version, MicroBatch("a", str(version)))
        index.hold(1, MicroBatch("a", str(version)))
        assert 1 in index.pinned().values()
    assert index.versions()[0] == 1


def test_readers_do_not_let_go_of_each_others_versions(tmp_path: Path) -> None:
    index = Index(tmp_path)
    publish(index, 1)
    index.hold(1)
    index.hold(1, MicroBatch("slow", "7"))
    for version in range(2, 6):
        publish(index, version)
        index.hold(version, MicroBatch("quick", str(version)))
    assert sorted(index.pinned().values()) == [1, 1, 4, 5]


def test_a_process_that_ends_lets_go(tmp_path: Path) -> None:
    publish(Index(tmp_path), 1)
    program = f"""
from harken.spark import Index
from harken.spark.stream_leases import MicroBatch
index = Index({str(tmp_path)!r})
index.hold(1)
index.hold(1, MicroBatch("a", "1"))
print(len(index.pinned()))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["2"]
    assert list((tmp_path / "pins").iterdir()) == []


def test_a_stream_that_matches_batch_by_batch_leaves_few_versions(spark: SparkSession, tmp_path: Path) -> None:
    """Every batch finds a new version, and its answer is read after the next version was published."""
    (tmp_path / "events").mkdir()
    for place in range(6):
        (tmp_path / "events" / f"{place}.json").write_text(json.dumps({"id": place, "n": 100}))
    index = Index(tmp_path / "index")
    publish(index, 0)
    matches: list[list[str]] = []

    def work(events: DataFrame, batch: int) -> None:
        answer = match(events, tmp_path / "index")
        publish(index, batch + 1)
        matches.append([row["subscription_id"] for row in answer.collect()])

    events = spark.readStream.schema("id long, n long").option("maxFilesPerTrigger", 1).json(str(tmp_path / "events"))
    query = events.writeStream.foreachBatch(work).trigger(availableNow=True).start()
    query.awaitTermination()
    assert matches == [[f"above {batch}"] for batch in range(6)]
    assert index.versions() == [5, 6, 7]


def test_a_backtest_that_is_closed_lets_go(spark: SparkSession, tmp_path: Path) -> None:
    index = Index(tmp_path)
    publish(index, 1)
    with backtest(spark.range(3).selectExpr("id", "id AS n"), tmp_path) as test:
        publish(index, 2)
        assert [row["matches"] for row in test.counts.collect()] == [1]
        assert index.versions() == [1, 2]
    assert index.pinned() == {}


def test_the_results_of_a_backtest_can_be_read_when_it_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    index = Index(tmp_path)
    publish(index, 1)
    counts = backtest(spark.range(3).selectExpr("id", "id AS n"), tmp_path).counts
    gc.collect()
    publish(index, 2)
    assert [row["matches"] for row in counts.collect()] == [1]
