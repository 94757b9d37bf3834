"""Files and folders that are replaced: the old one or the new one is there, whatever happens meanwhile."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken.errors import SourceError
from harken.versions.atomic import output_file, placing_folder, remove_folder, replacing
from unit.versions.children import forked, waited


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"old")
    return tmp_path / "folder" / "file"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def replace(path: Path, data: bytes = b"new", durable: bool = False) -> None:
    with replacing(path, durable=durable) as stream:
        stream.write(data)


def ended_at(call: str, work: Callable[[], None]) -> None:
    """Do the work in a child that ends, as if it was killed, when it comes to a call of `os`."""

    def until_then() -> None:
        setattr(os, call, lambda *args, **more: os._exit(9))
        work()

    assert waited(forked(until_then)) == 9


# Files


def test_the_new_file_takes_the_place_of_the_old(path: Path) -> None:
    with path.open("rb") as opened:
        replace(path)
        assert opened.read() == b"old"  # whoever has it open keeps it
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["file"]


def test_a_file_may_be_the_first(path: Path) -> None:
    replace(path.with_name("other"))
    assert names(path.parent) == ["file", "other"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_and_no_trace(path: Path, error: type[BaseException]) -> None:
    def half() -> None:
        with replacing(path) as stream:
            stream.write(b"half of the ne")
            raise error

    with pytest.raises(error):
        half()
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_writer_that_is_killed_leaves_the_old_file(path: Path, call: str) -> None:
    ended_at(call, lambda: replace(path))
    assert path.read_bytes() == b"old"
    replace(path)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_on_disk_when(path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    """The file is on disk before it takes its place: else a power cut might leave an empty one."""
    steps: list[str] = []
    fsync, move = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append("sync folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "sync file")
        fsync(descriptor)

    def moved(*args: Any) -> None:
        steps.append("replace")
        move(*args)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    replace(path, durable=durable)
    assert steps == ["sync file", "replace"] + ["sync folder"] * durable


# Outputs that a user names


def test_an_output_behind_a_link(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    with output_file(str(link)) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["file", "link"]


def test_an_output_that_fails_leaves_the_old_one(path: Path) -> None:
    with pytest.raises(SourceError, match="file cannot be written: No space left"), output_file(str(path)):
        raise OSError(28, "No space left on device")
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["file"]


def test_a_pipe_is_written_to_and_not_replaced(path: Path) -> None:
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with output_file(str(pipe)) as stream:
        stream.write(b"new")
    reader.join(10)
    assert read == [b"new"]
    assert pipe.is_fifo()


def test_a_pipe_that_breaks_is_no_fault_of_the_path(path: Path) -> None:
    with pytest.raises(BrokenPipeError), output_file(str(path)):
        raise BrokenPipeError


@pytest.mark.parametrize("name", ["", "no/such/folder"])
def test_an_output_that_cannot_be(path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="cannot be written"), output_file(str(path.parent / name)):
        pass


# Folders


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").touch()
    (folder / "b").touch()


def test_a_folder_comes_to_stand_at_its_place_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with placing_folder(place) as scratch:
        fill(scratch)
        assert not place.exists()
    assert names(place) == ["a", "b"]
    assert names(tmp_path) == ["place"]


def test_a_folder_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    def half() -> None:
        with placing_folder(tmp_path / "place") as scratch:
            fill(scratch)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert names(tmp_path) == []


def test_a_folder_that_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "quicker").touch()
    with pytest.raises(OSError, match="not empty"), placing_folder(tmp_path / "place") as scratch:
        fill(scratch)
    assert names(tmp_path) == ["place"]
    assert names(tmp_path / "place") == ["quicker"]


def test_nobody_meets_a_part_of_a_folder_that_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    fill(place)
    seen = []
    remove = shutil.rmtree

    def watched(path: Path, **more: Any) -> None:
        seen.append((place.exists(), names(path)))
        remove(path, **more)

    monkeypatch.setattr(shutil, "rmtree", watched)
    remove_folder(place)
    assert seen == [(False, ["a", "b"])]
    assert names(tmp_path) == []


def test_removing_what_is_not_there(tmp_path: Path) -> None:
    remove_folder(tmp_path / "nothing")
