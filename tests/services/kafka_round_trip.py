"""Writes a topic with Spark, reads it as a table and copies it as a stream. Run by test_kafka.py."""

from __future__ import annotations

import json
import sys

from harken.spark.session import local_session


def main(address: str, written: str, copied: str, checkpoint: str) -> None:
    spark = local_session("kafka-round-trip")
    options = {"kafka.bootstrap.servers": address}

    squares = "CAST(nullif(id, 0) AS STRING) AS key", "CAST(id * id AS STRING) AS value"
    spark.range(100).selectExpr(*squares).write.format("kafka").options(**options, topic=written).save()

    table = spark.read.format("kafka").options(**options, subscribe=written).load()
    rows = table.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    print(json.dumps([[row["key"], row["value"]] for row in rows]))

    stream = spark.readStream.format("kafka").options(**options, subscribe=written, startingOffsets="earliest").load()
    sink = stream.select("key", "value").writeStream.format("kafka").options(**options, topic=copied)
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
