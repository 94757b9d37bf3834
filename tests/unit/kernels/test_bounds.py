"""The kernels' tests with bounds checks: without these, an index beyond an array reads on in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Whatever calls kernels with arrays of its own or with random subscriptions and events.
CHECKED = [
    *("tests/unit/kernels", "tests/unit/codes", "tests/unit/matchers", "tests/conformance/test_matchers.py"),
    *("tests/properties/test_columnar.py", "tests/properties/test_engine_states.py", "tests/properties/test_tables.py"),
    *("tests/properties/test_xpath_matcher.py", "tests/properties/test_operators.py", "lab/tests/papers"),
    "lab/tests/properties/test_papers.py",
]


@pytest.mark.slow
def test_no_kernel_reads_beyond_an_array(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HARKEN_", "PYTEST_"))}
    environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-m", "pytest", "-q", "--maxfail=5", "-p", "no:cacheprovider"]
    # What counts compilations or reads the kernels of the set-up is about the cache, not about arrays.
    command += ["-k", "not first_use and not compile", f"--basetemp={tmp_path / 'tests'}", *CHECKED]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
