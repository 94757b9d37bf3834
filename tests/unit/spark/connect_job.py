"""A job of a client of Spark Connect, with a server of its own on this machine. Prints its results as JSON.

python connect_job.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path


def main(folder: Path) -> None:
    os.environ["HARKEN_CACHE"] = str(folder / "cache")
    from harken.spark.java import find_java

    os.environ.update(JAVA_HOME=str(find_java().home), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    from harken import load_schema
    from harken.errors import HarkenError
    from harken.spark import backtest, build_index, check, match, profile, validate

    # A server takes such settings from its own start, which is that of this process.
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rows = [("e1", "Toy", 3.5), ("e2", "Toy", 9.0), ("e3", "Book", 1.0)]
    events = spark.createDataFrame(rows, "id string, category string, price double")
    texts = {"alice": "category = 'Toy' AND price < 5", "bob": "price < 5"}
    rules = spark.createDataFrame(list(texts.items()), "id string, where string")
    results: dict[str, object] = {"session": type(spark).__module__}
    for strategy in ("replicate", "shard"):
        matches = match(events, texts, strategy=strategy, shards=2 if strategy == "shard" else None).collect()
        results[strategy] = sorted([row["event_id"], row["subscription_id"]] for row in matches)
    results["again"] = len(match(events, texts).collect())
    results["frame"] = match(events, rules, output="counts").toPandas()["matches"].tolist()
    results["built"] = build_index(rules, folder / "index").subscriptions
    results["index"] = match(events, folder / "index").count()
    results["checked"] = check(rules).valid.count()
    (folder / "schema.toml").write_text('[attributes]\nprice = "float"\ncategory = "string"\n')
    results["validated"] = validate(events, load_schema(folder / "schema.toml"), event_id="id").valid.count()
    results["profiled"] = profile(events).events
    with backtest(events, texts) as test:
        results["backtest"] = [list(row) for row in test.counts.collect()]
    (folder / "events.jsonl").write_text('{"id": "e1", "price": 1}\n')
    (folder / "rules.jsonl").write_text('{"id": "a", "where": "price < 5"}\n')
    (folder / "pipeline.toml").write_text(
        '[source]\nformat = "json"\npath = "events.jsonl"\nevent_id = "id"\n'
        '[subscriptions]\npath = "rules.jsonl"\n[[sink]]\nformat = "console"\n'
    )
    try:
        from harken.pipeline.config import load_config
        from harken.pipeline.run import run

        run(load_config(folder / "pipeline.toml"))
    except HarkenError as error:
        results["pipeline"] = str(error)
    print(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
