"""One process compiles a kernel, the others wait and read it; nobody waits for a holder that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harken.kernels import compile_lock
from harken.kernels.compile_lock import FILE, CompileLock

SOURCES = Path(__file__).parents[3] / "src"
KERNELS = """
import numpy as np
from harken.kernels.compile import inner, kernel

@inner
def squared(number):
    return number * number

@kernel
def sum_of_squares(numbers):
    total = np.int64(0)
    for number in numbers:
        total += squared(number)
    return total

@kernel
def doubled(number):
    return 2 * number
"""
PROGRAM = """
import sys, threading
from collections import Counter
import numpy as np
from numba.core import event
import few_kernels

class Listener(event.Listener):
    compiled = Counter()
    def on_start(self, started):
        if started.data["dispatcher"].py_func.__module__ == "few_kernels":
            self.compiled[started.data["dispatcher"].py_func.__name__] += 1
    def on_end(self, ended):
        pass

event.register("numba:compile", Listener())
print("ready", flush=True)
sys.stdin.readline()
done = Counter()

def work(name):
    for number in range(200):
        assert few_kernels.sum_of_squares(np.arange(number)) == sum(each * each for each in range(number))
        assert few_kernels.doubled(number) == 2 * number
        done[name] += 1

threads = [threading.Thread(target=work, args=(name,)) for name in range(int(sys.argv[1]))]
for each in threads: each.start()
for each in threads: each.join()
print(sum(done.values()), *Listener.compiled.elements())
"""
HOLDER = """
import sys, time
from harken.kernels.compile_lock import CompileLock
lock = CompileLock()
assert lock.take(sys.argv[1])
print("held", flush=True)
time.sleep(600)
"""
FORKING = """
import os, sys
from harken.kernels.compile_lock import CompileLock
lock = CompileLock()
assert lock.take(sys.argv[1])
child = os.fork()
if child == 0:
    with lock.released_after():
        os._exit(0 if not lock.is_held else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a child holds nothing"
assert lock.is_held
import harken.kernels.compile_lock as module
module._LONGEST_WAIT = 0.1
assert not CompileLock().take(sys.argv[1]), "and what it does releases nothing"
"""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": f"{SOURCES}{os.pathsep}{folder}"}


def started(folder: Path, threads: int = 1) -> subprocess.Popen[str]:
    """A process that has imported some kernels, and waits for a line before it calls them."""
    (folder / "few_kernels.py").write_text(KERNELS)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finished(process: subprocess.Popen[str], already: bool = False) -> tuple[int, list[str]]:
    """How many rounds it did, and the kernels that it compiled."""
    out, err = process.communicate(None if already else "go\n", timeout=120)
    assert process.returncode == 0, err
    assert err == "", "and nobody says anything: these kernels are not Harken's"
    rounds, *compiled = out.split()
    return int(rounds), compiled


@pytest.mark.seconds
def test_several_processes_compile_each_kernel_once(tmp_path: Path) -> None:
    processes = [started(tmp_path) for _ in range(4)]
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    found = [finished(each, already=True) for each in processes]
    assert [rounds for rounds, _ in found] == [200] * 4
    assert sorted(name for _, compiled in found for name in compiled) == ["doubled", "squared", "sum_of_squares"]


@pytest.mark.seconds
def test_threads_that_wait_for_a_kernel_finish_all_their_calls(tmp_path: Path) -> None:
    rounds, compiled = finished(started(tmp_path, threads=4))
    assert rounds == 4 * 200
    assert sorted(compiled) == ["doubled", "squared", "sum_of_squares"]


@pytest.mark.seconds
def test_a_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    waiting = started(tmp_path)
    (folder,) = (tmp_path / "kept").iterdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True, env=environment(tmp_path)
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert waiting.stdin is not None
    waiting.stdin.write("go\n")
    waiting.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1)
    holder.kill()
    holder.communicate()
    rounds, compiled = finished(waiting, already=True)
    assert rounds == 200
    assert sorted(compiled) == ["doubled", "squared", "sum_of_squares"]


def test_whoever_waits_too_long_goes_on_without_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_lock, "_LONGEST_WAIT", 0.1)
    first, second = CompileLock(), CompileLock()
    with first.released_after():
        assert first.take(str(tmp_path))
        assert not first.take(str(tmp_path)), "it is held already"
        with second.released_after():
            assert not second.take(str(tmp_path))
            assert not second.is_held
        assert first.is_held
    assert not first.is_held
    with second.released_after():
        assert second.take(str(tmp_path))


def test_an_inner_block_does_not_release_what_an_outer_one_took(tmp_path: Path) -> None:
    lock = CompileLock()
    with lock.released_after():
        lock.take(str(tmp_path))
        with lock.released_after():
            lock.take(str(tmp_path))
        assert lock.is_held


def test_where_there_can_be_no_lock_nobody_waits(tmp_path: Path) -> None:
    assert not CompileLock().take(str(tmp_path / "not there"))
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert not CompileLock().take(str(tmp_path)), "what others may have put there is not followed"
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_written_beside_the_lock_stays(tmp_path: Path) -> None:
    lock = CompileLock()
    assert lock.read() == ""
    for text in ("a longer text", "short"):
        with lock.released_after():
            lock.take(str(tmp_path))
            lock.write(text)
    with lock.released_after():
        lock.take(str(tmp_path))
        assert lock.read() == "short"


@pytest.mark.seconds
def test_a_child_of_a_fork_neither_holds_the_lock_nor_releases_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
