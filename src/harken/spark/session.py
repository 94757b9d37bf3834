"""A Spark session on this machine alone, for tests, demonstrations and small jobs.

It starts fast, logs only failures, and leaves nothing behind in the working folder.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import require_extra
from harken.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark reads this before it sets a log level, so only this keeps the start quiet.
_LOG4J = """\
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

_CONFIG = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.worker.reuse": "true",
    "spark.sql.ansi.enabled": "true",  # the default since Spark 4.0
    "spark.sql.caseSensitive": "true",
    # Spark 4.3 can pass Arrow-backed batches to Python directly; without that, all sources take the same path.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The quick compiler and the simplest garbage collector: for a short job, better ones do not pay.
_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def local_session(name: str = "harken", cores: int = 1, quick: bool = True, **config: str) -> SparkSession:
    """A session with Harken's settings; `config` adds to them or overrides them, by Spark's own names.

    A `quick` session starts sooner; others run long jobs faster. If this process already has a session, it is returned
    instead, after setting what Spark can still change of `config`.
    """
    require_extra("spark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if SparkSession.getActiveSession() is None:
        _set_environment()
        _silence_repeats()
        folder = Path(tempfile.mkdtemp(prefix="harken-spark-"))
        atexit.register(_tidy, folder)
        builder = builder.master(f"local[{cores}]").appName(name)
        config = _CONFIG | _places(folder, quick) | config
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _set_environment() -> None:
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # A machine's own name does not always resolve.


def _silence_repeats() -> None:
    """Stop PySpark from printing a query's error, with Java's stack, before it raises it."""
    try:
        from pyspark.logger import PySparkLogger
    except ModuleNotFoundError:  # Spark 3.5 does not print it
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _places(folder: Path, quick: bool) -> dict[str, str]:
    """Settings that put all files of Spark, Hive, Derby and Java into the folder."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(_LOG4J)
    properties = {
        "derby.system.home": folder,
        "java.io.tmpdir": folder,
        "log4j2.configurationFile": log4j.as_uri(),
    }
    options = [*(_JAVA_OPTIONS if quick else ()), *(f'-D{key}="{value}"' for key, value in properties.items())]
    return {
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def _tidy(folder: Path) -> None:
    """Stop Spark and remove the folder. In the other order, Spark logs errors about missing files."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    shutil.rmtree(folder, ignore_errors=True)
