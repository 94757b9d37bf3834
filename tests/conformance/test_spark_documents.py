"""XML documents through Spark, in every way that they can take there, against what an engine finds in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harken import Engine
from harken.spark import Index, match, validate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Pairs = set[tuple[int, str]]

DOCUMENTS: list[bytes | None] = [
    b"<a><b>x</b><c n='1'>7</c></a>",
    b"<a><b>y</b><b>x</b><c n='2'>-3</c></a>",
    b"<?xml version='1.0'?><a><d><b>x</b></d></a>",
    "<a><b>é</b></a>".encode(),
    b"\xef\xbb\xbf<a><b> x </b></a>",
    b"<o:a xmlns:o='urn:o'><b>x</b></o:a>",
    b"<a><b><![CDATA[x]]></b><c n='1'/></a>",
    None,
    b"<a><b>x</a>",
    b"<!DOCTYPE a><a><b>x</b></a>",
    b"",
    *(f"<a><b>{'xyz'[n % 3]}</b><c n='{n}'>{n}</c></a>".encode() for n in range(40)),
]
LATIN = "<?xml version='1.0' encoding='iso-8859-1'?><a><b>é</b></a>".encode("latin-1")
NOT_TEXT = b"<a><b>\xff</b></a>"
XPATHS = [
    "/a/b = 'x'",
    "/a//b = 'x'",
    "//b != 'x'",
    "/a[b = 'x' and c/@n = '1']",
    "/a/c > 5",
    "/a[c > -5 and not(b = 'y')]",
    "//@n",
    "/a/b = 'é'",
    "/*/b = 'x'",
    "/a[b = 'x' or b = 'z']/c[@n = 3]",
]
SQL = ["n > 20", "n % 2 = 0 AND n < 9"]


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine()
    for text in XPATHS:
        made.subscribe(text, text, language="xpath")
    for text in SQL:
        made.subscribe(text, text)
    return made


def expected(engine: Engine, documents: list[bytes | None]) -> tuple[Pairs, set[int]]:
    """The pairs, and the documents that are rejected, as the engine finds them in documents that come as they are."""
    pairs: Pairs = set()
    rejected = set()
    for n, document in enumerate(documents):
        alone = Engine() if document is None else engine
        flat = [text for text in SQL if {"n > 20": n > 20, "n % 2 = 0 AND n < 9": n % 2 == 0 and n < 9}[text]]
        found = alone.match_batch([document or b""])
        if found.rejected and document is not None:
            rejected.add(n)
            continue
        pairs |= {(n, id) for id in [*found.ids[0], *flat]}
    return pairs, rejected


def frame(spark: SparkSession, documents: list[bytes | None], kind: str) -> DataFrame:
    rows = [(n, None if document is None else bytearray(document)) for n, document in enumerate(documents)]
    events = spark.createDataFrame(rows, "n long, document binary").repartition(3)
    return events.selectExpr("n AS id", "n", f"CAST(document AS {kind}) AS document")


def paired(found: DataFrame) -> Pairs:
    rows = [(row["event_id"], row["subscription_id"]) for row in found.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_columns_of_documents(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    version = Index(tmp_path / "index").publish(engine)
    assert version.documents == (("document",),)
    pairs, rejected = expected(engine, DOCUMENTS)
    assert len(rejected) == 3
    for kind in ("STRING", "BINARY"):
        events = frame(spark, DOCUMENTS, kind)
        assert paired(match(events, version, on_mismatch="fail")) == pairs, kind
        # More shards than XPaths: those that have none reject bad documents too.
        assert paired(match(events, version, strategy="shard", shards=2)) == pairs, kind
        told = match(events, version, strategy="shard", shards=13, on_error="tell").collect()
        assert {(row["event_id"], row["subscription_id"]) for row in told if row["error"] is None} == pairs, kind
        errors = [row["event_id"] for row in told if row["error"] is not None]
        assert sorted(errors) == sorted(rejected), kind
        lists = {row["event_id"]: row["subscription_ids"] for row in match(events, version, output="lists").collect()}
        assert {n for n, ids in lists.items() if ids is None} == rejected, kind
        assert {(n, id) for n, ids in lists.items() for id in ids or ()} == pairs, kind


def test_documents_in_other_encodings(spark: SparkSession, engine: Engine) -> None:
    documents = [LATIN, NOT_TEXT, *DOCUMENTS[:4]]
    pairs, rejected = expected(engine, documents)
    assert rejected == {1}
    events = frame(spark, documents, "BINARY")
    assert paired(match(events, engine)) == pairs
    (error,) = [row["error"] for row in match(events, engine, on_error="tell").collect() if row["error"]]
    assert "utf-8" in error.lower()
    assert paired(match(frame(spark, [LATIN], "BINARY"), engine)) == {(0, "/a/b = 'é'"), (0, "//b != 'x'"), (0, SQL[1])}


def test_a_stream_of_documents(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    version = Index(tmp_path / "index").publish(engine)
    pairs, _ = expected(engine, DOCUMENTS)
    for kind, options in (("BINARY", {}), ("STRING", {"strategy": "shard", "shards": 2})):
        events = frame(spark, DOCUMENTS, kind)
        events.write.parquet(str(tmp_path / kind))
        stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / kind))
        found = match(stream, version, **options)  # type: ignore[arg-type]
        name = f"documents_{kind}"
        query = found.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert paired(spark.table(name)) == pairs, kind


def test_validation_reads_bytes_as_text(spark: SparkSession) -> None:
    from harken.schema import parse_schema

    schema = parse_schema('[attributes]\ndocument = "string"\nn = "integer"\n')
    found = validate(frame(spark, [b"<a/>", NOT_TEXT, LATIN], "BINARY"), schema)
    (rejected,) = found.rejected.collect()
    assert (rejected["n"], rejected["path"]) == (1, "document")
    assert sorted(row["n"] for row in found.valid.collect()) == [0, 2]
