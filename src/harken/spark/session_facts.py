"""Facts about a Spark session: where it runs, its size, and its running micro-batch."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from harken.spark.stream_leases import MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_PARALLELISM = 16
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def is_local(spark: SparkSession) -> bool:
    """Whether the workers run on this machine, as children of this process."""
    if is_connect(spark):
        return False
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect session, with Spark in another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def running_batch(spark: SparkSession) -> MicroBatch | None:
    """The micro-batch whose `foreachBatch` calls this function; None outside of one, or if Spark hides it."""
    if is_connect(spark):
        return None
    from py4j.clientserver import ClientServer  # type: ignore[import-untyped]

    context = spark.sparkContext
    if not isinstance(context._gateway, ClientServer):  # then Python threads may share a Java thread's properties
        return None
    query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    return None if query is None or batch is None else MicroBatch(query, batch)


def session_name(spark: SparkSession) -> str:
    """A name that no other session has, past or present."""
    return str(getattr(spark, "session_id", "")) if is_connect(spark) else str(spark.sparkContext.applicationId)


def parallelism(spark: SparkSession) -> int:
    """About how many tasks run at the same time: a guess for Spark Connect, which hides the number."""
    return _CONNECT_PARALLELISM if is_connect(spark) else spark.sparkContext.defaultParallelism


def machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def scratch() -> str:
    """A temporary folder that is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="harken-index-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
