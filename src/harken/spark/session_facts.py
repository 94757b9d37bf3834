"""What is to be known of the session that one is given."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from harken.spark.leases import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_A_SERVER = 16
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def is_local(spark: SparkSession) -> bool:
    """Whether the workers run on this machine, as children of this process's Spark."""
    if is_connect(spark):
        return False
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a server of Spark's instead of having Spark in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def running_batch(spark: SparkSession) -> Batch | None:
    """The micro-batch in whose `foreachBatch` this is called; None elsewhere, or where nobody can tell."""
    if is_connect(spark):
        return None
    from py4j.clientserver import ClientServer  # type: ignore[import-untyped]

    context = spark.sparkContext
    if not isinstance(context._gateway, ClientServer):  # then a thread of Java's may serve several of Python's
        return None
    query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    return None if query is None or batch is None else Batch(query, batch)


def session_name(spark: SparkSession) -> str:
    """What tells a session from others, past and present."""
    return str(getattr(spark, "session_id", "")) if is_connect(spark) else str(spark.sparkContext.applicationId)


def parallelism(spark: SparkSession) -> int:
    """The tasks that run at a time, about; a server of Spark's does not tell."""
    return _OF_A_SERVER if is_connect(spark) else spark.sparkContext.defaultParallelism


def machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def scratch() -> str:
    """A folder that lives as long as this process."""
    folder = tempfile.mkdtemp(prefix="harken-index-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
