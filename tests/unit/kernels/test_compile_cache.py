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


LOCKED_OUT = """
import numba.core.caching as caching
for each in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    each.from_function = classmethod(lambda *given: None)
"""


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
