"""Operators in Spark's workers."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import harken
from harken.errors import HarkenError, OperatorError
from harken.matchers.operators import matcher
from harken.spark import build_index, match
from harken.spark.worker_operators import NO_OPERATORS, worker_operators

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTIONS = [
    ("dear", "loc_in('Bronx') AND mob(?people) AND ?people > 90"),
    ("plain and dear", "price < 3 AND loc_in('Queens')"),
    ("plain", "price = 5"),
]
FOUND = [(0, "plain and dear"), (2, "plain and dear"), (5, "plain"), *((number, "dear") for number in (91, 93, 95))]


def operators() -> list[harken.Operator]:
    """Made here, so that they go to the workers by value."""

    @harken.operator(cost=3, reads=("region",), batched="lists")
    def loc_in(events: Any, region: Any) -> list[bool]:
        return [event["region"] == each for event, each in zip(events, region, strict=True)]

    @harken.operator(cost=20, reads=("image",))
    def mob(event: Any, people: Any = harken.FREE) -> Any:
        yield len(event["image"])

    return [loc_in, mob]


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows = [(n, "Bronx" if n % 2 else "Queens", bytearray(n), float(n)) for n in range(96)]
    return spark.createDataFrame(rows, "id long, region string, image binary, price double")


def rows_of(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.collect())


@pytest.mark.parametrize("how", [{}, {"strategy": "shard", "shards": 2}, {"order": "naive"}])
def test_they_run_in_the_workers(events: DataFrame, how: dict[str, Any]) -> None:
    assert rows_of(match(events, SUBSCRIPTIONS, operators=operators(), **how)) == sorted(FOUND)


def test_an_engine_brings_its_own(events: DataFrame) -> None:
    engine = harken.Engine(operators=operators())
    engine.subscribe_many(SUBSCRIPTIONS)
    assert rows_of(match(events, engine)) == sorted(FOUND)


def test_an_index_is_published_without_them_and_matched_with_them(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(SUBSCRIPTIONS, "id string, where string")
    build_index(frame, tmp_path / "index", operators=operators())
    assert rows_of(match(events, str(tmp_path / "index"), operators=operators())) == sorted(FOUND)
    with pytest.raises(HarkenError, match="the operator `loc_in` is not available"):
        build_index(SUBSCRIPTIONS, tmp_path / "other")


def test_what_fails_there_is_told(events: DataFrame) -> None:
    @harken.operator(reads=("price",), most_failures=10**6)
    def fails(event: Any) -> bool:
        if event["price"] > 1:
            raise ValueError("too dear")
        return True

    rows = rows_of(match(events.limit(4), [("a", "fails()")], operators=[fails], on_error="tell"))
    assert [row[0] for row in rows if row[1] == "a" and row[2] is None] == [0, 1]
    assert all("the operator `fails` failed: ValueError: too dear" in row[2] for row in rows if row[2] is not None)
    assert sum(row[2] is not None for row in rows) == 2


def test_one_that_cannot_be_sent_is_named() -> None:
    import threading

    lock = threading.Lock()

    @harken.operator
    def locked(event: Any) -> bool:
        with lock:
            return True

    with pytest.raises(OperatorError, match="cannot be sent to the workers") as caught:
        worker_operators([locked])
    assert caught.value.hint == 'name it as "module:name": then each worker imports it'
    assert worker_operators([]) is NO_OPERATORS


def test_shards_share_few_predicates(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer evaluations in all shards than with a random cut of the same sizes."""
    events = spark.createDataFrame([(seed, seed) for seed in range(8)], "id long, seed long").coalesce(1)
    random = Random(3)
    topics = [random.sample(range(topic * 5, topic * 5 + 5), 3) for topic in range(6) for _ in range(10)]
    random.shuffle(topics)
    subscriptions = [(str(place), " AND ".join(f"holds({each})" for each in some)) for place, some in enumerate(topics)]

    def evaluated(name: str) -> tuple[int, list[tuple[Any, ...]]]:
        counted = str(tmp_path / name)

        @harken.operator(cost=5)
        def holds(event: Any, number: int) -> bool:
            with open(counted, "a") as file:
                file.write("x")
            return bool((event["seed"] * 31 + number * 17) % 3)

        pairs = rows_of(match(events, subscriptions, operators=[holds], strategy="shard", shards=3))
        return Path(counted).stat().st_size, pairs

    together, pairs = evaluated("together")
    monkeypatch.setattr(matcher, "balanced_shares", lambda starts, *_: np.arange(len(starts) - 1) % 3)
    at_random, same = evaluated("at random")
    assert pairs == same
    assert len(pairs) > 20
    assert together < 0.7 * at_random
