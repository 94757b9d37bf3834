"""Binary columns of Arrow: documents as text, without a copy where they are UTF-8, and bad ones rejected alone."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken.engine import Engine
from harken.errors import SourceError
from harken.events import read_events, rows_from_arrow, validate
from harken.events.arrow_documents import with_texts
from harken.limits import DEFAULT_LIMITS

KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]
LATIN = "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".encode("latin-1")
LONG = b"<?xml version='1.0'" + b" " * 300 + LATIN.removeprefix(b"<?xml version='1.0'")
UTF16 = "<a>é</a>".encode("utf-16")
BAD = b"<a>\xff</a>"


def texts(*documents: bytes | None, kind: pa.DataType) -> tuple[list[str | None], list[int]]:
    """The texts of the documents that are read, and the positions of the others."""
    table = pa.table({"document": pa.array(documents, kind), "n": range(len(documents))})
    decoded = validate(table)
    return [event.attributes.get("document") for event in decoded.batch], [each.position for each in decoded.rejected]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_documents_are_read_as_their_text(kind: pa.DataType) -> None:
    assert texts(b"<a/>", None, "<a>é</a>".encode(), b"", kind=kind) == (["<a/>", None, "<a>é</a>", ""], [])
    assert texts(b"<a/>", UTF16, kind=kind) == (["<a/>", "<a>é</a>"], [])
    assert texts(b"<a/>", BAD, UTF16, kind=kind) == (["<a/>", "<a>é</a>"], [1])
    assert texts(b"<a/>", BAD, None, kind=kind) == (["<a/>", None], [1])
    for document in (LATIN, LONG):
        (text,), rejected = texts(document, kind=kind)
        assert text is not None
        assert text.endswith("<a>é</a>")
        assert not rejected
    unknown = b"<?xml version='1.0' encoding='klingon'?><a/>"
    assert texts(unknown, b"<a/>", kind=kind) == (["<a/>"], [0])
    assert texts(kind=kind) == ([], [])


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_utf8_is_not_copied(kind: pa.DataType) -> None:
    array = pa.array([b"<b/>", b"<a/>", "<a>é</a>".encode(), None], kind).slice(1)
    table = pa.table({"document": pa.chunked_array([array, array]), "n": range(6)})
    found = with_texts(table, DEFAULT_LIMITS).column("document")
    assert found.type in (pa.string(), pa.large_string())
    assert found.to_pylist() == ["<a/>", "<a>é</a>", None] * 2
    assert found.chunk(0).buffers()[2].address == array.buffers()[2].address
    batch = validate(table).batch
    assert batch.dense(("document",)) is not None, "it is looked at in columns"


def test_a_table_without_bytes_is_left_alone() -> None:
    table = pa.table({"document": ["<a/>"], "n": [1]})
    assert with_texts(table, DEFAULT_LIMITS) is table


def test_only_what_is_asked_for_is_read() -> None:
    table = pa.table({"n": [1], "photo": [b"\xff\xd8"]})
    assert not validate(table, names=frozenset("n")).rejected
    (rejected,) = validate(table).rejected
    assert rejected.error.message == "attribute `photo` is not UTF-8 text"


def test_bytes_inside_others_and_in_subscriptions_are_none() -> None:
    with pytest.raises(SourceError, match=r"`s\.document` has the Arrow type binary"):
        validate(pa.table({"s": [{"document": b"<a/>"}]}))
    table = pa.table({"id": ["a"], "where": ["n = 1"], "photo": [b"?"]})
    with pytest.raises(SourceError, match="`photo` has the Arrow type binary"):
        list(rows_from_arrow(table))
    with pytest.raises(SourceError, match="`photo` has the Arrow type binary"):
        Engine().subscribe_many(table)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("documents", [[b"<a>1</a>", b"<a>2</a>"], [LATIN, b"<a>2</a>"], [BAD, b"<a>2</a>"]])
def test_files(format: str, documents: list[bytes]) -> None:
    table = pa.table({"document": documents, "n": range(2)})
    file = io.BytesIO()
    if format == "parquet":
        pyarrow.parquet.write_table(table, file)
    else:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write(table)
    engine = Engine()
    engine.subscribe("two", "/a = 2", language="xpath")
    for names in (None, engine.attributes()):
        file.seek(0)
        (decoded,) = read_events(file, format, names=names)
        found = engine.match_batch(decoded)
        assert found.ids == [[], ["two"]]
        assert [each.position for each in found.rejected] == ([0] if documents[0] is BAD else [])


@pytest.mark.parametrize("kind", [*KINDS, pa.string()], ids=str)
def test_xpath_over_a_column(kind: pa.DataType) -> None:
    documents = [b"<a><b>x</b></a>", b"<a><b>", None, b"<a><b>y</b></a>"]
    values = [each if kind != pa.string() or each is None else each.decode() for each in documents]
    engine = Engine()
    engine.subscribe("x", "/a/b = 'x'", language="xpath")
    engine.subscribe("many", "n > 1")
    found = engine.match_batch(pa.table({"document": pa.array(values, kind), "n": range(4)}), on_mismatch="fail")
    assert found.ids == [["x"], [], ["many"], ["many"]]
    (rejected,) = found.rejected
    assert rejected.position == 1
    assert "ends before its root element" in rejected.error.message


def test_documents_of_files(tmp_path: Path) -> None:
    file = tmp_path / "docs.xml"
    file.write_bytes(b"<all>\n <a>1</a>\n <a>2</a><b/>\n  <a>3\n</all>")
    (whole,) = read_events(file)
    (rejected,) = whole.rejected
    assert str(rejected.error.place) == f"{file}, line 5, column 3"
    parts = list(read_events(file, split="a", batch_size=2))
    assert [part.batch.positions for part in parts] == [(0, 1), ()]
    assert [event.attributes["document"] for event in parts[0].batch] == ["<a>1</a>", "<a>2</a>"]
    (rejected,) = parts[1].rejected
    assert (rejected.position, str(rejected.error.place)) == (2, f"{file}, line 5, column 3")
    nothing = list(read_events(file, split="gone"))
    assert [len(part.batch) for part in nothing] == [0]
    with pytest.raises(SourceError, match="is not XML: there are no elements"):
        read_events(io.BytesIO(b"{}"), split="a")
    bare = list(read_events(io.BytesIO(b"<a/>"), "xml", names=frozenset({"n"})))
    assert [event.attributes for event in bare[0].batch] == [{}]
