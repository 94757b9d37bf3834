"""Leases: they belong to a reader, and go with it, or with its process."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harken.errors import SourceError
from harken.versions.files import LocalFiles
from harken.versions.leases import Reader
from unit.versions.children import forked, waited
from unit.versions.roots import Texts

HOLDER = """
import sys
from pathlib import Path
from harken.versions.files import LocalFiles
from harken.versions.leases import Reader
from unit.versions.roots import Texts
reader = Reader("child")
reader.hold(Texts(LocalFiles(Path(sys.argv[1]))), 1)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Texts:
    root = Texts(LocalFiles(tmp_path / "root"))
    for text in ("one", "two", "three"):
        root.publish(text)
    return root


def files(root: Texts) -> list[str]:
    """The pins as they lie there: asking for them removes those of processes that are gone."""
    return root.files.names("pins")


def test_a_reader_that_is_closed_releases_all(root: Texts) -> None:
    reader = Reader("a")
    reader.hold(root, 1)
    reader.hold(root, 2)
    reader.hold(root, 2)
    assert sorted(root.pinned().values()) == [1, 2]
    reader.close()
    assert files(root) == []
    reader.close()
    reader.hold(root, 3)
    assert list(root.pinned().values()) == [3]
    reader.close()


def test_a_reader_in_a_block(root: Texts) -> None:
    with Reader("a") as reader:
        reader.hold(root, 1)
        assert len(files(root)) == 1
    assert files(root) == []


def test_a_reader_that_is_collected_releases_all(root: Texts) -> None:
    reader = Reader("a")
    reader.hold(root, 1)
    del reader
    gc.collect()
    assert files(root) == []


def test_readers_release_only_what_is_theirs(root: Texts) -> None:
    with Reader("a") as kept:
        kept.hold(root, 1)
        with Reader("b") as other:
            other.hold(root, 1)
            assert len(files(root)) == 2
        root.publish("four", keep=1)
        assert root.versions() == [1, 4]
    root.publish("five", keep=1)
    assert root.versions() == [5]


def test_turns_are_of_a_reader_whichever_roots_it_reads(root: Texts, tmp_path: Path) -> None:
    other = Texts(LocalFiles(tmp_path / "other"))
    other.publish("one")
    with Reader("a") as reader:
        reader.hold(root, 1, "first")
        reader.hold(other, 1, "second")
        assert len(files(root)) == 1
        reader.hold(other, 1, "third")
        assert files(root) == []
        assert len(files(other)) == 1


def test_what_is_used_again_is_not_let_go_of_meanwhile(root: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Used in the turn before the last, and now."""
    released: list[str] = []
    with Reader("a") as reader:
        monkeypatch.setattr(root, "unpin", released.append)
        for turn, version in enumerate([1, 2, 1, 2]):
            reader.hold(root, version, str(turn))
        assert released == []
        monkeypatch.undo()


def test_a_root_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="cannot be written"):
        Reader("a").hold(Texts(LocalFiles(tmp_path / "file")), 1)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_process_that_ends_holds_nothing(root: Texts, is_killed: bool) -> None:
    command = [sys.executable, "-c", HOLDER, root.root]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        root.publish("four", keep=1)
        assert root.versions() == [1, 4]
        if is_killed:
            process.send_signal(signal.SIGKILL)
    assert len(files(root)) == is_killed  # nobody was left to remove it; whoever publishes does
    root.publish("five", keep=1)
    assert root.versions() == [5]
    assert files(root) == []


def test_a_forked_child_releases_nothing_of_its_parent(root: Texts) -> None:
    with Reader("a") as reader:
        reader.hold(root, 1)
        assert waited(forked(reader.close)) == 0
        assert len(files(root)) == 1


def test_a_forked_child_holds_in_its_own_name(root: Texts) -> None:
    """Else its lease would be taken for left behind when its parent ends."""
    reader = Reader("a")
    child = forked(lambda: reader.hold(root, 2))
    assert waited(child) == 0
    assert [name.split("-")[-2] for name in files(root)] == [str(child)]
