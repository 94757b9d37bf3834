"""A Spark session on this machine alone, for tests, demonstrations and small jobs.

It starts fast, says nothing unless something fails, and leaves nothing behind in the working folder.
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

# Spark reads this before it reads a log level, so it is what keeps the start quiet.
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
    # Spark 4.3 hands Arrow-backed batches to Python as they are; through rows, every source takes the same way.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The quick compiler and the simplest collector: a short job ends before better ones pay.
_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def local_session(name: str = "harken", cores: int = 1, quick: bool = True, **config: str) -> SparkSession:
    """A session with Harken's settings; `config` adds to them or overrides them, by Spark's own names.

    A `quick` one is soonest ready; one that is not is soonest done, with a job that takes minutes.

    A session that runs already in this process is returned instead, with what of `config` can still be changed.
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
    """PySpark prints a query's error, with all of Java's stack, and raises it as well. Raising is enough."""
    try:
        from pyspark.logger import PySparkLogger
    except ModuleNotFoundError:  # Spark 3.5 does not print it
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _places(folder: Path, quick: bool) -> dict[str, str]:
    """Everything that Spark, Hive, Derby and Java itself would put elsewhere goes into the folder."""
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
    """Stop Spark first: it deletes its own files, and complains about those that are gone."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    shutil.rmtree(folder, ignore_errors=True)
