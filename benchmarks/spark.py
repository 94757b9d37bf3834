"""Matching inside Spark: beside a stage that passes rows on, beside joins in Spark SQL, on 1 and 2 cores.

Everything that is compared takes turns in one session; each number of cores has its own session. With --save the
result goes to benchmarks/results/spark.json, which docs/benchmarks.md and docs/spark.md quote; --quick measures a
hundredth of everything; --only NAME measures one part.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harken import Engine
from harken.spark import Index, build_index, match
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import to_json
from harken_lab.harness.rounds import interleaved
from harken_lab.workloads import generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).parent / "results" / "spark.json"
ROUNDS = 5
CHUNK = 1 << 18
"""Most rows in a batch of the stage that passes rows on."""
JOIN_SECONDS = 120
"""Most seconds for the join that counts predicates."""
NUMBERS = ("price", "open", "high", "volume")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything, to check that it runs")
    parser.add_argument(
        "--only", choices=sorted(PARTS), action="append", help="measure these parts; --save keeps the others"
    )
    parser.add_argument("--child", nargs=2, metavar=("PART", "CORES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    scale = 100 if arguments.quick else 1
    if arguments.child:
        print(json.dumps(_in_session(arguments.child[0], int(arguments.child[1]), scale)))
        return
    figures: dict[str, Any] = {}
    for part in arguments.only or PARTS:
        for cores in (2, 1) if part in ALSO_ON_ONE_CORE else (2,):
            print(f"{part}, {cores} cores …", file=sys.stderr, flush=True)
            figures.setdefault(part, {})[f"{cores} cores"] = _child(part, cores, arguments.quick)
    result = {"settings": {"rounds": ROUNDS, "scale": scale}, "environment": environment("pyspark"), "found": figures}
    print(json.dumps(figures, indent=2))
    if arguments.save:
        if arguments.only and RESULTS.exists():
            result["found"] = json.loads(RESULTS.read_text())["found"] | figures
        RESULTS.write_text(to_json(result), encoding="utf-8")


def _child(part: str, cores: int, quick: bool) -> dict[str, Any]:
    """Measure a part in a fresh process, with its own Spark."""
    command = [sys.executable, __file__, "--child", part, str(cores), *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def _in_session(part: str, cores: int, scale: int) -> dict[str, Any]:
    from harken.spark.session import local_session

    spark = local_session("harken-bench", cores=cores, quick=False, **{"spark.driver.memory": "4g"})
    with tempfile.TemporaryDirectory(prefix="harken-bench-") as folder:
        return PARTS[part](spark, Path(folder), scale)


# Matching beside passing on


def stock_pairs(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    return _beside_passing_on(spark, folder, "stock", 1_000_000 // scale, 1_000_000 // scale, "pairs")


def le_subscribe_pairs(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    return _beside_passing_on(spark, folder, "le-subscribe", 1_000_000 // scale, 10_000 // scale, "pairs")


def le_subscribe_lists(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    return _beside_passing_on(spark, folder, "le-subscribe", 1_000_000 // scale, 10_000 // scale, "lists")


def _beside_passing_on(
    spark: SparkSession, folder: Path, name: str, subscriptions: int, count: int, output: str
) -> dict[str, Any]:
    events, index, _ = _prepared(spark, folder, name, subscriptions, count)
    matched = match(events, index, output=output)
    total = match(events, index, output="counts").groupBy().sum("matches").collect()[0][0]
    passed = _needed(events, index).mapInArrow(passing_on(output, total / count), matched.schema)
    timings = interleaved({"match": lambda: _run(matched), "pass on": lambda: _run(passed)}, ROUNDS)
    return {
        "subscriptions": subscriptions,
        "events": count,
        "matches": total,
        "events_per_second": timings["match"].rates(count),
        "pairs_per_second": timings["match"].rates(total),
        "passed_on_per_second": timings["pass on"].rates(count),
        "share_of_passing_on": _ratios(timings["pass on"].times(timings["match"])),
    }


def passing_on(output: str, per_event: float) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage that reads events and returns as many rows as matching does, from arrays made in advance."""

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids = pa.array(np.arange(CHUNK))
        names = pa.array([f"s{place * 37 % 1_000_000}" for place in range(CHUNK)])
        per_list = max(1, round(per_event))
        lists_of = max(1, CHUNK // per_list)
        ends = (np.arange(lists_of + 1) * per_list).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(ends), names) if output == "lists" else None
        pending = 0.0
        for batch in batches:
            pending += batch.num_rows * (per_event if lists is None else 1)
            while pending >= 1:
                size = int(min(pending, CHUNK if lists is None else lists_of))
                pending -= size
                second = names if lists is None else lists
                column = "subscription_id" if lists is None else "subscription_ids"
                yield pa.RecordBatch.from_arrays([ids.slice(0, size), second.slice(0, size)], ["event_id", column])

    return pass_on


# Matching beside Spark SQL


def sql_join(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    """The best join that we know: a hash join by symbol with broadcast subscriptions, the rest as a filter."""
    figures = {}
    for size in (100_000 // scale, 1_000_000 // scale):
        count = 1_000_000 // scale
        place = folder / str(size)
        events, index, workload = _prepared(spark, place, "stock", size, count)
        matched = match(events, index)
        joined = _joined(events, _bounds(spark, workload, place))
        assert matched.count() == joined.count(), "the join has other matches"
        rounds = 3 if size > 200_000 else ROUNDS
        timings = interleaved({"match": lambda m=matched: _run(m), "join": lambda j=joined: _run(j)}, rounds)
        figures[str(size)] = {
            "events": count,
            "match_events_per_second": timings["match"].rates(count),
            "join_events_per_second": timings["join"].rates(count),
            "times_the_join": _ratios(timings["join"].times(timings["match"])),
        }
    return figures


def _bounds(spark: SparkSession, workload: Any, folder: Path) -> DataFrame:
    """The subscriptions of the stock workload as bounds: a symbol, and two bounds for each number."""
    size = workload.subscriptions
    columns: dict[str, Any] = {"id": [f"s{place}" for place in range(size)]}
    for each in workload.conditions:
        values = np.asarray(each.constants, object)[each.operands]
        if each.attribute == "symbol":
            columns["the_symbol"] = values.tolist()
            continue
        is_less = each.operators == workload_less()
        columns[f"{each.attribute}_above"] = np.where(is_less, -1, values).astype(np.int64)
        columns[f"{each.attribute}_below"] = np.where(is_less, values, 1 << 40).astype(np.int64)
    pq.write_table(pa.table(columns), folder / "bounds.parquet")
    return spark.read.parquet(str(folder / "bounds.parquet"))


def workload_less() -> int:
    from harken_lab.workloads.conditions import LESS

    return LESS


def _joined(events: DataFrame, bounds: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    condition = f.col("symbol") == f.col("the_symbol")
    for name in NUMBERS:
        condition &= (f.col(name) > f.col(f"{name}_above")) & (f.col(name) < f.col(f"{name}_below"))
    return events.join(f.broadcast(bounds), condition).select("event_id", f.col("id").alias("subscription_id"))


def counting_join(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    """The counting algorithm in SQL: predicates joined with event values, counted by event and subscription."""
    from pyspark.sql import functions as f

    size = 1_000_000 // scale
    events, index, workload = _prepared(spark, folder, "stock", size, 100_000 // scale)
    _write_predicates(workload, folder)
    predicates = spark.read.parquet(str(folder / "predicates.parquet")).cache()
    needed = predicates.groupBy("subscription_id").agg(f.count("*").alias("needed")).cache()
    predicates.count()
    needed.count()
    done, started = 0, perf_counter()
    seconds: list[float] = []
    while done < 64 and (not seconds or perf_counter() - started + max(seconds) < JOIN_SECONDS):
        began = perf_counter()
        one = events.where((f.col("event_id") >= done) & (f.col("event_id") < done + 1))
        counted = _counted(one, predicates, needed).count()
        seconds.append(perf_counter() - began)
        expected = match(one, index).count()
        assert counted == expected, f"event {done}: {counted} by counting, {expected} by Harken"
        done += 1
    matched = match(events, index)
    timing = interleaved({"match": lambda: _run(matched)}, 3)["match"]
    count = events.count()
    per_second = done / sum(seconds)
    return {
        "subscriptions": size,
        "events_joined": done,
        "join_events_per_second": round(per_second, 4),
        "match_events_per_second": timing.rates(count),
        "times_the_join": round(count / timing.median / per_second, 1),
    }


def _write_predicates(workload: Any, folder: Path) -> None:
    tables = []
    for each in workload.conditions:
        is_text = each.attribute == "symbol"
        values = np.asarray(each.constants, object)[each.operands]
        tables.append(
            pa.table(
                {
                    "subscription_id": pa.array(each.rows, pa.int32()),
                    "attribute": [each.attribute] * len(each.rows),
                    "less": pa.array(each.operators == workload_less()),
                    "text": pa.array(values.tolist() if is_text else [None] * len(values), pa.string()),
                    "number": pa.array([None] * len(values) if is_text else values.tolist(), pa.int64()),
                }
            )
        )
    pq.write_table(pa.concat_tables(tables), folder / "predicates.parquet")


def _counted(events: DataFrame, predicates: DataFrame, needed: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    pairs = [f.struct(f.lit("symbol").alias("a"), f.col("symbol").alias("t"), f.lit(None).cast("long").alias("v"))]
    pairs += [
        f.struct(f.lit(name).alias("a"), f.lit(None).cast("string").alias("t"), f.col(name).cast("long").alias("v"))
        for name in NUMBERS
    ]
    values = events.select("event_id", f.explode(f.array(*pairs)).alias("p")).select("event_id", "p.*")
    holds = (f.col("text") == f.col("t")) | f.when(f.col("less"), f.col("v") < f.col("number")).otherwise(
        f.col("v") > f.col("number")
    )
    true = predicates.join(f.broadcast(values), (f.col("attribute") == f.col("a")) & holds)
    counted = true.groupBy("event_id", "subscription_id").agg(f.count("*").alias("true_count"))
    return counted.join(needed, "subscription_id").where("true_count = needed").select("event_id", "subscription_id")


# Memory, building, streams


def worker_memory(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    """The private memory of workers after matching with an empty index, then with one of a million."""
    events, index, _ = _prepared(spark, folder, "stock", 1_000_000 // scale, 200_000 // scale)
    Index(folder / "empty").publish(Engine())
    largest = {}
    for name, place in (("empty", folder / "empty"), ("full", index)):
        rows = _needed(events, index).mapInArrow(_weighed(place), "process long, bytes long").collect()
        by_worker = {row["process"]: row["bytes"] for row in rows}
        largest[name] = max(by_worker.values())
    megabytes = {f"{name}_mb": round(each / 1e6, 1) for name, each in largest.items()}
    return {**megabytes, "above_empty_mb": round((largest["full"] - largest["empty"]) / 1e6, 1)}


def _weighed(index: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that matches and reports the private memory of its process."""

    def weigh(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from harken.spark.local import opened

        engine = opened(Index(index).current())
        for batch in batches:
            engine.match_batch(batch).arrow_names(plain=True)
        private = 0
        for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                private = int(line.split()[1]) * 1024
        yield pa.RecordBatch.from_pydict({"process": [os.getpid()], "bytes": [private]})

    return weigh


def build(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    """The time from texts to a published version."""
    size = 1_000_000 // scale
    workload = generate("stock", size, 0)
    ids = pa.array([f"s{place}" for place in range(size)])
    pq.write_table(pa.table({"id": ids, "where": workload.texts()}), folder / "texts.parquet", row_group_size=size // 8)
    texts = spark.read.parquet(str(folder / "texts.parquet")).repartition(8).cache()
    texts.count()
    seconds = []
    for place in range(3):
        started = perf_counter()
        assert build_index(texts, folder / f"index-{place}").subscriptions == size
        seconds.append(perf_counter() - started)
    return {"subscriptions": size, "seconds": _ratios(seconds[1:])}


def stream(spark: SparkSession, folder: Path, scale: int) -> dict[str, Any]:
    """The time of micro-batches of one file with a thousand events each."""
    files, size = 24, 1_000
    _, index, _ = _prepared(spark, folder, "stock", 1_000_000 // scale, 10)
    workload = generate("stock", 0, files * size, 5)
    (folder / "files").mkdir()
    for place in range(files):
        part = workload.events.slice(place * size, size).append_column("event_id", pa.array(range(size)))
        pq.write_table(part, folder / "files" / f"{place:04d}.parquet")
    kinds = spark.read.parquet(str(folder / "files")).schema
    batches: dict[str, list[float]] = {"match": [], "pass on": []}
    for turn in range(2):
        for name in batches:
            events = spark.readStream.schema(kinds).option("maxFilesPerTrigger", 1).parquet(str(folder / "files"))
            frame = match(events, index)
            if name == "pass on":
                frame = _needed(events, index).mapInArrow(passing_on("pairs", 2.05), frame.schema)
            query = frame.writeStream.format("noop").trigger(availableNow=True)
            started = query.option("checkpointLocation", str(folder / f"{name}-{turn}")).start()
            started.awaitTermination()
            times = [each["durationMs"]["triggerExecution"] for each in started.recentProgress if each["numInputRows"]]
            batches[name] += times[4:]
    return {
        "batches": len(batches["match"]),
        "match_ms": _ratios(batches["match"]),
        "pass_on_ms": _ratios(batches["pass on"]),
        "times_passing_on": round(median(batches["match"]) / median(batches["pass on"]), 3),
    }


# Shared


def _prepared(
    spark: SparkSession, folder: Path, name: str, subscriptions: int, count: int
) -> tuple[DataFrame, Path, Any]:
    """Events as Parquet, an index planned by other events of the workload, and the workload."""
    folder.mkdir(exist_ok=True)
    workload = generate(name, subscriptions, count)
    table = workload.events.append_column("event_id", pa.array(np.arange(count)))
    pq.write_table(table, folder / "events.parquet", row_group_size=max(1, count // 8))
    engine = Engine()
    engine.subscribe_many(workload.table())
    engine.learn(generate(name, 0, 2_000, 99).events)
    Index(folder / "index").publish(engine)
    return spark.read.parquet(str(folder / "events.parquet")), folder / "index", workload


def _needed(events: DataFrame, index: Path) -> DataFrame:
    """The columns that `match` sends to Python."""
    attributes = Index(index).current().attributes or ()
    return events.select(*[name for name in events.columns if name in attributes or name == "event_id"])


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _ratios(values: Iterable[float]) -> dict[str, float]:
    several = list(values)
    return {"median": round(median(several), 3), "least": round(min(several), 3), "most": round(max(several), 3)}


PARTS: dict[str, Callable[[Any, Path, int], dict[str, Any]]] = {
    "stock_pairs": stock_pairs,
    "le_subscribe_pairs": le_subscribe_pairs,
    "le_subscribe_lists": le_subscribe_lists,
    "sql_join": sql_join,
    "counting_join": counting_join,
    "worker_memory": worker_memory,
    "build": build,
    "stream": stream,
}
ALSO_ON_ONE_CORE = {"stock_pairs", "le_subscribe_pairs", "le_subscribe_lists", "build"}

if __name__ == "__main__":
    main()
