"""`build_index`: by Spark in parts, or here, and what it does with faulty subscriptions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from drawn import generate
from harken import Engine
from harken.errors import HarkenError, MismatchError, MismatchWarning, SourceError, SubscriptionError
from harken.spark import Index, build_index
from harken.spark.local import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("partitions", [1, 4])
def test_an_index_built_by_spark_finds_what_an_engine_finds(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    workload = generate("mixed", 2_000, 200)
    texts = [(f"s{place}", text) for place, text in enumerate(workload.texts().to_pylist())]
    engine = Engine()
    assert not engine.subscribe_many(texts).faults
    frame = spark.createDataFrame(texts, "id string, where string").repartition(partitions)
    version = build_index(frame, tmp_path)
    assert version.subscriptions == len(texts)
    matches = opened(version).match_batch(workload.events).ids
    assert list(map(sorted, matches)) == list(map(sorted, engine.match_batch(workload.events).ids))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["current.json", "lock", version.folder]


def test_other_columns_are_fields(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "x = 1", "me", 7)], "id string, where string, owner string, level int")
    engine = opened(build_index(frame, tmp_path))
    assert engine.subscription("a").fields == {"owner": "me", "level": 7}


def test_faulty_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("a", "x = 1"), ("b", "x ="), ("c", "y < 2"), (None, "x = 3"), ("a", "x = 4"), ("d", "x < 1 AND x > 1")]
    frame = spark.createDataFrame(rows, "id string, where string").coalesce(1)
    with pytest.raises(SubscriptionError, match="and 3 others"):
        build_index(frame, tmp_path)
    assert Index(tmp_path).versions() == []
    version = build_index(frame, tmp_path, on_fault="skip")
    assert sorted(each.id for each in opened(version)) == ["a", "c"]


def test_an_id_that_comes_in_two_parts_is_rejected_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(f"s{place % 50}", f"x = {place}") for place in range(100)]
    frame = spark.createDataFrame(rows, "id string, where string").repartition(5)
    with pytest.raises(SubscriptionError, match="is taken"):
        build_index(frame, tmp_path)
    assert build_index(frame, tmp_path, on_fault="skip").subscriptions == 50


def test_predicates_instead_of_texts(spark: SparkSession, tmp_path: Path) -> None:
    workload = generate("stock", 500, 50)
    engine = Engine()
    engine.subscribe_many(workload.table())
    version = build_index(spark.createDataFrame(workload.table()), tmp_path)
    assert version.subscriptions == 500
    matches = opened(version).match_batch(workload.events).counts
    assert matches == engine.match_batch(workload.events).counts


def test_no_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([], "id string, where string")
    assert build_index(frame, tmp_path).subscriptions == 0
    assert build_index([], tmp_path).version == 2


def test_a_plan_is_made_for_the_events_of_a_profile(tmp_path: Path) -> None:
    workload = generate("stock", 2_000, 500)
    profile = SimpleNamespace(sample=workload.events)
    version = build_index(workload.table(), tmp_path, profile=profile)
    assert opened(version).stats()["matcher"]["events_sampled"] > 0


@pytest.mark.parametrize("given", ["events", "profile"])
def test_subscriptions_are_compared_with_the_columns_of_events(tmp_path: Path, given: str) -> None:
    table = pa.table({"price": [1.0]})
    events: dict[str, Any] = {given: table.schema if given == "events" else SimpleNamespace(sample=table)}
    with pytest.raises(MismatchError, match="`prise` is no column"):
        build_index({"a": "prise > 1"}, tmp_path, on_mismatch="fail", **events)
    assert Index(tmp_path).versions() == []
    with pytest.warns(MismatchWarning, match="`prise` is no column"):
        build_index({"a": "prise > 1"}, tmp_path, **events)
    build_index({"a": "prise > 1"}, tmp_path, on_mismatch="ignore", **events)
    assert build_index({"a": "price > 1"}, tmp_path, on_mismatch="fail", **events).version == 3


def test_wrong_calls(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HarkenError, match="reject or skip"):
        build_index([], tmp_path, on_fault="ignore")
    with pytest.raises(HarkenError, match="there is no on_mismatch 'skip'"):
        build_index([], tmp_path, on_mismatch="skip")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="a list has no columns of events"):
        build_index([], tmp_path, events=["price"])
    with pytest.raises(SourceError, match="no column `id`"):
        build_index(spark.createDataFrame([("x = 1",)], "where string"), tmp_path)
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as id", "'x = 1' as where")
    with pytest.raises(SourceError, match="from a stream"):
        build_index(stream, tmp_path)
