"""Through Spark Connect: what works there works as elsewhere, and what does not is rejected with a clear error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "connect_job.py"


@pytest.mark.slow
@pytest.mark.processes
def test_a_client_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'harken[connect]'")
    job = [sys.executable, str(JOB), str(tmp_path)]
    run = subprocess.run(job, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert "connect" in results["session"]
    pairs = [["e1", "alice"], ["e1", "bob"], ["e3", "bob"]]
    assert results["replicate"] == results["shard"] == pairs
    assert results["again"] == results["index"] == 3
    assert results["frame"] == [2, 0, 1]
    assert results["built"] == results["checked"] == 2
    assert results["validated"] == results["profiled"] == 3
    assert results["backtest"] == [["bob", 2], ["alice", 1]]
    assert "Spark Connect" in results["pipeline"]
