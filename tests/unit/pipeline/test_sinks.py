"""Sinks: others can read what is written, a batch that is written again replaces itself, and failures are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset as ds
import pytest

from harken.errors import SourceError
from harken.pipeline.config import Config, DeadLetters, Sink, SourceConfig, SubscriptionsConfig
from harken.pipeline.sinks import require_no_batches, write, write_dead_letters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME = datetime(2026, 3, 1, 12, 30, 15, 123_456, UTC)
COLUMNS = (
    "event_id STRING, subscription_id STRING, owner STRING, match_time TIMESTAMP, batch_id LONG, tags ARRAY<STRING>"
)


def rows(spark: SparkSession, batch: int, *ids: str) -> DataFrame:
    data = [(id, "s", None, TIME, batch, ["a", "b"]) for id in ids]
    return spark.createDataFrame(data, COLUMNS, verifySchema=False)


def folder_sink(folder: Path, format: str = "parquet") -> Sink:
    return Sink(name="alerts", format=format, path=str(folder))


def of_pyarrow(folder: Path) -> list[tuple[str, int]]:
    table = ds.dataset(folder, partitioning="hive").to_table().to_pylist()
    return sorted((each["event_id"], each["batch"]) for each in table)


def of_duckdb(folder: Path) -> list[tuple[str, int]]:
    with duckdb.connect() as database:
        query = f"SELECT event_id, batch FROM read_parquet('{folder}/*/*.parquet', hive_partitioning=true) ORDER BY ALL"
        return [(str(id), int(batch)) for id, batch in database.execute(query).fetchall()]


def of_spark(spark: SparkSession, folder: Path) -> list[tuple[str, int]]:
    found = spark.read.parquet(str(folder)).select("event_id", "batch").collect()
    return sorted((row["event_id"], row["batch"]) for row in found)


def test_batches_are_read_by_spark_pyarrow_and_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    sink = folder_sink(tmp_path / "out")
    write(sink, rows(spark, 0, "a", "b"), 0, pipeline="p")
    write(sink, rows(spark, 1), 1, pipeline="p")
    write(sink, rows(spark, 12, "c"), 12, pipeline="p")

    expected = [("a", 0), ("b", 0), ("c", 12)]
    assert of_spark(spark, tmp_path / "out") == of_pyarrow(tmp_path / "out") == of_duckdb(tmp_path / "out") == expected
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["batch=0", "batch=12"]


def test_times_are_exact_and_of_a_zone_for_every_reader(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    write(folder_sink(tmp_path / "out"), rows(spark, 0, "a"), 0, pipeline="p")
    write(folder_sink(tmp_path / "lines", "json"), rows(spark, 0, "a"), 0, pipeline="p")

    assert ds.dataset(tmp_path / "out", partitioning="hive").to_table()["match_time"].to_pylist() == [TIME]
    (line,) = lines_of(tmp_path / "lines/batch=0")
    assert datetime.fromisoformat(line["match_time"]) == TIME
    assert line["owner"] is None
    assert line["tags"] == ["a", "b"]
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == before


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_a_batch_that_is_written_again_replaces_itself(spark: SparkSession, tmp_path: Path, format: str) -> None:
    sink = folder_sink(tmp_path / "out", format)
    for ids in (["a", "b"], ["c"], ["c"]):
        write(sink, rows(spark, 3, *ids), 3, pipeline="p")
    found = spark.read.format(format).load(sink.path)
    assert [row["event_id"] for row in found.collect()] == ["c"]
    write(sink, rows(spark, 3), 3, pipeline="p", rows=0)
    assert not (tmp_path / "out/batch=3").exists()


def test_the_first_batch_leaves_a_folder_that_can_be_read_even_if_it_is_empty(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(folder_sink(tmp_path / "out"), rows(spark, 0), 0, pipeline="p")
    assert of_spark(spark, tmp_path / "out") == of_pyarrow(tmp_path / "out") == of_duckdb(tmp_path / "out") == []
    assert set(spark.read.parquet(str(tmp_path / "out")).columns) > {"event_id", "subscription_id", "batch"}


def test_what_a_crash_left_unfinished_is_not_read_and_goes(spark: SparkSession, tmp_path: Path) -> None:
    sink = folder_sink(tmp_path / "out")
    torn = tmp_path / "out/_unfinished/0a1b2c3d/part-00000.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1 and no more")
    write(sink, rows(spark, 0, "a"), 0, pipeline="p")
    assert (
        of_spark(spark, tmp_path / "out") == of_pyarrow(tmp_path / "out") == of_duckdb(tmp_path / "out") == [("a", 0)]
    )
    assert not torn.exists()


def test_options_reach_the_writer(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(name="packed", format="json", path=str(tmp_path / "out"), options={"compression": "gzip"})
    write(sink, rows(spark, 0, "a"), 0, pipeline="p")
    assert [each.suffix for each in (tmp_path / "out/batch=0").glob("part-*")] == [".gz"]


def test_a_sink_that_cannot_be_written_says_so_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where a folder should be")
    with pytest.raises(SourceError, match="batch 4 cannot be written to the sink `alerts`: ") as raised:
        write(folder_sink(tmp_path / "out"), rows(spark, 4, "a"), 4, pipeline="p")
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 500
    assert (tmp_path / "out").read_text() == "a file where a folder should be"


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_dead_letters(spark: SparkSession, tmp_path: Path, format: str) -> None:
    output = DeadLetters(path=str(tmp_path / "dead"), format=format)
    for ids in (["a"], ["a", "b"]):
        write_dead_letters(output, rows(spark, 2, *ids), 2)
    write_dead_letters(output, rows(spark, 3), 3)
    found = spark.read.format(format).load(output.path)
    assert sorted((row["event_id"], row["batch"]) for row in found.collect()) == [("a", 2), ("b", 2)]


def test_the_console_shows_as_many_rows_as_it_should(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    sink = Sink(name="console", format="console", limit=1)
    write(sink, rows(spark, 7, "first", "second"), 7, pipeline="auction")
    write(sink, rows(spark, 8), 8, pipeline="auction", rows=0)
    shown = capsys.readouterr().out
    assert shown.startswith("auction, batch 7:\n")
    assert "|first" in shown
    assert "second" not in shown
    assert "batch 8" not in shown


DERBY = "org.apache.derby.iapi.jdbc.AutoloadedDriver"


def table_sink(name: str, **options: str) -> Sink:
    url = f"jdbc:derby:memory:{name};create=true"
    return Sink(name="table", format="jdbc", url=url, table="told", driver=DERBY, options=options)


def of_table(spark: SparkSession, sink: Sink, table: str = "told") -> list[tuple[str, str, int]]:
    reader = spark.read.format("jdbc").options(url=sink.url, dbtable=table, driver=DERBY)
    columns = ("event_id", "harken_pipeline", "harken_batch")
    found = reader.load().select(*columns).collect()
    return sorted((row[0], row[1], row[2]) for row in found)


def test_a_table_has_every_batch_once(spark: SparkSession) -> None:
    sink = table_sink("once")
    write(sink, rows(spark, 0, "a", "b"), 0, pipeline="p")
    write(sink, rows(spark, 1, "c"), 1, pipeline="p")
    write(sink, rows(spark, 0, "z"), 0, pipeline="another")
    write(sink, rows(spark, 0, "a", "x"), 0, pipeline="p")
    write(sink, rows(spark, 1), 1, pipeline="p", rows=0)
    assert of_table(spark, sink) == [("a", "p", 0), ("x", "p", 0), ("z", "another", 0)]


def test_a_table_that_cannot_take_the_rows_keeps_what_it_has(spark: SparkSession) -> None:
    sink = table_sink("kept")
    write(sink, rows(spark, 0, "a"), 0, pipeline="p")
    wider = rows(spark, 0, "b").selectExpr("*", "1 AS more")
    with pytest.raises(SourceError, match=r"batch 0 cannot be written to the sink `table`: .*(?i:more)"):
        write(sink, wider, 0, pipeline="p")
    assert of_table(spark, sink) == [("a", "p", 0)]


def test_values_that_are_no_single_ones_are_json_in_a_table(spark: SparkSession) -> None:
    sink = table_sink("nested")
    write(sink, rows(spark, 0, "a"), 0, pipeline="p")
    row = spark.read.format("jdbc").options(url=sink.url, dbtable="told", driver=DERBY).load().first()
    assert row is not None
    assert json.loads(row["tags"]) == ["a", "b"]
    assert row["match_time"].replace(tzinfo=UTC) == TIME


def config_of(*sinks: Sink) -> Config:
    source, subscriptions = SourceConfig(format="json", path="events"), SubscriptionsConfig(path="subscriptions.jsonl")
    return Config(name="p", source=source, subscriptions=subscriptions, sinks=sinks)


def test_a_stream_that_starts_anew_does_not_replace_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    folder, table = folder_sink(tmp_path / "out"), table_sink("anew")
    require_no_batches(config_of(folder, table), spark)

    write(table, rows(spark, 0, "a"), 0, pipeline="another")
    require_no_batches(config_of(folder, table), spark)
    write(table, rows(spark, 0, "a"), 0, pipeline="p")
    with pytest.raises(SourceError, match="the sink `table` has rows of `p` already"):
        require_no_batches(config_of(folder, table), spark)

    write(folder, rows(spark, 0, "a"), 0, pipeline="p")
    with pytest.raises(SourceError, match="the sink `alerts` has batches already"):
        require_no_batches(config_of(folder), spark)
