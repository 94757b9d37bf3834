"""The Spark session of a pipeline: the active one, the one that spark-submit set up, or a new local one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError
from harken.pipeline.connectors import connector_config
from harken.pipeline.stopping import children_ignore_sigterm
from harken.spark.java import find_java
from harken.spark.session import local_session
from harken.spark.session_facts import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config

_OLDEST_SPARK = 4
# Settings on which the semantics of subscriptions depend.
_SEMANTICS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def pipeline_session(config: Config) -> Iterator[SparkSession]:
    """A session for a configuration. At the end it is stopped, unless it was active before."""
    import pyspark
    from pyspark.sql import SparkSession

    if int(pyspark.__version__.partition(".")[0]) < _OLDEST_SPARK:
        hint = "on Spark 3.5, call harken.spark.match inside foreachBatch"
        raise HarkenError(f"a pipeline needs Spark 4.0 or later, and this is {pyspark.__version__}", hint=hint)
    active = SparkSession.getActiveSession()
    if active is not None and is_connect(active):
        hint = "run it with `harken run` or spark-submit, or call harken.spark.match inside foreachBatch"
        raise HarkenError("a pipeline cannot run in a session of Spark Connect", hint=hint)
    if active is None:
        with children_ignore_sigterm():
            session = _started(config)
    else:
        session = active
    # To restore the settings of an active session.
    before = {name: session.conf.get(name, None) for name in _SEMANTICS}
    for name, value in _SEMANTICS.items():
        session.conf.set(name, value)
    try:
        yield session
    finally:
        if active is None:
            session.stop()
        else:
            for name, previous in before.items():
                session.conf.unset(name) if previous is None else session.conf.set(name, previous)


def formats_of(config: Config) -> list[str]:
    """The formats that a pipeline reads and writes, with the JDBC address in place of `jdbc`."""
    return [config.source.format, *(sink.url or sink.format for sink in config.sinks)]


def _started(config: Config) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = dict(config.spark.config)
    settings |= connector_config(formats_of(config), settings)
    master = config.spark.master
    if "PYSPARK_GATEWAY_PORT" in os.environ or (master is not None and not master.startswith("local")):
        os.environ.setdefault("JAVA_HOME", str(find_java().home))
        builder = SparkSession.builder.appName(config.name)
        builder = builder if master is None else builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    usual: dict[str, Any] = {
        "spark.master": master or "local[*]",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.ui.enabled": "true",
    }
    session = local_session(config.name, quick=False, **{**usual, **settings})
    # Failures are raised and shown in one line; Java's stack traces would hide that line.
    session.sparkContext.setLogLevel("FATAL")
    return session
