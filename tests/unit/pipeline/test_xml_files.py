"""Pipelines over files of XML: documents and their places, dead letters, streams, shards, and added elements."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.errors import SourceError
from harken.pipeline.batch_outcome import outcome
from harken.pipeline.batch_planning import plan
from harken.pipeline.run import run
from harken.pipeline.stream_sources import FAULT, ID, RAW, event_columns, read

from .project import Project, pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

XPATHS: list[dict[str, Any]] = [
    {"id": "x", "where": "/dataset/b = 'x'", "language": "xpath", "owner": "Alice"},
    {"id": "seven", "where": "/dataset[c > 5]", "language": "xpath"},
    {"id": "é", "where": "/dataset/b = 'é'", "language": "xpath"},
    {"id": "eu", "where": "/dataset/reference/region = 'EU'", "language": "xpath"},
]
WHOLE = 'format = "xml"\npath = "docs"\ncolumns = none\nevent_id = none'
SPLIT = f'{WHOLE}\nrow_tag = "dataset"'
STREAM = 'mode = "stream"\ncheckpoint = "state"\ntrigger = "available-now"'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("subscriptions.jsonl", XPATHS)
    return project


def put(project: Project, name: str, content: bytes) -> None:
    path = project.folder / "docs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def named(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Pairs with the names of files in place of their paths."""
    return {(event.rsplit("/", 1)[-1], subscription) for event, subscription in found}


def whole_files(project: Project) -> None:
    put(project, "1.xml", b"<dataset><b>x</b></dataset>")
    put(project, "2.xml", "<?xml version='1.0' encoding='iso-8859-1'?><dataset><b>é</b></dataset>".encode("latin-1"))
    put(project, "3.xml", b"<dataset><b>x</b>")
    put(project, "4.xml.gz", gzip.compress(b"<dataset><c>7</c></dataset>"))
    put(project, "5.xml", b"<dataset>\xff</dataset>")


def containers(project: Project) -> None:
    put(project, "1.xml", b"<all>\n<dataset><b>x</b></dataset>\n<other/><dataset><c>9</c><b>x</b></dataset></all>")
    put(project, "2.xml", b"<all>\n<dataset><b>x</b></dataset>\n<dataset><b>x</c>\n</all>")


def test_whole_files(spark: SparkSession, project: Project) -> None:
    whole_files(project)
    config = project.config(WHOLE)
    events = read(config, spark)
    assert event_columns(events) == ["path", "modified", "document"]
    found = outcome(events, config, project.stamp(subscriptions=XPATHS))
    assert named(pairs(found.notifications)) == {("1.xml", "x"), ("2.xml", "é"), ("4.xml.gz", "seven")}
    letters = {row["event_id"].rsplit("/", 1)[-1]: row for row in found.dead_letters.collect()}
    assert {name: row["stage"] for name, row in letters.items()} == {"3.xml": "validate", "5.xml": "decode"}
    assert "it ends before its root element does" in letters["3.xml"]["reason"]
    assert '"document":"<dataset><b>x</b>"' in letters["3.xml"]["event"]
    assert letters["5.xml"]["reason"] == "the document is not text in the encoding utf-8 (line 1)"
    assert letters["5.xml"]["event"] == "<dataset>\ufffd</dataset>"
    assert found.counts.events == 5
    found.release()


@pytest.mark.parametrize("match", ["", 'strategy = "shard"\nshards = 3'])
def test_files_that_are_split(spark: SparkSession, project: Project, match: str) -> None:
    containers(project)
    config = project.config(SPLIT, match=f'columns = ["position"]\n{match}')
    found = outcome(read(config, spark), config, project.stamp(subscriptions=XPATHS))
    expected = {("1.xml#0", "x"), ("1.xml#1", "x"), ("1.xml#1", "seven"), ("2.xml#0", "x")}
    assert named(pairs(found.notifications)) == expected
    assert {row["position"] for row in found.notifications.collect()} == {0, 1}
    (letter,) = found.dead_letters.collect()
    assert (letter["stage"], letter["event_id"].rsplit("/", 1)[-1]) == ("decode", "2.xml#1")
    assert "an end tag does not fit its start tag" in letter["reason"]
    assert letter["reason"].endswith("(line 3, column 16)")
    found.release()


def test_rows_have_places_and_faults(spark: SparkSession, project: Project) -> None:
    put(project, "1.xml.gz", gzip.compress(b"<all><dataset/></all>")[:-12])
    put(project, "2.xml", b"<all><dataset n='1'/></all>")
    rows = sorted(read(project.config(SPLIT), spark).collect(), key=lambda row: row[ID])
    assert [(row["position"], row["document"]) for row in rows] == [(0, None), (0, "<dataset n='1'/>")]
    assert rows[0][FAULT] is not None
    assert rows[0][RAW] is not None
    assert rows[1][FAULT] is rows[1][RAW] is None


@pytest.mark.slow
def test_a_stream_of_files(spark: SparkSession, project: Project) -> None:
    containers(project)
    config = project.config(f'{SPLIT}\nmax_files_per_trigger = 1\ndeduplicate = "1 hour"', head=STREAM)
    counts = run(config).counts
    assert (counts.events, counts.notifications, counts.dead_letters) == (4, 4, {"decode": 1})
    put(project, "3.xml", b"<dataset><c>6</c></dataset>")
    assert run(config).counts.notifications == 1
    expected = {("1.xml#0", "x"), ("1.xml#1", "x"), ("1.xml#1", "seven"), ("2.xml#0", "x"), ("3.xml#0", "seven")}
    assert named(pairs(project.rows(spark))) == expected
    shutil.rmtree(project.folder / "docs")


def test_elements_of_a_reference_table(spark: SparkSession, project: Project) -> None:
    put(project, "1.xml", b"<dataset><b id='7'>y</b></dataset>")
    put(project, "2.xml", b"<dataset><b id='8'>x</b></dataset>")
    put(project, "3.xml", b"<dataset><b id='9'>x</b></dataset>")
    put(project, "4.xml", b"<dataset><b id='7'>x</dataset>")
    project.write("regions.csv", "no,region,rank\n7,EU,1\n8,US,\n")
    more = '[[enrich]]\npath = "regions.csv"\non = ["no"]\ndocument_key = "/dataset/b/@id"\n'
    config = project.config(WHOLE, more)
    found = outcome(read(config, spark), config, project.stamp(subscriptions=XPATHS))
    assert named(pairs(found.notifications)) == {("1.xml", "eu"), ("2.xml", "x"), ("3.xml", "x")}
    (letter,) = found.dead_letters.collect()
    assert letter["stage"] == "validate"
    assert "<reference>" not in letter["event"]
    found.release()
    inner = project.config(WHOLE, f'{more}how = "inner"\n')
    found = outcome(read(inner, spark), inner, project.stamp(subscriptions=XPATHS))
    assert named(pairs(found.notifications)) == {("1.xml", "eu"), ("2.xml", "x")}
    found.release()
    project.write("regions.csv", "no,region\n7,EU\n7,US\n")
    with pytest.raises(SourceError, match="has 2 rows for no = 7"):
        outcome(read(config, spark), config, project.stamp(subscriptions=XPATHS))


def test_documents_in_a_column_of_json(spark: SparkSession, project: Project) -> None:
    events = [{"id": "1", "document": "<dataset><b id='7'/></dataset>"}, {"id": "2", "document": "<a>"}, {"id": "3"}]
    project.write("events.jsonl", events)
    project.write("regions.jsonl", [{"no": "7", "region": "EU", "rank": 0.5}])
    more = '[[enrich]]\npath = "regions.jsonl"\non = ["no"]\ndocument_key = "/dataset/b/@id"\n'
    for columns, kind in (("document STRING", "string"), ("document BINARY", "binary")):
        if kind == "binary":
            spark.read.schema("id STRING, document STRING").json(str(project.folder / "events.jsonl")).selectExpr(
                "id", "CAST(document AS BINARY) AS document"
            ).write.mode("overwrite").parquet(str(project.folder / "events.parquet"))
        source = {"string": "", "binary": 'format = "parquet"\npath = "events.parquet"\n'}[kind]
        config = project.config(f'{source}columns = "id STRING, {columns}"', more)
        found = outcome(read(config, spark), config, project.stamp(subscriptions=XPATHS))
        assert pairs(found.notifications) == {("1", "eu")}, kind
        assert [row["event_id"] for row in found.dead_letters.collect()] == ["2"], kind
        found.release()


def test_a_plan(spark: SparkSession, project: Project) -> None:
    containers(project)
    found = dict(plan(project.config(SPLIT)).lines())
    assert found["documents"] == "every element `dataset`"
    assert found["event id"] == "path and position"
    assert found["events"] == "path STRING, modified TIMESTAMP, position BIGINT, document STRING"
    assert found["reads"] == "document"
    assert "mismatches" not in found
