"""The same job on every Spark that Harken supports: the one that is installed, and the last of those before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.pipeline.pipeline_session import pipeline_session
from unit.pipeline.project import Project

JOB = Path(__file__).parent / "versions_job.py"
INSTALLED = "installed"
PAIRS = [[0, "cheap"], [1, "cheap"], [2, "cheap"], [3, "third"], [8, "late"], [9, "late"]]


def installed_beside(version: str, folder: Path) -> Path:
    """A folder with this PySpark and what it alone needs, fetched once: all else is that of this environment."""
    place = folder / f"pyspark-{version}"
    if not place.exists():
        unfinished = Path(tempfile.mkdtemp(dir=folder))
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-build-isolation"]
        command = [*pip, "--target", str(unfinished), f"pyspark=={version}"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=1_200, check=False)
        if run.returncode:
            shutil.rmtree(unfinished)
            pytest.skip(f"PySpark {version} cannot be fetched: {run.stderr.strip()[-300:]}")
        unfinished.rename(place)
    return place


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", INSTALLED])
def test_everything_works_on(version: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    environment = dict(os.environ)
    if version != INSTALLED:
        assert pytestconfig.cache is not None
        place = installed_beside(version, pytestconfig.cache.mkdir("harken-pyspark"))
        environment["PYTHONPATH"] = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    job = [sys.executable, str(JOB), str(tmp_path)]
    run = subprocess.run(job, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert version in (results["spark"], INSTALLED)
    for strategy in ("replicate", "shard"):
        assert results[strategy] == {"pairs": PAIRS, "lists": PAIRS, "counts": len(PAIRS)}
    assert results["backtest"] == [["cheap", 3], ["late", 2], ["third", 1], ["none", 0]]
    assert results["examples"] == 6
    assert results["summary"] == "6 matches of 4 subscriptions, 1 without any"
    assert results["profile"] == [10, 10, "2026-01-01 00:00:09+00:00"]
    assert results["validated"] == ["id", "size"]
    assert results["checked"] == ["b"]
    assert results["stream"] == [
        [0, "cheap"],
        [1, "cheap"],
        [1, "late"],
        [2, "cheap"],
        [2, "late"],
        [3, "late"],
        [3, "third"],
    ]
    assert results["versions"] <= 3
    assert results["windows"] >= 1
    rejected = f"a pipeline needs Spark 4.0 or later, and this is {version}"
    assert results["pipeline"] == (rejected if version.startswith("3.") else "3 notifications")


def test_a_pipeline_says_which_spark_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    rejected = pytest.raises(HarkenError, match=r"a pipeline needs Spark 4\.0 or later, and this is 3\.5\.9")
    with rejected, pipeline_session(Project(tmp_path).config()):
        pass
