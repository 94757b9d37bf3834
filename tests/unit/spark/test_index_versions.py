"""Versions of an index: published, read, pinned, cut, and rejected when they are damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harken import Engine
from harken.errors import HarkenError, SegmentError, SourceError
from harken.spark import Index
from harken.spark.index_files import HadoopFiles, files_of
from harken.spark.local import opened
from harken.versions.files import ArrowFiles, Files, LocalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def engine_of(**texts: str) -> Engine:
    engine = Engine()
    assert not engine.subscribe_many(texts.items()).faults
    return engine


def test_a_version_is_read(tmp_path: Path) -> None:
    index = Index(tmp_path)
    first = index.publish(engine_of(a="x = 1 AND y > 2"), source="here")
    assert (first.version, first.subscriptions, first.source) == (1, 1, "here")
    assert first.attributes == ("x", "y")
    assert first.nbytes > 0
    second = index.publish(engine_of(a="x = 1", b="x = 2"))
    assert second.version == 2
    assert second.fingerprint != first.fingerprint
    assert Index(str(tmp_path)).current() == second
    assert index.version(1) == first
    assert index.versions() == [1, 2]
    assert opened(first).match({"x": 1, "y": 3}).ids == ["a"]
    assert len(opened(second)) == 2


def test_a_version_tells_what_its_subscriptions_ask_for(tmp_path: Path) -> None:
    published = Index(tmp_path).publish(engine_of(a="x = 1 AND seller.name LIKE '%a%b'", b="y IS NULL"))
    asks = {(("x",), "number"), (("seller", "name"), "string"), (("y",), None)}
    assert published.asks is not None
    assert set(published.asks) == asks
    assert Index(tmp_path).current() == published
    # An index of an earlier Harken does not tell.
    current = tmp_path / "current.json"
    plain = json.loads(current.read_text())
    del plain["asks"]
    current.write_text(json.dumps(plain))
    assert Index(tmp_path).current() == replace(published, asks=None)


def test_an_index_may_be_moved(tmp_path: Path) -> None:
    Index(tmp_path / "here").publish(engine_of(a="x = 1"))
    (tmp_path / "here").rename(tmp_path / "there")
    assert opened(Index(tmp_path / "there").current()).match({"x": 1}).ids == ["a"]


def test_old_versions_go_unless_they_are_pinned(tmp_path: Path) -> None:
    index = Index(tmp_path)
    for value in range(4):
        index.publish(engine_of(a=f"x = {value}"), keep=2)
        if value == 0:
            index.pin("stream", 1)
    assert index.versions() == [1, 3, 4]
    assert index.pinned() == {"stream": 1}
    index.pin("stream", 4)
    index.publish(engine_of(a="x = 9"), keep=2)
    assert index.versions() == [4, 5]
    with pytest.raises(SegmentError, match="does not have version 1") as caught:
        index.version(1)
    assert "4, 5" in (caught.value.hint or "")


def test_whoever_has_a_version_open_keeps_it(tmp_path: Path) -> None:
    index = Index(tmp_path)
    engine = opened(index.publish(engine_of(a="x = 1")))
    index.publish(engine_of(a="x = 2"), keep=1)
    assert index.versions() == [2]
    assert engine.match({"x": 1}).ids == ["a"]


def test_a_failed_publication_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(tmp_path)
    before = index.publish(engine_of(a="x = 1"))

    def reject(self: LocalFiles, name: str, data: bytes) -> None:
        raise SourceError("the disk is full")

    monkeypatch.setattr(LocalFiles, "write", reject)
    with pytest.raises(SourceError, match="the disk is full"):
        index.publish(engine_of(a="x = 2"))
    monkeypatch.undo()
    assert index.current() == before
    assert index.versions() == [1]


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(SegmentError, match="has no index") as caught:
        Index(tmp_path / "nothing").current()
    assert "build_index" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 99}'])
def test_a_damaged_pointer_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "current.json").write_text(text)
    with pytest.raises(SegmentError, match=r"current\.json"):
        Index(tmp_path).current()


def test_a_version_that_vanished_is_told(tmp_path: Path) -> None:
    version = Index(tmp_path).publish(engine_of(a="x = 12345"))
    LocalFiles(tmp_path).remove(version.folder)
    with pytest.raises(SegmentError, match="version 1 of the index is not in"):
        opened(version)


def test_parts_are_made_once(tmp_path: Path) -> None:
    index = Index(tmp_path)
    version = index.publish(engine_of(a="x = 1", b="x = 2", c="y = 3"))
    parts = index.cut(version, 2)
    assert sum(part.subscriptions for part in parts) == 3
    assert index.cut(version, 2) == parts
    matches = [id for part in parts for id in opened(part).match({"x": 1, "y": 3}).ids]
    assert sorted(matches) == ["a", "c"]


@pytest.mark.parametrize("way", ["local", "arrow", "hadoop"])
def test_files_are_read_and_written_alike(way: str, tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "root with a space"
    files = _files(way, root, spark)
    assert files.read("a.txt") is None
    assert files.names() == []
    files.write("folder/a.txt", b"1")
    files.write("folder/a.txt", b"22")
    assert files.read("folder/a.txt") == b"22"
    assert files.names("folder") == ["a.txt"]
    source = tmp_path / "source"
    source.mkdir()
    for name in ("x.segment", "manifest.harken"):
        (source / name).write_text(name)
    files.upload(source, "copy")
    assert sorted(files.names()) == ["copy", "folder"]
    files.download("copy", tmp_path / "back")
    assert sorted(each.name for each in (tmp_path / "back").iterdir()) == ["manifest.harken", "x.segment"]
    assert (tmp_path / "back" / "x.segment").read_text() == "x.segment"
    files.remove("copy")
    assert files.names() == ["folder"]


@pytest.mark.parametrize("way", ["arrow", "hadoop"])
def test_an_index_elsewhere_is_copied_once(
    way: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of this machine, taken for those of another."""
    import harken.spark.local

    monkeypatch.setenv("HARKEN_CACHE", str(tmp_path / "cache"))
    index = Index(tmp_path / "index")
    index.files = _files(way, tmp_path / "index", spark)
    version = index.publish(engine_of(a=f"x = 1 AND way = '{way}'"))
    monkeypatch.setattr(harken.spark.local, "local_path", lambda root: None)
    monkeypatch.setattr(harken.spark.local, "files_of", lambda root, spark: index.files)
    assert opened(version).match({"x": 1, "way": way}).ids == ["a"]
    copies = [each for each in (tmp_path / "cache" / f"harken-{os.getuid()}").iterdir() if each.is_dir()]
    assert [each.name for each in copies] == [version.fingerprint]


def test_schemes_that_nobody_knows_are_rejected() -> None:
    with pytest.raises(SourceError, match="cannot reach"):
        files_of("nowhere://bucket/index")


def test_the_driver_asks_spark_for_what_pyarrow_does_not_know(spark: SparkSession) -> None:
    with pytest.raises(HarkenError, match="neither pyarrow nor Spark can reach"):
        files_of("nowhere://bucket/index", spark)


def test_a_version_says_what_it_is(tmp_path: Path) -> None:
    version = Index(tmp_path).publish(engine_of(a="x = 1"))
    described = json.loads((tmp_path / version.folder / "version.json").read_text())
    assert described["subscriptions"] == 1
    assert "root" not in described


def _files(way: str, root: Path, spark: SparkSession) -> Files:
    if way == "local":
        return LocalFiles(root)
    if way == "hadoop":
        return HadoopFiles(root.as_uri(), spark)
    from pyarrow import fs

    return ArrowFiles(root.as_uri(), fs.LocalFileSystem(), str(root))


def test_what_a_process_held_that_is_no_more_is_let_go_of(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.publish(engine_of(a="x = 1"))
    index.hold(1)
    program = [sys.executable, "-c", "import os; print(os.getpid())"]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    index.pin(f"process-{os.uname().nodename}-{int(ended.stdout)}-1", 1)
    index.pin("process-elsewhere-1-1", 1)
    pins = index.pinned()
    assert set(pins) == {f"process-{os.uname().nodename}-{os.getpid()}-1", "process-elsewhere-1-1"}
    index.unpin("process-elsewhere-1-1")
    assert len(index.pinned()) == 1
