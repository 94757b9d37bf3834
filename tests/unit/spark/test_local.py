"""Copies of an index on a machine: made once, checked, made again if they are wrong, and removed when they are old."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

import harken.spark.local
from harken import Engine
from harken.errors import SegmentError
from harken.spark import Index, IndexVersion
from harken.spark.local import opened
from harken.versions.files import ArrowFiles


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of copies. Files of this machine are taken for those of another, so that they are copied."""
    from pyarrow import fs

    def elsewhere(root: str, spark: object) -> ArrowFiles:
        return ArrowFiles(root, fs.LocalFileSystem(), root)

    monkeypatch.setenv("HARKEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(harken.spark.local, "local_path", lambda root: None)
    monkeypatch.setattr(harken.spark.local, "files_of", elsewhere)
    monkeypatch.setattr(harken.spark.local, "_engines", type(harken.spark.local._engines)())
    return tmp_path / "cache" / f"harken-{os.getuid()}"


def published(folder: Path, text: str) -> IndexVersion:
    engine = Engine()
    engine.subscribe("a", text)
    return Index(folder).publish(engine)


def reopened(version: IndexVersion) -> list[str]:
    """What matches when the version is opened as by a new process."""
    harken.spark.local._engines.clear()
    return opened(version).match({"x": 1}).ids


def age(folder: Path, days: int = 3) -> None:
    os.utime(folder, (time.time() - days * 86_400,) * 2)


def test_a_folder_that_holds_other_things_keeps_them(cache: Path, tmp_path: Path) -> None:
    others = [cache.parent / "photos", cache.parent / ("0" * 32), cache / "notes"]
    for each in others:
        each.mkdir(parents=True)
        (each / "precious").write_text("mine")
        age(each)
    assert reopened(published(tmp_path / "index", "x = 1")) == ["a"]
    assert all((each / "precious").read_text() == "mine" for each in others)


def test_only_copies_that_are_old_are_removed(cache: Path, tmp_path: Path) -> None:
    old, young, new = (published(tmp_path / "index", f"x = 1 AND y IS NULL AND z <> {n}") for n in range(3))
    for version in (old, young):
        reopened(version)
    interrupted = cache / f".{'0' * 32}.{'1' * 8}"
    interrupted.mkdir()
    for each in (cache / old.fingerprint, interrupted):
        age(each)
    reopened(new)
    assert {each.name for each in cache.iterdir() if each.is_dir()} == {young.fingerprint, new.fingerprint}


def test_a_copy_of_something_else_is_replaced(cache: Path, tmp_path: Path) -> None:
    wanted, other = published(tmp_path / "index", "x = 1"), published(tmp_path / "index", "x = 2")
    (cache / wanted.fingerprint).parent.mkdir(parents=True)
    shutil.copytree(tmp_path / "index" / other.folder, cache / wanted.fingerprint)
    assert reopened(wanted) == ["a"]


@pytest.mark.parametrize("harm", ["damaged", "missing"])
def test_a_copy_that_cannot_be_read_is_made_again(cache: Path, tmp_path: Path, harm: str) -> None:
    version = published(tmp_path / "index", "x = 1")
    assert reopened(version) == ["a"]
    segment = next((cache / version.fingerprint).glob("*.segment"))
    segment.unlink()
    if harm == "damaged":
        segment.write_bytes(b"nothing of ours")
    assert reopened(version) == ["a"]


def test_a_version_that_is_not_what_was_published_is_rejected(cache: Path, tmp_path: Path) -> None:
    version, other = published(tmp_path / "index", "x = 1"), published(tmp_path / "index", "x = 2")
    shutil.rmtree(tmp_path / "index" / version.folder)
    shutil.copytree(tmp_path / "index" / other.folder, tmp_path / "index" / version.folder)
    with pytest.raises(SegmentError, match="does not hold version 1 of the index as it was published"):
        reopened(version)
    assert not (cache / version.fingerprint).exists()


def test_a_version_in_place_that_is_not_what_was_published_is_rejected(tmp_path: Path) -> None:
    version, other = published(tmp_path / "index", "x = 'here'"), published(tmp_path / "index", "x = 'there'")
    shutil.rmtree(tmp_path / "index" / version.folder)
    shutil.copytree(tmp_path / "index" / other.folder, tmp_path / "index" / version.folder)
    with pytest.raises(SegmentError, match="does not hold version 1 of the index as it was published"):
        opened(version)
