"""What workers on this machine need is compiled by the driver, before they start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import harken
from harken import Engine
from harken.events import validate
from harken.spark import match, rehearsing
from harken.spark.rehearsing import made_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = Path(__file__).parent / "first_use_job.py"
SOURCES = Path(__file__).parents[3] / "src"


@pytest.mark.slow
@pytest.mark.processes
def test_with_nothing_compiled_the_driver_compiles_and_says_so_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCES)}
    run = subprocess.run(
        [sys.executable, str(JOB)], env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert run.returncode == 0, run.stderr[-3_000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert results["matches"] == results["expected"]
    assert results["before"] == results["after"] > 20, "the workers compile nothing"
    assert run.stderr.count("compiling kernels") == 1


KINDS = {
    "whole": pa.int32(),
    "large": pa.int64(),
    "fraction": pa.float64(),
    "text": pa.string(),
    "long": pa.large_string(),
    "flag": pa.bool_(),
    "exact": pa.decimal128(12, 2),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "day": pa.date32(),
    "many": pa.list_(pa.string()),
    "inner": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.bool_())])))]),
}


def test_made_up_events_have_a_value_in_every_column() -> None:
    batch = made_up(pa.schema(KINDS), set())
    assert batch.schema == pa.schema(KINDS)
    assert all(column.null_count == 0 for column in batch.columns)
    assert batch.column("inner")[0].as_py() == {"a": 1, "b": [{"c": True}]}
    assert not validate(batch, None).rejected
    other = made_up(pa.schema({"span": pa.duration("us"), "map": pa.map_(pa.string(), pa.int64())}), set())
    assert [column.null_count for column in other.columns] == [len(other)] * 2


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_made_up_documents_are_documents(kind: pa.DataType) -> None:
    engine = Engine()
    engine.subscribe("a", "/a/b/@c = 1", language="xpath")
    batch = made_up(pa.schema({"document": kind}), {"document"})
    assert engine.match_batch(batch).ids == [["a"]] * len(batch)


def test_an_index_is_rehearsed_once_and_no_event_is_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsed: list[Any] = []
    original = rehearsing.rehearse_task
    monkeypatch.setattr(rehearsing, "rehearse_task", lambda *given: rehearsed.append(given) or original(*given))
    events = spark.range(5).selectExpr("id", "CAST(assert_true(false) AS STRING) AS category", "id AS price")
    engine = Engine()
    engine.subscribe("a", "category = 'Toy' AND price < 5")
    assert match(events, engine).columns == ["event_id", "subscription_id"]
    assert len(rehearsed) == 1
    match(events, engine)
    assert len(rehearsed) == 1, "the same index"


def test_exact_values_are_not_made_up(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsed: list[pa.RecordBatch] = []
    original = rehearsing.rehearse_task

    def noted(task: Any, batch: pa.RecordBatch) -> None:
        original(task, batch)
        rehearsed.append(batch)

    monkeypatch.setattr(rehearsing, "rehearse_task", noted)
    events = spark.range(5).selectExpr("id", "id AS price", "CAST(NULL AS STRING) AS beside")
    match(events, [("a", "price > 3"), ("b", "price = 7")], exact_values="beside")
    assert [batch.schema.names for batch in rehearsed] == [["id", "price"]]


def test_no_operator_is_called_for_events_that_nobody_sent(spark: SparkSession) -> None:
    called: list[Any] = []

    @harken.operator(deterministic=False)
    def seen(event: Any) -> bool:
        called.append(event)
        return True

    match(spark.range(5), [("a", "seen()")], operators=[seen])
    assert not called


def test_what_goes_wrong_beforehand_is_told_by_the_query(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise ValueError("no events can be made up")

    monkeypatch.setattr(rehearsing, "made_up", fail)
    assert match(spark.range(5), {"a": "id >= 3"}).count() == 2
