"""A plain script with a Spark of its own: it matches, and then names a Python without Harken for the workers.

python workers_job.py
"""

from __future__ import annotations

import json
import os


def main() -> None:
    from pyspark.sql import SparkSession

    from harken.spark import match
    from harken.spark.java import find_java

    os.environ["JAVA_HOME"] = str(find_java().home)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    events = spark.range(10).selectExpr("id", "id AS price")
    results: dict[str, object] = {"matches": match(events, {"cheap": "price < 3"}).count()}
    results["python"] = spark.sparkContext.pythonExec
    os.environ["PYSPARK_PYTHON"] = "python3"
    try:
        match(events, {"cheap": "price < 3"}).count()
    except Exception as error:
        results["error"] = str(error)
    print(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main()
