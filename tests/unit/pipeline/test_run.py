"""A whole pipeline in batch: what it writes, what it tells, and what it does when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset
import pytest

from harken.errors import EventError, HarkenError, MismatchError, SegmentError, SourceError, SubscriptionError
from harken.matchers import ALGORITHMS
from harken.pipeline import __main__ as program
from harken.pipeline.batch_planning import plan
from harken.pipeline.config import MetricsConfig, load_config
from harken.pipeline.counts import Counts
from harken.pipeline.reports import BatchReport, RefreshReport, Report
from harken.pipeline.run import run
from harken.spark.index_versions import Index

from .project import COLUMNS, EVENTS, PAIRS, SUBSCRIPTIONS, Project, pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BAD = '{"id": "B1", "price": "cheap"}'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_batch_from_beginning_to_end(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", "".join(json.dumps(each) + "\n" for each in EVENTS) + BAD)
    sinks = '[[sink]]\nformat = "parquet"\npath = "out"\n[[sink]]\nformat = "json"\npath = "lines"\n'
    config = project.config(sink=sinks, match='columns = ["price"]')
    told: list[Report] = []
    result = run(config, told.append)
    assert pairs(project.rows(spark)) == pairs(project.rows(spark, "lines", "json")) == PAIRS
    (letter,) = project.rows(spark, "out-dead-letters", "json")
    assert (letter["stage"], letter["event"]) == ("decode", BAD)
    assert result.counts == Counts(4, 3, {"decode": 1})
    (report,) = told
    assert isinstance(report, BatchReport)
    assert (report.batch, report.counts, report.version.subscriptions) == (0, result.counts, 2)
    assert str(result).startswith("4 events · 3 notifications · 1 dead letter · 1 batch · ")


def test_to_run_it_again_is_to_replace_it(spark: SparkSession, project: Project) -> None:
    config = project.config()
    run(config)
    project.write("events.jsonl", EVENTS[:1])
    run(config)
    assert pairs(project.rows(spark)) == {("A1", "alice")}
    found = pyarrow.dataset.dataset(project.folder / "out", partitioning="hive").to_table().to_pylist()
    assert [row["subscription_id"] for row in found] == ["alice"]
    query = f"SELECT event_id FROM '{project.folder}/out/**/*.parquet'"
    assert duckdb.sql(query).fetchall() == [("A1",)]


def test_no_events_at_all(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", "")
    assert run(project.config()).counts == Counts()
    assert project.rows(spark) == []


def test_no_subscriptions_at_all(spark: SparkSession, project: Project) -> None:
    project.write("subscriptions.jsonl", "")
    assert run(project.config()).counts == Counts(3)
    assert project.rows(spark) == []


def poisoned(project: Project, count: int) -> None:
    """So many events, one of which cannot be read."""
    with (project.folder / "events.jsonl").open("w") as stream:
        for place in range(count):
            stream.write('{"id": "bad", "price": [[[' if place == count // 3 else f'{{"id": "{place}", "price": 9}}')
            stream.write("\n")


@pytest.mark.parametrize("count", [5_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_poison_record_among_many(spark: SparkSession, project: Project, count: int) -> None:
    poisoned(project, count)
    assert run(project.config()).counts == Counts(count, count - 1, {"decode": 1})
    found = spark.read.parquet(str(project.folder / "out"))
    assert found.select("event_id").distinct().count() == count - 1
    (letter,) = project.rows(spark, "out-dead-letters", "json")
    assert letter["event"] == '{"id": "bad", "price": [[['


def test_a_batch_from_an_index(spark: SparkSession, project: Project) -> None:
    version = project.index()
    text = project.text().replace('path = "subscriptions.jsonl"', 'index = "index"')
    project.write("pipeline.toml", text)
    assert program.main([str(project.folder / "pipeline.toml")]) == 0
    assert pairs(project.rows(spark)) == PAIRS
    assert Index(project.folder / "index").versions() == [version.version]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_batch_from_an_index_of_any_algorithm(spark: SparkSession, project: Project, algorithm: str) -> None:
    project.index(algorithm=algorithm)
    text = project.text().replace('path = "subscriptions.jsonl"', 'index = "index"')
    config = load_config(project.write("pipeline.toml", text))
    assert plan(config).index.subscriptions == 2
    run(config)
    assert pairs(project.rows(spark)) == PAIRS


# What is wrong


def test_rejected_events_that_have_nowhere_to_go(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", BAD + "\n" + json.dumps(EVENTS[1]))
    config = replace(project.config(), dead_letters=None)
    with pytest.raises(EventError, match="event 'B1' is rejected: `price` is not of type DOUBLE") as caught:
        run(config)
    assert "[dead_letters]" in str(caught.value.hint)
    assert not (project.folder / "out").exists(), "nothing is written"


def test_faulty_subscriptions(spark: SparkSession, project: Project) -> None:
    faulty = [{"id": "x", "where": "price >"}, {"id": "y", "where": "prise = "}]
    project.write("subscriptions.jsonl", [*SUBSCRIPTIONS, *faulty])
    with pytest.raises(SubscriptionError) as caught:
        run(project.config())
    text = str(caught.value)
    assert "'x'" in text
    assert "'y'" in text
    assert "line 3" in text
    text = project.text().replace('"subscriptions.jsonl"', '"subscriptions.jsonl"\non_fault = "skip"')
    project.write("pipeline.toml", text)
    assert program.main([str(project.folder / "pipeline.toml")]) == 0
    assert pairs(project.rows(spark)) == PAIRS
    told: list[Report] = []
    run(load_config(project.folder / "pipeline.toml"), told.append)
    (change,) = [each for each in told if isinstance(each, RefreshReport)]
    assert [fault.id for fault in change.faults] == ["x", "y"]


@pytest.mark.parametrize("vanished", ["events.jsonl", "subscriptions.jsonl"])
def test_input_that_vanishes(spark: SparkSession, project: Project, vanished: str) -> None:
    config = project.config()
    (project.folder / vanished).unlink()
    with pytest.raises(HarkenError, match=vanished.replace(".", r"\.")):
        run(config)
    assert not (project.folder / "out").exists()


def test_an_index_that_is_none(spark: SparkSession, project: Project) -> None:
    (project.folder / "index").mkdir()
    config = project.config()
    config = replace(
        config, subscriptions=replace(config.subscriptions, path=None, index=str(project.folder / "index"))
    )
    with pytest.raises(SegmentError, match="has no index"):
        run(config)


def test_a_file_of_parquet_whose_column_changed_its_type(spark: SparkSession, project: Project) -> None:
    folder = str(project.folder / "events")
    spark.createDataFrame([("1", 9.0)], "id string, price double").write.parquet(f"{folder}/a")
    spark.createDataFrame([("2", "x")], "id string, price string").write.parquet(f"{folder}/b")
    source = f'format = "parquet"\npath = "{folder}/*"\ncolumns = "id STRING, price DOUBLE"'
    with pytest.raises(SourceError, match="price"):
        run(project.config(source))
    assert not (project.folder / "out").exists()


def test_a_failure_ends_up_in_the_metrics(spark: SparkSession, project: Project) -> None:
    metrics = MetricsConfig(json=str(project.folder / "m.jsonl"), prometheus=str(project.folder / "m.prom"))
    config = replace(project.config(), metrics=metrics)
    assert run(config).counts.events == 3
    (project.folder / "events.jsonl").unlink()
    with pytest.raises(SourceError):
        run(config)
    kinds = [
        (line["kind"], line.get("error"))
        for line in map(json.loads, (project.folder / "m.jsonl").read_text().splitlines())
    ]
    assert [kind for kind, _ in kinds] == ["batch", "end", "end"]
    assert "events.jsonl" in kinds[-1][1]
    assert 'harken_pipeline_succeeded{pipeline="pipeline"} 0' in (project.folder / "m.prom").read_text()


# Before it runs


def test_a_plan_tells_sizes_and_costs_and_does_nothing(spark: SparkSession, project: Project) -> None:
    project.write("sellers.csv", "seller,rating\ns1,5\n")
    more = '[[enrich]]\npath = "sellers.csv"\non = ["seller"]\n'
    found = plan(project.config('event_time = "at"', more))
    assert dict(found.columns) == {
        **{name: kind.lower() for name, kind in (each.split() for each in COLUMNS.split(", "))},
        "rating": "int",
    }
    assert (found.index.subscriptions, found.strategy.name, found.partitions) == (2, "replicate", 1)
    assert found.index.attributes == ("category", "price")
    assert found.expected_ns is not None
    assert found.expected_ns > 0
    shown = dict(found.lines())
    assert shown["index"].startswith("2 subscriptions, ")
    assert shown["chosen strategy"].startswith("replicate (an index of ")
    assert json.loads(json.dumps(found.to_dict()))["subscriptions"] == 2
    assert not (project.folder / "out").exists()


def test_a_plan_of_a_stream_leaves_no_trace(spark: SparkSession, project: Project) -> None:
    (project.folder / "watched").mkdir()
    found = plan(project.config('path = "watched"', head='mode = "stream"\ncheckpoint = "state"'))
    assert found.partitions is None
    assert not (project.folder / "state").exists()


@pytest.mark.parametrize(
    ("match", "more", "message"),
    [
        ('columns = ["colour"]', "", "no column `colour`"),
        ("", '[[enrich]]\npath = "sellers.csv"\non = ["seller"]', "2 rows for seller = 's1'"),
    ],
)
def test_a_plan_finds_what_would_fail(
    spark: SparkSession, project: Project, match: str, more: str, message: str
) -> None:
    project.write("sellers.csv", "seller,rating\ns1,5\ns1,4\n")
    with pytest.raises(SourceError, match=message):
        plan(project.config("columns = none", more, match=match))


# Against the columns of the events


def test_a_run_tells_what_does_not_fit_the_columns(spark: SparkSession, project: Project) -> None:
    project.write("subscriptions.jsonl", [*SUBSCRIPTIONS, {"id": "typo", "where": "prise > 1 AND rating > 3"}])
    project.write("sellers.csv", "seller,rating\ns1,5\n")
    more = '[metrics]\njson = "metrics.jsonl"\n[[enrich]]\npath = "sellers.csv"\non = ["seller"]\n'
    heard: list[Report] = []
    run(project.config(more=more), heard.append)
    change, batch = heard
    assert isinstance(change, RefreshReport)
    assert isinstance(batch, BatchReport)
    assert [each.attribute for each in change.mismatches] == ["prise"]
    line = json.loads((project.folder / "metrics.jsonl").read_text().splitlines()[0])
    assert (line["kind"], line["mismatches"]["never"]) == ("change", 1)
    with pytest.raises(MismatchError, match="`prise` is no column"):
        run(project.config(more=more, match='on_mismatch = "fail"'))


def test_a_plan_tells_what_does_not_fit_the_columns(spark: SparkSession, project: Project) -> None:
    project.write("subscriptions.jsonl", [*SUBSCRIPTIONS, {"id": "typo", "where": "prise > 1"}])
    found = plan(project.config())
    assert found.lines()[-2:] == [
        ("mismatches", "1 of 3 subscriptions can never match these events:"),
        ("", "`prise` is no column: 1 subscription asks for it ('typo'); did you mean `price`?"),
    ]
    assert json.loads(json.dumps(found.to_dict()))["mismatches"]["never"] == 1
    with pytest.raises(MismatchError, match="`prise` is no column"):
        plan(project.config(match='on_mismatch = "fail"'))


def test_a_plan_rejects_a_column_that_no_event_can_hold(spark: SparkSession, project: Project) -> None:
    project.write("subscriptions.jsonl", [{"id": "raw", "where": "seller = 's1'"}])
    columns = COLUMNS.replace("seller STRING", "seller ARRAY<BINARY>")
    with pytest.raises(SourceError, match=r"`seller` is of type binary.*the subscription 'raw' asks for `seller`"):
        plan(project.config(f'columns = "{columns}"'))


# Without the command line


def test_the_program_for_spark_submit(
    spark: SparkSession, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(project.write("pipeline.toml", project.text()))
    assert program.main([path, "--dry-run"]) == 0
    assert "chosen strategy: replicate" in capsys.readouterr().out
    assert program.main([path]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("pipeline: 3 events · 3 notifications · 1 batch · ")
    assert shown.err.startswith("batch 0: 3 events")
    (project.folder / "events.jsonl").write_text(BAD + "\n")
    project.write("pipeline.toml", project.text().replace("event_id", "event_idd").replace("[match]", "[mach]"))
    assert program.main([path]) == 3
    assert capsys.readouterr().err.count("error: ") >= 2


@pytest.mark.slow
@pytest.mark.processes
def test_spark_submit(project: Project) -> None:
    import pyspark

    from harken.spark.java import find_java

    path = project.write("pipeline.toml", project.text())
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]", str(program.__file__), str(path)]
    environment: dict[str, Any] = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ended = subprocess.run(
        command, env=environment, cwd=project.folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert "3 events · 3 notifications" in ended.stdout
