"""Versions below a root: published one after the other, kept while they are needed, whole whatever happens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from harken.errors import SegmentError, SourceError
from harken.versions.files import ArrowFiles, Files, LocalFiles, files_of, local_path
from unit.versions.children import forked, waited
from unit.versions.roots import Texts


def far(path: Path) -> ArrowFiles:
    """Files of this machine, taken for those of another."""
    from pyarrow import fs

    return ArrowFiles(path.as_uri(), fs.LocalFileSystem(), str(path))


@pytest.fixture(params=["near", "far"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Texts:
    return Texts(LocalFiles(tmp_path) if request.param == "near" else far(tmp_path))


def names(root: Texts) -> list[str]:
    return sorted(set(root.files.names()) - {"current.json", "pins", "lock"})


def test_versions_are_published_and_found_again(root: Texts) -> None:
    first, second = root.publish("one"), root.publish("two")
    assert (first.version, first.text, second.version) == (1, "one", 2)
    assert root.current() == second
    assert root.version(1) == first
    assert [root.read(each) for each in (first, second)] == ["one", "two"]
    assert names(root) == [first.folder, second.folder]


def test_no_version_yet(root: Texts) -> None:
    with pytest.raises(SegmentError, match=r"has no index: there is no current\.json in it") as caught:
        root.current()
    assert caught.value.hint == "publish a text"


def test_what_is_not_needed_goes(root: Texts) -> None:
    root.publish("one")
    root.pin("somebody", 1)
    for text in ("two", "three", "four"):
        root.publish(text, keep=2)
    assert root.versions() == [1, 3, 4]
    root.unpin("somebody")
    root.publish("five", keep=0)  # the one that counts always stays
    assert root.versions() == [5]


def test_an_error_while_writing_leaves_the_version_before(root: Texts) -> None:
    before = root.publish("one")

    def half(place: Path) -> dict[str, Any]:
        LocalFiles(place).write("text", b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        root._publish(half, 1)
    assert root.current() == before
    assert names(root) == [before.folder]


def test_an_error_after_the_pointer_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts may not lose its files, though its writer was told that it failed."""
    root = Texts(LocalFiles(tmp_path))
    root.publish("one")
    real = LocalFiles.write

    def failing(self: LocalFiles, name: str, data: bytes) -> None:
        real(self, name, data)
        if name == "current.json":
            raise SourceError("the disk is gone")

    monkeypatch.setattr(LocalFiles, "write", failing)
    with pytest.raises(SourceError):
        root.publish("two")
    assert root.read(root.current()) == "two"


@pytest.mark.seconds
def test_a_writer_that_is_killed_at_any_step_leaves_a_whole_version(tmp_path: Path) -> None:
    root = Texts(LocalFiles(tmp_path))
    root.publish("0")
    step, outcomes, is_killed = 0, [], True
    while is_killed:
        step += 1
        before = root.current()
        is_killed = killed_at(step, root, str(step))
        after = root.current()
        assert root.read(after) == after.text
        assert after == before or after.text == str(step)
        outcomes.append(after != before)
        root.pin("somebody", after.version)  # nobody holds the lock
    assert step > 8
    assert outcomes == sorted(outcomes)  # the old version up to some step, and the new one from then on
    assert set(outcomes) == {False, True}
    assert root.publish("last", keep=1).version == root.versions()[-1]
    assert len(root.versions()) <= 2  # this one, and the one that is pinned


def killed_at(step: int, root: Texts, text: str) -> bool:
    """Publish in a child that ends before its N-th step that reaches the disk. Whether it came to it."""

    def until_then() -> None:
        left = step

        def counted(function: Any) -> Any:
            def instead(*args: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    os._exit(9)
                return function(*args, **more)

            return instead

        for name in ("fsync", "replace", "mkdir", "unlink", "rmdir"):
            setattr(os, name, counted(getattr(os, name)))
        root.publish(text, keep=1)

    ended = waited(forked(until_then))
    assert ended in (0, 9)
    return ended == 9


def test_a_pin_that_was_never_finished_pins_nothing(tmp_path: Path) -> None:
    root = Texts(LocalFiles(tmp_path))
    root.publish("one")
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / ".somebody.0a1b2c3d.tmp").write_text("1")
    root.publish("two", keep=1)
    assert root.pinned() == {}
    assert root.versions() == [2]


def test_publishers_on_one_machine_wait_for_each_other(tmp_path: Path) -> None:
    root = Texts(LocalFiles(tmp_path))

    def slow(place: Path) -> dict[str, Any]:
        time.sleep(0.02)
        place.mkdir()
        return {"text": ""}

    children = [forked(lambda: root._publish(slow, 99)) for _ in range(4)]
    assert [waited(child) for child in children] == [0] * 4
    assert root.versions() == [1, 2, 3, 4]


def test_whatever_is_written_here_is_on_disk_with_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    LocalFiles(tmp_path).write("a/b/file", b"")
    assert synced[0].startswith("a/b/.file.")
    assert synced[1:] == ["a/b", "a", "."]


def test_a_back_end_may_be_handed_in(tmp_path: Path) -> None:
    asked: list[str] = []

    def elsewhere(root: str) -> Files:
        asked.append(root)
        return far(tmp_path)

    assert isinstance(files_of(tmp_path, elsewhere), LocalFiles)
    assert asked == []
    root = Texts(files_of("nowhere://bucket/index", elsewhere))
    assert root.read(root.publish("one")) == "one"
    assert asked == ["nowhere://bucket/index"]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/a b", "/a b"),
        ("file:///a%20b", "/a b"),
        ("file:/a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("s3://bucket/a", None),
    ],
)
def test_which_roots_are_on_this_machine(root: str, path: str | None) -> None:
    assert local_path(root) == (None if path is None else Path(path))
