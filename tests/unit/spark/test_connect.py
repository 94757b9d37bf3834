"""Through Spark Connect: what works there works as elsewhere, and what does not is refused with a clear error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "connect_job.py"


@pytest.mark.processes
def test_a_client_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'harken[connect]'")
    job = [sys.executable, str(JOB), str(tmp_path)]
    run = subprocess.run(job, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    told = json.loads(run.stdout.strip().splitlines()[-1])
    assert "connect" in told["session"]
    pairs = [["e1", "alice"], ["e1", "bob"], ["e3", "bob"]]
    assert told["replicate"] == told["shard"] == pairs
    assert told["again"] == told["index"] == 3
    assert told["frame"] == [2, 0, 1]
    assert told["built"] == told["checked"] == 2
    assert told["validated"] == told["profiled"] == 3
    assert told["backtest"] == [["bob", 2], ["alice", 1]]
    assert "Spark Connect" in told["pipeline"]
