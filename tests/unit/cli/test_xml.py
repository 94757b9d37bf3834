"""XML on the command line: files, folders and archives of documents, container files, and what is told of them."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run, Write, lines

XPATHS: list[dict[str, Any]] = [
    {"id": "x", "where": "/dataset/b = 'x'", "language": "xpath", "owner": "Ann"},
    {"id": "seven", "where": "/dataset[c > 5]/@n", "language": "xpath"},
]
CONTAINER = """<?xml version="1.0"?>
<all>
  <dataset n="0"><b>x</b></dataset>
  <dataset n="1"><b>y</b></dataset>
  <other/><dataset n="2"><b>x</b><c>7</c></dataset>
</all>
"""
PAIRS = [(0, "x"), (2, "x"), (2, "seven")]


@pytest.fixture
def xpaths(write: Write) -> Path:
    return write("xpaths.jsonl", XPATHS)


@pytest.fixture
def docs(write: Write) -> Path:
    return write("docs.xml", CONTAINER)


def pairs(text: str) -> list[tuple[int, str]]:
    return [(row["event"], row["subscription"]) for row in lines(text)]


def test_elements_of_a_container(run: Run, docs: Path, xpaths: Path) -> None:
    result = run("match", docs, "--split", "dataset", "--subscriptions", xpaths)
    assert result.exit_code == 0
    assert sorted(pairs(result.stdout)) == sorted(PAIRS)
    assert lines(result.stdout)[0] == {"event": 0, "subscription": "x", "owner": "Ann"}
    assert result.stderr.startswith("3 events · 2 subscriptions · 3 matches")
    found = run("match", "-", "--split", "dataset", "-s", xpaths, input=CONTAINER)
    assert sorted(pairs(found.stdout)) == sorted(PAIRS)


def test_files_folders_and_archives(run: Run, write: Write, xpaths: Path, tmp_path: Path) -> None:
    write("one.xml", "<dataset><b>x</b></dataset>")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "2.xml.gz").write_bytes(gzip.compress(b"<dataset n='1'><c>9</c></dataset>"))
    (tmp_path / "more" / "3.xml.xz").write_bytes(lzma.compress(b"<dataset><b>x</b></dataset>"))
    result = run("match", tmp_path / "one.xml", tmp_path / "more", "-s", xpaths)
    assert pairs(result.stdout) == [(0, "x"), (1, "seven"), (2, "x")]


def test_a_bad_document_is_rejected_with_its_place(run: Run, write: Write, xpaths: Path, tmp_path: Path) -> None:
    broken = write("broken.xml", CONTAINER.replace("<c>7</c></dataset>", "<c>7</dataset>"))
    rejected = tmp_path / "rejected.jsonl"
    result = run("match", broken, "--split", "dataset", "-s", xpaths, "--rejected", rejected, "--strict")
    assert result.exit_code == 1
    assert pairs(result.stdout) == [(0, "x")]
    assert "broken.xml, line 5, column" in result.stderr
    (found,) = lines(rejected.read_text())
    assert (found["position"], found["line"]) == (2, 5)
    whole = run("match", broken, "-s", xpaths)
    assert whole.exit_code == 3
    assert "an end tag does not fit its start tag" in whole.stderr


def test_documents_in_flat_events(run: Run, write: Write, xpaths: Path) -> None:
    events = write("e.jsonl", [{"document": "<dataset><b>x</b></dataset>"}, {"document": "<a>"}, {"n": 1}])
    result = run("match", events, "-s", xpaths)
    assert pairs(result.stdout) == [(0, "x")]
    assert result.stderr.count("event 1") == 1
    assert "(1 rejected)" in result.stderr
    checked = run("check", "-e", events, "-s", xpaths)
    assert checked.exit_code == 1
    assert "ends before its root element" in checked.stdout


def test_check(run: Run, docs: Path, write: Write) -> None:
    bad = write("bad.jsonl", [*XPATHS, {"id": "last", "where": "/a[$x]", "language": "xpath"}])
    result = run("check", "--subscriptions", bad, "--events", docs, "--split", "dataset")
    assert result.exit_code == 1
    assert "line 1, column 4" in result.stdout
    assert "1 fault in 3 subscriptions and 3 events" in result.stdout
    flat = write("flat.jsonl", [{"n": 1}])
    warned = run("check", "--subscriptions", bad, "--events", flat)
    assert "the event has no document" in warned.stdout


def test_explain(run: Run, docs: Path, xpaths: Path) -> None:
    options = ["--split", "dataset", "--event", 1]
    by_text = run("explain", docs, *options, "--where", "/dataset/b = 'x'", "--language", "xpath")
    assert by_text.exit_code == 0
    assert by_text.stdout.startswith("does not match\n")
    assert "'y'" in by_text.stdout
    by_id = run("explain", docs, *options, "-s", xpaths, "--id", "x", "--json")
    assert json.loads(by_id.stdout)["matched"] is False
    wrong = run("explain", docs, "-s", xpaths, "--id", "x", "--language", "xpath")
    assert wrong.exit_code == 2
    assert "a subscription has its own" in wrong.stderr
    unknown = run("explain", docs, "--where", "/a", "--language", "xpth")
    assert "did you mean `xpath`?" in unknown.stderr


def test_what_cannot_be_split_or_read(run: Run, write: Write, docs: Path, xpaths: Path) -> None:
    flat = write("e.jsonl", [{"n": 1}])
    result = run("match", flat, "--split", "a", "-s", xpaths)
    assert result.exit_code == 3
    assert "is not XML" in result.stderr
    result = run("match", flat, "-s", docs)
    assert result.exit_code == 3
    assert "is XML, which has documents and no rows" in result.stderr
    result = run("match", docs, "--split", "gone", "-s", xpaths)
    assert result.exit_code == 3
    assert "there is no event in" in result.stderr


@pytest.mark.parametrize(
    "options", [["--documents", "xpath_shared"], ["--documents", "xpath_unrolled", "--database", "sqlite"]]
)
def test_documents_are_matched_in_a_database(run: Run, docs: Path, xpaths: Path, options: list[str]) -> None:
    result = run("match", str(docs), "--split", "dataset", "-s", str(xpaths), *options)
    assert result.exit_code == 0
    assert sorted(pairs(result.stdout)) == sorted(PAIRS)


def test_a_database_that_is_none_is_told(run: Run, docs: Path, xpaths: Path) -> None:
    result = run("match", str(docs), "-s", str(xpaths), "--documents", "xpath_shared", "--database", "oracle")
    assert result.exit_code == 2
    assert "database" in result.stderr


def test_events_without_a_document_are_warned_of(run: Run, write: Write, xpaths: Path, docs: Path) -> None:
    events = write("events.jsonl", [{"b": "x"}, {"b": "y"}])
    result = run("match", events, "-s", xpaths)
    assert result.exit_code == 0
    assert "none of the 2 events has a document" in result.stderr
    assert "an XPath subscription is about XML" in result.stderr
    assert "has a document" not in run("match", docs, "--split", "dataset", "-s", xpaths).stderr
