"""A job on a cluster of two executors: one of them is killed while it works. Prints its results as JSON.

python cluster_job.py FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def deadly(marker: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes events on; the first time that it sees a certain one, it kills the executor that it works for."""

    def kill_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 700 in batch.column("n").to_pylist() and not marker.exists():
                marker.write_text(str(os.getpid()))
                executor = parent_of(parent_of(os.getpid()))  # of the daemon that forked this worker
                os.kill(executor, signal.SIGKILL)
            yield batch

    return kill_once


def main(folder: Path) -> None:
    os.environ["HARKEN_CACHE"] = str(folder / "cache")
    import pyspark
    from pyspark.sql import SparkSession

    from harken import Engine
    from harken.spark import match
    from harken.spark.java import find_java
    from harken_lab.workloads import generate

    os.environ.update(
        JAVA_HOME=str(find_java().home),
        SPARK_HOME=os.path.dirname(pyspark.__file__),
        SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_PYTHON=sys.executable,
    )
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.HARKEN_CACHE", str(folder / "cache"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    workload = generate("mixed", 2_000, 1_000)
    engine = Engine()
    engine.subscribe_many(workload.table())
    expected = engine.match_batch(workload.events)
    events = spark.createDataFrame(workload.events.append_column("n", pa.array(range(1_000)))).repartition(8)
    alive = events.mapInArrow(deadly(folder / "killed"), events.schema)
    results = {}
    for strategy in ("replicate", "shard"):
        pairs = match(alive, engine, event_id="n", strategy=strategy).collect()
        matches = sorted((row["event_id"], row["subscription_id"]) for row in pairs)
        results[strategy] = matches == sorted((place, id) for place, ids in enumerate(expected.ids) for id in ids)
    logs = {log.name: len(log.read_text().splitlines()) for log in (folder / "cache").rglob("*.lock")}
    results["killed"] = (folder / "killed").exists()
    results["copies"] = logs
    print(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
