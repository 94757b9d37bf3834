"""Sources: what comes of good and of bad lines, of columns that are given, found or told by a schema."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken.errors import SourceError
from harken.pipeline.config import Config
from harken.pipeline.schema_columns import schema_columns
from harken.pipeline.spark_errors import spark_errors
from harken.pipeline.stream_sources import FAULT, ID, RAW, event_columns, read
from harken.schema import parse_schema

from .project import EVENTS, Project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def faults(config: Config, spark: SparkSession) -> dict[str | None, str]:
    """The reasons by line. Whatever has a reason has its line, and nothing else has either."""
    rows = read(config, spark).collect()
    assert all((row[RAW] is None) == (row[FAULT] is None) for row in rows)
    return {row[RAW]: row[FAULT] for row in rows if row[FAULT] is not None}


BAD_LINES = {
    '{"id": "B1", "price": "cheap"}': "`price` is not of type DOUBLE",
    '{"id": "B2", "at": "yesterday"}': "`at` is not of type TIMESTAMP",
    "not json at all": "the text is not JSON",
    '{"id": "B3", "price": 3': "the text is not JSON",
    '"a text"': "the text is not a JSON object",
}


def test_a_line_of_json_that_does_not_fit_is_a_row_with_its_reason(spark: SparkSession, project: Project) -> None:
    lines = [json.dumps(EVENTS[0]), *BAD_LINES, "", json.dumps(EVENTS[1])]
    project.write("events.jsonl", "\n".join(lines) + "\n\n")
    config = project.config()
    assert faults(config, spark) == BAD_LINES
    ids = {row[ID] for row in read(config, spark).collect()}
    assert ids == {"A1", "A2", "B1", "B2", None}, "what can be told of a bad line is told"


def test_columns_that_come_go_and_change(spark: SparkSession, project: Project) -> None:
    """Files of one folder need not agree: what is new is not looked at, what is gone is null."""
    project.write("events/1.jsonl", [{"id": "1", "price": 1, "colour": "red"}])
    project.write("events/2.jsonl", [{"id": "2"}])
    project.write("events/3.jsonl", [{"id": "3", "price": {"amount": 1}}])
    config = project.config('path = "events"\ncolumns = "id STRING, price DOUBLE"')
    rows = {row["id"]: row for row in read(config, spark).collect()}
    assert {id: row["price"] for id, row in rows.items()} == {"1": 1.0, "2": None, "3": None}
    assert [id for id, row in rows.items() if row[FAULT] == "`price` is not of type DOUBLE"] == ["3"]


def test_csv(spark: SparkSession, project: Project) -> None:
    project.write("events.csv", "id,price\n1,2.5\n2,cheap\n3,\n4\n5,1,2\n'6',7\n")
    config = project.config('format = "csv"\npath = "events.csv"\ncolumns = "id STRING, price DOUBLE"')
    assert faults(config, spark) == {
        "2,cheap": "`price` is not of type DOUBLE",
        "4": "the line does not have 2 cells",
        "5,1,2": "the line does not have 2 cells",
    }
    good = [(row["id"], row["price"]) for row in read(config, spark).collect() if row[FAULT] is None]
    assert good == [("1", 2.5), ("3", None), ("'6'", 7.0)]


def test_csv_whose_columns_moved_is_rejected_as_a_whole(spark: SparkSession, project: Project) -> None:
    project.write("events.csv", "id,colour,price\n1,red,2.5\n")
    config = project.config('format = "csv"\npath = "events.csv"\ncolumns = "id STRING, price DOUBLE"')
    with (
        pytest.raises(SourceError, match=r"events\.csv: Number of column.* Header length: 3, schema size: 2"),
        spark_errors(),
    ):
        read(config, spark).collect()


def test_options_reach_the_reader(spark: SparkSession, project: Project) -> None:
    project.write("events.csv", "1;2.5\n2;x\n")
    source = 'format = "csv"\npath = "events.csv"\ncolumns = "id STRING, price DOUBLE"\noptions = '
    config = project.config(source + '{ header = false, sep = ";" }')
    assert faults(config, spark) == {"2;x": "`price` is not of type DOUBLE"}


def test_parquet_brings_its_columns(spark: SparkSession, project: Project) -> None:
    table = pa.table({"id": [1, 2], "tags": [["a"], ["b", "c"]]})
    pa.parquet.write_table(table, project.folder / "events.parquet")
    events = read(project.config('format = "parquet"\npath = "events.parquet"\ncolumns = none'), spark)
    assert event_columns(events) == ["id", "tags"]
    assert [(row[ID], row["tags"], row[FAULT]) for row in events.collect()] == [
        ("1", ["a"], None),
        ("2", ["b", "c"], None),
    ]


def test_columns_are_found_if_nobody_gives_them(spark: SparkSession, project: Project) -> None:
    project.write("events.jsonl", json.dumps(EVENTS[0]) + "\nnot json\n")
    config = project.config("columns = none")
    assert set(event_columns(read(config, spark))) == set(EVENTS[0])
    assert faults(config, spark) == {"not json": "the text is not JSON"}


@pytest.mark.parametrize("content", ["", "not json\n"])
def test_nothing_to_find_columns_by(spark: SparkSession, project: Project, content: str) -> None:
    project.write("events.jsonl", content)
    with pytest.raises(SourceError, match="columns of the events cannot be inferred") as caught:
        read(project.config("columns = none"), spark)
    assert "columns" in str(caught.value.hint)


def test_a_schema_gives_the_columns(spark: SparkSession, project: Project) -> None:
    project.write("schema.toml", '[attributes]\ncategory = "string"\nprice = "float"\n"size.width" = "integer"\n')
    project.write("events.jsonl", [{"id": "1", "category": "Toy", "price": 2, "size": {"width": 3}}])
    events = read(project.config("columns = none", head='schema = "schema.toml"'), spark)
    (row,) = events.collect()
    assert (row["id"], row["price"], row["size"]["width"], row[FAULT]) == ("1", 2.0, 3, None)


def test_columns_of_a_schema() -> None:
    schema = parse_schema(
        """
        [attributes]
        price = "float"
        count = "integer"
        sold = "boolean"
        day = "date"
        at = "timestamp"
        name = "string"
        tags = "string"
        [event_types.Sale]
        price = "mandatory"
        tags = "optional multiple"
        """
    )
    found = {field.name: field.dataType.simpleString() for field in schema_columns(schema, "id", "at")}
    assert found == {
        "event_type": "string",
        "price": "double",
        "count": "bigint",
        "sold": "boolean",
        "day": "date",
        "at": "timestamp",
        "name": "string",
        "tags": "array<string>",
        "id": "string",
    }


@pytest.mark.parametrize("key", ["event_id", "event_time"])
def test_a_column_that_is_named_and_not_there(spark: SparkSession, project: Project, key: str) -> None:
    with pytest.raises(SourceError, match="no column `atx`"):
        read(project.config(f'columns = none\n{key} = "atx"'), spark)


def test_a_source_that_vanishes(spark: SparkSession, project: Project) -> None:
    config = project.config()
    (project.folder / "events.jsonl").unlink()
    with pytest.raises(SourceError, match=r"events\.jsonl"):
        read(config, spark)


# Streams


STREAM = 'mode = "stream"\ncheckpoint = "state"'


def collected(events: DataFrame, count: int) -> list[Any]:
    """Rows of a stream, until there are so many."""
    rows: list[Any] = []
    query = events.writeStream.foreachBatch(lambda frame, _: rows.extend(frame.collect())).start()
    try:
        while len(rows) < count and query.isActive:
            query.awaitTermination(0.05)  # type: ignore[arg-type]
    finally:
        query.stop()
    return rows


def test_rate_names_events_by_their_value(spark: SparkSession, project: Project) -> None:
    source = 'format = "rate"\npath = none\ncolumns = none\nevent_id = none\nrows_per_second = 50'
    events = read(project.config(source, head=STREAM), spark)
    assert events.isStreaming
    rows = collected(events, 1)
    assert all(row[ID] == str(row["value"]) and row[FAULT] is None for row in rows)


def test_lines_of_a_socket(spark: SparkSession, project: Project) -> None:
    lines = [json.dumps(EVENTS[0]), "", "not json", "null", '{"id": "B1", "price": "cheap"}']
    with served("\n".join(lines) + "\n") as port:
        source = f'format = "socket"\npath = none\nport = {port}'
        rows = collected(read(project.config(source, head=STREAM), spark), 4)
    assert {row[ID]: row[FAULT] for row in rows if row[ID] is not None} == {
        "A1": None,
        "B1": "`price` is not of type DOUBLE",
    }
    reasons = {row[RAW]: row[FAULT] for row in rows if row[ID] is None}
    assert reasons == {"not json": "the text is not JSON", "null": "the text is not a JSON object"}


@contextmanager
def served(text: str) -> Iterator[int]:
    """A server on this machine that says a text to whoever calls. Its port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(text.encode())
            self.wfile.flush()
            done.wait(60)

    done = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            done.set()
            server.shutdown()
            thread.join()
