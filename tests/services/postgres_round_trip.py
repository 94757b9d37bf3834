"""Reads one table of PostgreSQL with Spark and appends to another. Run by test_postgres.py."""

from __future__ import annotations

import json
import sys

from harken.pipeline.connectors import driver_for
from harken.spark.session import local_session


def main(url: str, user: str, password: str, source: str, target: str) -> None:
    spark = local_session("postgres-round-trip")
    options = {"url": url, "user": user, "password": password, "driver": driver_for(url)}

    read = spark.read.format("jdbc").options(**options, dbtable=source).load()
    print(json.dumps(sorted([row["id"], row["price"]] for row in read.collect())))

    doubled = read.selectExpr("id", "price * 2 AS price")
    doubled.write.format("jdbc").options(**options, dbtable=target).mode("append").save()


if __name__ == "__main__":
    main(*sys.argv[1:])
