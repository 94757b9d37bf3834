"""Folders: there is always one whole version, though writers are killed, readers are slow and files are damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom

import numpy as np
import pytest

from harken.errors import FolderLockedError, SegmentError
from harken.versions import atomic
from harken.versions import folder as module
from harken.versions.folder import LOCK, MANIFEST, Folder, VersionDraft
from unit.versions import killer
from unit.versions.killer import NAMES, check, publish

SEED = int(os.environ.get("HARKEN_SEED") or SystemRandom().randrange(10**9))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "saved")


def files(folder: Folder) -> set[str]:
    return {each.name for each in folder.path.iterdir()} - {LOCK, MANIFEST}


def named(*versions: int) -> set[str]:
    return {f"{name}-{version:08d}.segment" for name in NAMES for version in versions}


class Killer:
    """The process that publishes and is killed."""

    def __init__(self, folder: Folder) -> None:
        command = [sys.executable, killer.__file__, str(folder.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def answer(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def ask(self, command: str) -> list[str]:
        self.start(command)
        return self.answer()


@pytest.fixture
def kill(folder: Folder) -> Iterator[Killer]:
    running = Killer(folder)
    with running.process:
        yield running
        assert running.process.stdin is not None
        running.process.stdin.close()
    assert running.process.returncode == 0


# Publishing and opening


def test_versions_follow_each_other(folder: Folder) -> None:
    assert [publish(folder) for _ in range(3)] == [1, 2, 3]
    assert folder.current().version == check(folder) == 3


def test_files_of_the_version_before_are_kept_and_no_others(folder: Folder) -> None:
    for _ in range(3):
        publish(folder)
    assert files(folder) == named(2, 3)


def test_files_can_be_taken_over(folder: Folder) -> None:
    publish(folder)
    for _ in range(3):
        with folder.publishing() as draft:
            draft.keep("index")
            draft.write("more", {}, {"of": draft.version})
    contents = folder.open()
    assert set(contents.files) == {"index", "more"}
    assert (contents.files["index"].arrays["numbers"] == 1).all()
    assert files(folder) == {"index-00000001.segment", "more-00000003.segment", "more-00000004.segment"}


@pytest.mark.parametrize("name", ["", "A", "a-b", "../a", "a/b", "a.b", "1a"])
def test_names_of_files(folder: Folder, name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a file"), folder.publishing() as draft:
        draft.write(name, {})


def test_a_name_is_used_once(folder: Folder) -> None:
    with folder.publishing() as draft:
        draft.write("a", {})
        with pytest.raises(ValueError, match="or is taken"):
            draft.write("a", {})


def test_nothing_to_take_over(folder: Folder) -> None:
    with pytest.raises(KeyError), folder.publishing() as draft:
        draft.keep("index")


def test_an_error_while_writing_leaves_the_version_before(folder: Folder) -> None:
    def half(draft: VersionDraft) -> None:
        draft.write("index", {"a": np.zeros(3)})
        assert files(folder) == named(1) | {"index-00000002.segment"}
        raise ZeroDivisionError

    publish(folder)
    with pytest.raises(ZeroDivisionError), folder.publishing() as draft:
        half(draft)
    assert files(folder) == named(1)
    assert check(folder) == 1
    assert publish(folder) == 2


def test_an_error_after_the_manifest_was_replaced(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is published may not lose its files, though its writer was told that it failed."""
    publish(folder)
    real = atomic.sync_folder

    def failing(path: Path) -> None:
        if folder.current().version == 2:
            raise OSError(5, "Input/output error")
        real(path)

    monkeypatch.setattr(atomic, "sync_folder", failing)
    with pytest.raises(SegmentError, match="Input/output error"):
        publish(folder)
    monkeypatch.undo()
    assert check(folder) == 2


def test_files_of_others_are_left_alone(folder: Folder) -> None:
    folder.path.mkdir()
    mine = {"notes.txt", "index.segment", ".hidden", "a-1.segment", "index-00000001.segment.bak"}
    for each in mine:
        (folder.path / each).write_text("mine")
    publish(folder)
    publish(folder)
    assert files(folder) == mine | named(1, 2)


def test_opened_files_outlive_their_names(folder: Folder) -> None:
    publish(folder)
    opened = folder.open()
    for _ in range(3):
        publish(folder)
    assert not (folder.path / "index-00000001.segment").exists()
    assert (opened.files["index"].arrays["numbers"] == 1).all()


# Finding out


def test_whether_it_has_changed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Folder(folder.path)
    assert not reader.has_changed()
    publish(folder)
    assert reader.has_changed()
    reader.open()
    assert reader.has_changed(), "it may have been opened in vain"
    reader.keep()
    monkeypatch.setattr(module, "_parsed", None)  # it is not read again
    assert not reader.has_changed()
    monkeypatch.undo()
    publish(folder)
    assert reader.has_changed()
    assert not folder.has_changed(), "it has published that itself"
    reader.open()
    reader.keep()
    assert not reader.has_changed()


def test_another_index_with_the_same_version_is_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Folder(tmp_path / name).publishing() as draft:
            draft.write("index", {"numbers": np.full(3, len(name) + ord(name[0]))})
    (tmp_path / "now").symlink_to(tmp_path / "one")
    reader = Folder(tmp_path / "now")
    reader.open()
    reader.keep()
    assert not reader.has_changed()
    (tmp_path / "next").symlink_to(tmp_path / "two")
    (tmp_path / "next").rename(tmp_path / "now")
    assert reader.has_changed()


def test_a_folder_that_is_gone_is_told_once(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    publish(folder)
    folder.open()
    (folder.path / MANIFEST).unlink()
    for _ in range(3):
        assert not folder.has_changed()
    assert caplog.text.count("is gone") == 1


def test_a_path_means_the_same_after_the_process_changed_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = Folder("index")
    publish(folder)
    monkeypatch.chdir(tmp_path / "there")
    publish(folder)
    assert folder.open().version == 2
    assert not (tmp_path / "there" / "index").exists()


def test_no_version_is_missed_though_all_come_at_once(folder: Folder) -> None:
    reader = Folder(folder.path)
    for _ in range(1, 40):
        with folder.publishing():
            pass
        assert reader.has_changed()
        reader.open()
        reader.keep()
        assert not reader.has_changed()


def test_nothing_saved(folder: Folder, tmp_path: Path) -> None:
    for missing in (folder, Folder(tmp_path)):
        with pytest.raises(SegmentError, match=f"has no saved index: there is no {MANIFEST}"):
            missing.open()


def test_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SegmentError, match="file"):
        Folder(tmp_path / "file").current()
    with pytest.raises(SegmentError, match="file cannot be written to"):
        publish(Folder(tmp_path / "file"))


def test_reader_that_was_overtaken_tries_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(folder)
    reader = Folder(folder.path)
    real = module.read_arrays
    left = [2, 2]  # both times, two versions come between the manifest and the files

    def slow(path: Path) -> object:
        if left:
            for _ in range(left.pop()):
                publish(folder)
        return real(path)

    monkeypatch.setattr(module, "read_arrays", slow)
    assert check(reader) == 5


# Damage


def test_missing_file_is_told(folder: Folder) -> None:
    publish(folder)
    (folder.path / "ids-00000001.segment").unlink()
    with pytest.raises(SegmentError, match=r"ids-00000001\.segment cannot be read: No such file"):
        folder.open()


def test_file_of_another_folder_is_told(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path / "other")
    publish(folder)
    with other.publishing() as draft:
        draft.write("ids", {"numbers": np.arange(3_000)})
    os.replace(other.path / "ids-00000001.segment", folder.path / "ids-00000001.segment")
    with pytest.raises(SegmentError, match="is not the file that version 1 was published with"):
        folder.open()


def test_damaged_manifest(folder: Folder) -> None:
    publish(folder)
    path = folder.path / MANIFEST
    content = path.read_bytes()
    damaged = [content[:size] for size in range(0, len(content), 5)]
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place * 3 % 8
        damaged.append(bytes(changed))
    damaged += [content + b"x", content + b"\0", b"\n" + content]
    for each in damaged:
        path.write_bytes(each)
        with pytest.raises(SegmentError, match=MANIFEST):
            folder.current()
    with pytest.raises(SegmentError, match=MANIFEST):
        publish(folder)  # nor is a folder written to that cannot be understood
    path.write_bytes(content)
    assert check(folder) == 1


def test_manifest_of_a_newer_harken(folder: Folder) -> None:
    publish(folder)
    path = folder.path / MANIFEST
    path.write_text(path.read_text().replace("harken manifest 1 ", "harken manifest 2 "))
    with pytest.raises(SegmentError, match="has version 2 of its format, and this Harken reads version 1"):
        folder.open()


def test_foreign_manifest(folder: Folder) -> None:
    folder.path.mkdir()
    (folder.path / MANIFEST).write_text('{"name": "a web page"}')
    with pytest.raises(SegmentError, match="is not the manifest of a saved index"):
        publish(folder)


# One writer


def test_second_writer_is_told(folder: Folder) -> None:
    with folder.publishing():
        other = Folder(folder.path)
        with pytest.raises(FolderLockedError, match=rf"another writer \(process {os.getpid()}\)"), other.publishing():
            pass
    assert publish(folder) == 2


# Killed writers


@pytest.mark.seconds
def test_killed_at_every_step(folder: Folder, kill: Killer) -> None:
    """The writer ends before each step that reaches the disk; the next writer cleans up after it."""
    publish(folder)
    publish(folder)
    step, outcomes = 0, []
    while True:
        step += 1
        before = check(folder)
        acknowledged, ended = kill.ask(f"step {step}")
        after = check(folder)
        assert after in (before, before + 1)
        assert int(acknowledged) in (0, after)
        if ended == "False":
            break
        outcomes.append(after - before)
        publish(folder)
        assert files(folder) == named(after, after + 1)
    assert step > 15
    assert outcomes == sorted(outcomes)  # the old version up to some step, and the new one from then on
    assert set(outcomes) == {0, 1}


@pytest.mark.seconds
def test_killed_at_random(folder: Folder, kill: Killer) -> None:
    kill_repeatedly(folder, kill, 10)


@pytest.mark.slow
def test_killed_at_random_many_times(folder: Folder, kill: Killer) -> None:
    kill_repeatedly(folder, kill, 300)


def kill_repeatedly(folder: Folder, kill: Killer, times: int) -> None:
    print(f"to replay: HARKEN_SEED={SEED}")
    rng = Random(SEED)
    version = publish(folder)
    leftovers = 0
    for _ in range(times):
        (told,) = kill.ask(f"kill {rng.uniform(0.001, 0.04)}")
        acknowledged = max(version, int(told))
        version = check(folder)
        assert version in (acknowledged, acknowledged + 1)
        leftovers += bool(files(folder) - named(version - 1, version))
        if rng.random() < 0.3:
            version = publish(folder)
            assert files(folder) == named(version - 1, version)
    assert leftovers > 0  # it was killed in the midst of it


# Readers that follow


@pytest.mark.seconds
def test_reader_that_follows_sees_whole_versions(folder: Folder, kill: Killer) -> None:
    publish(folder)
    reader = Folder(folder.path)
    count = 60
    kill.start(f"publish {count}")
    seen = [check(reader)]
    reader.keep()
    while seen[-1] <= count:
        if reader.has_changed():
            seen.append(check(reader))
            reader.keep()
    assert kill.answer() == [str(count + 1)]
    assert seen == sorted(set(seen))
    assert len(seen) > 5
