"""Locks: one holder at a time, among threads and processes, and none that outlives its holder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import harken
from harken.versions.locks import locked
from unit.versions.children import forked, waited

HOLDER = """
import sys, time
from pathlib import Path
from harken.versions.locks import locked
with locked(Path(sys.argv[1])) as stream:
    stream.write("the child")
    stream.flush()
    print("held", flush=True)
    sys.stdin.read()
"""


class BusyError(Exception):
    pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def is_held(path: Path) -> bool:
    try:
        with locked(path, BusyError):
            return False
    except BusyError:
        return True


def test_a_lock_is_held_for_the_block(path: Path) -> None:
    with locked(path):
        assert is_held(path)
    assert not is_held(path)


def test_an_error_releases_it(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(path):
        raise ZeroDivisionError
    assert not is_held(path)


def test_the_text_of_the_holder_is_told_and_kept(path: Path) -> None:
    with another_process(path) as process:
        with pytest.raises(BusyError, match=r"^the child$"), locked(path, BusyError):
            pass
        process.communicate()
    assert path.read_text() == "the child"  # a lock empties no file


def test_processes_take_turns(path: Path) -> None:
    """Each reads a number, waits, and writes the next one: whoever comes in between is lost."""
    counter = path.with_name("counter")
    counter.write_text("0")

    def count() -> None:
        for _ in range(5):
            with locked(path):
                number = int(counter.read_text())
                time.sleep(0.002)
                counter.write_text(str(number + 1))

    children = [forked(count) for _ in range(4)]
    assert [waited(child) for child in children] == [0] * 4
    assert counter.read_text() == "20"


def test_threads_take_turns(path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with locked(path):
            entered.set()

    with locked(path):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.05)
    thread.join(60)
    assert entered.is_set()


def test_a_process_that_is_killed_holds_nothing(path: Path) -> None:
    with another_process(path) as process:
        assert is_held(path)
        process.kill()
        process.wait()
        assert not is_held(path)


def test_a_forked_child_neither_keeps_nor_releases_the_lock(path: Path) -> None:
    read, write = os.pipe()
    with ExitStack() as held:
        held.enter_context(locked(path))
        assert waited(forked(held.close)) == 0
        assert is_held(path), "a child left the block, and this process is still in it"
        sleeper = forked(lambda: (os.close(write), os.read(read, 1)))  # until its parent closes the pipe
    assert not is_held(path), "a child that still runs keeps the lock"
    os.close(write)
    assert waited(sleeper) == 0
    os.close(read)


def test_a_folder_that_is_not_there(path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(path / "nothing" / "lock"):
        pass


def test_the_package_replaces_files_and_holds_locks_in_one_place_each() -> None:
    root = Path(harken.__file__).parent
    found: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        for name in re.findall(r"\bfcntl\b|\bos\.(?:replace|rename|fsync)\b", path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.relative_to(root).as_posix())
    atomic = {"versions/atomic.py"}
    # kernels/ imports nothing of the package, and keeps others waiting while it compiles.
    locks = {"versions/locks.py", "kernels/compile_lock.py"}
    assert found == {"fcntl": locks, "os.replace": atomic, "os.fsync": atomic}
