"""Which Python Spark's workers run: by default, and if the user named one without Harken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "workers_job.py"
WITHOUT_OUR_PATH = """\
#!/bin/sh
PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -v '/src$' | paste -sd :)
export PYTHONPATH
exec {python} "$@"
"""


@pytest.fixture
def folder_of_another_python(tmp_path: Path) -> Path:
    """A folder whose `python3` has what this Python has, but for Harken: its environment reads no path files."""
    other = tmp_path / "other"
    venv.create(other, with_pip=False)
    (packages,) = other.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").write_text(WITHOUT_OUR_PATH.format(python=other / "bin" / "python"))
    (folder / "python3").chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.processes
def test_a_script_whose_environment_is_not_activated(folder_of_another_python: Path) -> None:
    named = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in named}
    environment["PATH"] = f"{folder_of_another_python}:{environment['PATH']}"
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    job = [sys.executable, str(JOB)]
    run = subprocess.run(job, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert results["matches"] == 3
    assert results["python"] == "python3", "the user's own functions run where they did"
    (line,) = {each.strip() for each in results["error"].splitlines() if "PYSPARK_PYTHON" in each}
    assert "which has no module 'harken'" in line
    assert sys.executable in line
