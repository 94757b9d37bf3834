"""Where kernels are kept, and what is said while they are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.seconds

SOURCES = Path(__file__).parents[3] / "src"
PROGRAM = """
from harken.kernels.checksum import checksum
import numpy as np
print(checksum(np.zeros(640, np.uint8)))
from harken.kernels.compile import kept_in
print(kept_in())
"""


def run(home: Path, *, cache: Path | None = None, temporary: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(SOURCES)}
    for name, value in (("NUMBA_CACHE_DIR", cache), ("TMPDIR", temporary)):
        environment.pop(name, None)
        if value is not None:
            environment[name] = str(value)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_that_kernels_are_compiled_is_said_once_and_where_they_are_kept(tmp_path: Path) -> None:
    first = run(tmp_path, cache=tmp_path / "kept")
    assert first.stderr.count("compiling kernels for this processor") == 1
    assert f"kept in {tmp_path}" in first.stderr
    assert "harken warm-up" in first.stderr
    second = run(tmp_path, cache=tmp_path / "kept")
    assert second.stderr == "", "what is kept is not compiled again"
    assert second.stdout == first.stdout


def test_of_processes_that_meet_an_empty_cache_one_says_it(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(SOURCES)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(3)
    ]
    said = [each.communicate(timeout=120)[1] for each in processes]
    assert [each.returncode for each in processes] == [0, 0, 0]
    assert "".join(said).count("compiling kernels") == 1


def test_what_is_missing_later_is_compiled_in_silence(tmp_path: Path) -> None:
    run(tmp_path, cache=tmp_path / "kept")
    for index in (tmp_path / "kept").rglob("checksum.*.nbi"):
        index.rename(index.with_name("other.nbi"))
    assert run(tmp_path, cache=tmp_path / "kept").stderr == ""


LOCKED_OUT = """
import numba.core.caching as caching
for each in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    each.from_function = classmethod(lambda *given: None)
"""


READ_ONLY = """
import numba.core.caching as caching
for each in (caching.UserProvidedCacheLocator, caching.InTreeCacheLocator):
    each.from_function = classmethod(lambda *given: None)
"""
MISSING = """
from numba.core import event
class Listener(event.Listener):
    def on_start(self, started):
        print("compiled", started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass
event.register("numba:compile", Listener())
"""


def test_a_folder_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    """As in an image: root has warmed up, and another user may read what is kept."""
    kept, home = tmp_path / "kept", tmp_path / "home"
    run(tmp_path, cache=kept)
    files = sorted(kept.rglob("*"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kept), "HOME": str(home), "PYTHONPATH": str(SOURCES)}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", MISSING + READ_ONLY + PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert "compiled" not in done.stdout
    assert done.stderr == ""
    assert str(home) in done.stdout, "what is missing would be kept there"
    assert sorted(kept.rglob("*")) == files


def test_what_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    """As with a full disk."""
    full = "import numba.core.caching as caching\n"
    full += "def save(*given): raise OSError(28, 'No space left on device')\n"
    full += "caching.IndexDataCacheFile.save = save\n"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", full + PROGRAM], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == run(tmp_path, cache=tmp_path).stdout


@pytest.mark.parametrize("is_private", [True, False])
def test_where_neither_package_nor_home_can_be_written(tmp_path: Path, is_private: bool) -> None:
    folder = tmp_path / f"harken-kernels-{os.getuid()}"
    if not is_private:
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "TMPDIR": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", LOCKED_OUT + PROGRAM], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    if is_private:
        assert str(folder) in done.stdout
        assert f"kept in {folder}" in done.stderr
        assert folder.stat().st_mode & 0o777 == 0o700
    else:
        assert "None" in done.stdout, "machine code is not read from a folder that others can write"
        assert "Set NUMBA_CACHE_DIR" in done.stderr
