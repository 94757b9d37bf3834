"""The golden cases through Spark, in every way that events can take there, against the answers written by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from conformance.cases import CaseFile, case_files
from conformance.tables import tables_of
from harken import Engine
from harken.errors import CapabilityError
from harken.matchers import ALGORITHMS
from harken.matchers.algorithm_registry import takes_option
from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS
from harken.spark import Index, build_index, match
from harken.spark.index_versions import IndexVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Answers = dict[str, set[str]]
Way = Callable[["SparkSession", "pa.Table", IndexVersion, Path], Answers]

matched = partial(match, event_id="event_name", on_mismatch="ignore")
"""The cases compare unlike types on purpose."""

FILES = case_files()
LEAST_SHARE = 0.7
"""Of the golden events that have to fit into tables: what mixes types in one array does not."""


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
def test_golden_cases(spark: SparkSession, cases: CaseFile, tmp_path: Path) -> None:
    engine = Engine(cases.schema)
    assert not engine.subscribe_many((where, where) for where, _ in cases.expected).faults
    version = Index(tmp_path / "index").publish(engine)
    tables, left_out = tables_of(cases.events)
    assert len(left_out) <= (1 - LEAST_SHARE) * len(cases.events), left_out
    expected = {where: names - set(left_out) for where, names in cases.expected}
    for way in ways_of(cases):
        found: Answers = {where: set() for where in expected}
        for place, table in enumerate(tables):
            for where, names in way(spark, table, version, tmp_path / f"{way.__name__}-{place}").items():
                found[where] |= names
        assert found == expected, way.__name__


def ways_of(cases: CaseFile) -> list[Way]:
    """All ways in the long form; else one, so that the files have each of them twice at least."""
    every: list[Way] = [by_pairs, by_lists, by_shards, by_lists_of_shards, by_stream, by_stream_in_shards]
    return every if os.environ.get("HARKEN_LONG") else [every[FILES.index(cases) % len(every)]]


def by_pairs(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    return _paired(matched(spark.createDataFrame(table), version, on_error="fail"))


def by_lists(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    return _listed(matched(spark.createDataFrame(table), version, output="lists"))


def by_shards(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    events = spark.createDataFrame(table)
    return _paired(matched(events, version, strategy="shard", shards=3))


def by_lists_of_shards(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    events = spark.createDataFrame(table)
    return _listed(matched(events, version, strategy="shard", output="lists"))


def by_stream(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    return _streamed(spark, table, version, place)


def by_stream_in_shards(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path) -> Answers:
    return _streamed(spark, table, version, place, strategy="shard", shards=3)


def _streamed(spark: SparkSession, table: pa.Table, version: IndexVersion, place: Path, **options: Any) -> Answers:
    place.mkdir()
    pyarrow.parquet.write_table(table, place / "events.parquet")
    kinds = spark.read.parquet(str(place)).schema
    events = spark.readStream.schema(kinds).parquet(str(place))
    query = (
        matched(events, version, **options)
        .writeStream.format("memory")
        .queryName("golden_cases")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _paired(spark.table("golden_cases"))


def _paired(found: DataFrame) -> Answers:
    answers: Answers = {}
    rows = [(row["event_id"], row["subscription_id"]) for row in found.collect()]
    assert len(rows) == len(set(rows)), "a pair came twice"
    for name, where in rows:
        answers.setdefault(where, set()).add(name)
    return answers


def _listed(found: DataFrame) -> Answers:
    answers: Answers = {}
    for row in found.collect():
        for where in row["subscription_ids"]:
            answers.setdefault(where, set()).add(row["event_id"])
    return answers


ROWS = [("e1", "Toy", 3.5, "<a><b>1</b></a>"), ("e2", "Toy", 9.0, "<a/>"), ("e3", "Book", 50.0, None)]
WANTED = {
    "cheap": ("category = 'Toy' AND price < 5", "sql", {"e1"}),
    "toys": ("category LIKE '%oy' OR price > 100", "sql", {"e1", "e2"}),
    "inside": ("price < 5 AND xpath_boolean(document, '/a/b = 1')", "sql", {"e1"}),
    "document": ("/a[b]", "xpath", {"e1"}),
    "none": ("price > 60", "sql", set[str]()),
}
ON_WORKERS = [(each, "xpath", {}) for each in ALGORITHMS]
ON_WORKERS += [(each, "xpath", {"database": "sqlite"}) for each in ALGORITHMS if takes_option(each, "database")]
ON_WORKERS += [
    ("columnar", each, {"database": "sqlite"} if each.startswith("xpath_") else {}) for each in DOCUMENT_ALGORITHMS
]


def engine_of(algorithm: str, documents: str, options: Mapping[str, Any]) -> Engine:
    engine = Engine(algorithm=algorithm, documents=documents, **options)
    records = [{"id": id, "where": where, "language": language} for id, (where, language, _) in WANTED.items()]
    assert not engine.subscribe_many(records).faults
    return engine


def runs_always(algorithm: str, documents: str, options: Mapping[str, Any]) -> bool:
    """Whether a choice is in the short form too: the defaults, and one of each other kind."""
    return (algorithm, documents) in {
        ("columnar", "xpath"),
        ("naive", "xpath"),
        ("hanson", "xpath"),
        ("relational_anchored", "xpath"),
        ("columnar", "xpath_shared"),
    }


@pytest.mark.parametrize(
    ("algorithm", "documents", "options"),
    [each if runs_always(*each) else pytest.param(*each, marks=pytest.mark.slow) for each in ON_WORKERS],
)
def test_every_algorithm_runs_on_workers(
    spark: SparkSession, tmp_path: Path, algorithm: str, documents: str, options: dict[str, Any]
) -> None:
    engine = engine_of(algorithm, documents, options)
    events = spark.createDataFrame(ROWS, "id string, category string, price double, document string")
    expected = {id: names for id, (_, _, names) in WANTED.items() if names}
    assert _paired(match(events, engine, on_error="fail")) == expected
    assert _paired(match(events, engine, strategy="shard", shards=2, on_error="fail")) == expected
    engine.save(tmp_path / "saved")
    assert _paired(match(events, tmp_path / "saved")) == expected
    build_index(engine, tmp_path / "index")
    assert _paired(match(events, tmp_path / "index")) == expected


@pytest.mark.parametrize("choice", [{"algorithm": "relational_anchored"}, {"documents": "xpath_shared"}])
def test_an_engine_in_a_database_with_a_url_is_rejected(
    spark: SparkSession, tmp_path: Path, choice: dict[str, Any]
) -> None:
    engine = Engine(**choice, database="postgresql://nobody:secret@127.0.0.1:1/nothing")
    events = spark.createDataFrame(ROWS, "id string, category string, price double, document string")
    for attempt in (lambda: match(events, engine), lambda: build_index(engine, tmp_path / "index")):
        with pytest.raises(CapabilityError, match="workers") as caught:
            attempt()
        assert "secret" not in str(caught.value)
        assert next(iter(choice.values())) in str(caught.value)
