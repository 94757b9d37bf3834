"""On a cluster: the index is sent along and copied once per machine, and an executor may die."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "cluster_job.py"


@pytest.mark.slow
@pytest.mark.processes
def test_an_executor_dies_and_nothing_is_lost(tmp_path: Path) -> None:
    job = [sys.executable, str(JOB), str(tmp_path)]
    run = subprocess.run(job, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert results["killed"], "no executor was killed: this test shows nothing"
    assert results["replicate"], "the whole index has other matches than one process"
    assert results["shard"], "the shards have other matches than one process"
    # One of the index, and one of each of its two shards: whichever executors used them, one of them copied them.
    assert list(results["copies"].values()) == [1, 1, 1]
