"""What `harken.spark` does, on the installed version of Spark: prints its results as JSON.

python versions_job.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError
from harken.pipeline.config import load_config
from harken.pipeline.run import run
from harken.schema import parse_schema
from harken.spark import Index, backtest, build_index, check, match, profile, validate
from harken.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULES = {
    "cheap": "price < 3",
    "third": "id = 3",
    "late": "at >= TIMESTAMP '2026-01-01T00:00:08Z'",
    "none": "price > 99",
}
PIPELINE = """\
[source]
format = "json"
path = "events"
event_id = "id"
columns = "id STRING, price DOUBLE"

[subscriptions]
path = "rules.jsonl"

[[sink]]
format = "json"
path = "out"
"""


def batch(spark: SparkSession) -> dict[str, Any]:
    events = some_events(spark)
    results: dict[str, Any] = {}
    for strategy in ("replicate", "shard"):
        pairs = match(events, RULES, strategy=strategy, columns=["held"]).collect()
        lists = match(events, RULES, strategy=strategy, output="lists").collect()
        counts = match(events, RULES, strategy=strategy, output="counts").collect()
        results[strategy] = {
            "pairs": sorted([row["event_id"], row["subscription_id"]] for row in pairs),
            "lists": sorted([row["event_id"], id] for row in lists for id in row["subscription_ids"]),
            "counts": sum(row["matches"] for row in counts),
        }
    with backtest(events, RULES, event_time="at") as test:
        results["backtest"] = [list(row) for row in test.counts.collect()]
        results["examples"] = test.examples.count()
        results["summary"] = str(test.summary()).splitlines()[-1]
    profiled = profile(events)
    results["profile"] = [profiled.events, profiled["price"].distinct, str(profiled["at"].high)]
    return results


def sorted_out(spark: SparkSession) -> dict[str, Any]:
    """Events and subscriptions, the good and the bad."""
    schema = parse_schema('[domains.size]\ntype = "enumerated"\nvalues = ["S", "L"]\n[attributes]\nsize = "size"\n')
    events = spark.createDataFrame([(1, "S"), (2, "XXL"), (None, "L")], "id long, size string")
    rejected = validate(events, schema, event_id="id").rejected.collect()
    texts = spark.createDataFrame([("a", "price < 5"), ("b", "price <")], "id string, where string")
    return {
        "validated": sorted(row["path"] for row in rejected),
        "checked": [row["id"] for row in check(texts).rejected.collect()],
    }


def streamed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A stream against an index that changes, batch by batch, and one that closes windows behind a match."""
    from pyspark.sql.functions import window

    (folder / "events").mkdir()
    for place in range(4):
        line = json.dumps({"id": place, "price": place, "at": f"2026-01-01T00:0{place}:00Z"})
        (folder / "events" / f"{place}.json").write_text(line)
    rules = spark.createDataFrame(list(RULES.items()), "id string, where string")
    build_index(rules, folder / "index")
    pairs: list[list[Any]] = []

    def work(events: DataFrame, batch: int) -> None:
        matches = match(events, folder / "index").collect()
        pairs.extend([row["event_id"], row["subscription_id"]] for row in matches)
        build_index(rules, folder / "index", keep=1)

    kinds = "id long, price long, at timestamp"
    events = spark.readStream.schema(kinds).option("maxFilesPerTrigger", 1).json(str(folder / "events"))
    events.writeStream.foreachBatch(work).trigger(availableNow=True).start().awaitTermination()

    once = events.withWatermark("at", "30 seconds").dropDuplicates(["id", "at"])
    matched = match(once, folder / "index", columns=["at"])
    counts = matched.groupBy(window("at", "1 minute"), "subscription_id").count()
    query = counts.writeStream.format("memory").queryName("counts").trigger(availableNow=True).start()
    query.awaitTermination()
    closed = spark.table("counts").where("subscription_id = 'cheap'").count()
    return {"stream": sorted(pairs), "versions": len(Index(folder / "index").versions()), "windows": closed}


def pipeline(folder: Path) -> str:
    """The result of a pipeline, or the reason why it does not run here."""
    (folder / "rules.jsonl").write_text('{"id": "cheap", "where": "price < 3"}\n')
    (folder / "pipeline.toml").write_text(PIPELINE)
    try:
        return f"{run(load_config(folder / 'pipeline.toml')).counts.notifications} notifications"
    except HarkenError as error:
        return error.message


def some_events(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr(
        "id", "id AS price", "map('k', id) AS held", "timestamp_seconds(1767225600 + id) AS at"
    )


def main(folder: Path) -> None:
    spark = local_session("harken-versions")
    results = {"spark": spark.version, **batch(spark), **sorted_out(spark), **streamed(spark, folder)}
    results["pipeline"] = pipeline(folder)
    print(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
