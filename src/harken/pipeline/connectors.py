"""The connectors that Spark needs to read and write Kafka, or a database over JDBC.

Kafka's connector is released with each Spark and uses internals that change without notice: with the connector of 4.0,
Spark 4.3 reads and writes a topic in batch but fails in a stream. So the connector of the running version is used. A
user who needs another names it in `spark.jars` or `spark.jars.packages`.

`connector_config` fetches the jars before Spark starts and passes them as `spark.jars`. This way the mirrors of Maven's
settings.xml apply (harken.pipeline.jars), a second start needs no network, and a missing jar is one line of error; with
`spark.jars.packages`, Spark's own way, none of that holds. If the user has settings for Ivy
(`spark.jars.ivySettings`), Spark gets the packages' names and fetches them itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from harken.pipeline.jars import resolve_jars, spark_jars

POSTGRESQL_DRIVER_VERSION = "42.7.14"

# Set if spark-submit or a Connect server started Spark: then it has its jars already.
_STARTED_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")

# By the beginning of a JDBC address. Without the class, Spark only finds drivers among its own jars.
_JDBC_DRIVERS = {"jdbc:postgresql": "org.postgresql.Driver"}


def packages_for(formats: Iterable[str]) -> list[str]:
    """The Maven packages that these formats need, for the PySpark that is installed.

    A format is a name that Spark knows it by ("kafka", "parquet"), or a JDBC address or its beginning
    ("jdbc:postgresql"). Other formats are built in, or the user supplies the jars.
    """
    needed = {_package(kind) for kind in map(_kind, formats)}
    return sorted(package for package in needed if package is not None)


def driver_for(url: str) -> str | None:
    """The class of the JDBC driver for an address, to be given to Spark as the option `driver`; None if not known."""
    return _JDBC_DRIVERS.get(_kind(url))


def connector_config(formats: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings with which a new session can read and write these formats.

    `given` are the user's own settings; the result only adds to them. A connector that is already there, in these or
    among Spark's jars, is not fetched. Raises HarkenError if one cannot be fetched.
    """
    settings = _spark_defaults() | dict(given or {})
    if "spark.remote" in settings or any(name in os.environ for name in _STARTED_ELSEWHERE):
        return {}
    missing = [package for package in packages_for(formats) if not _is_there(package, settings)]
    if not missing:
        return {}
    if "spark.jars.ivySettings" in settings:
        return {"spark.jars.packages": ",".join([*_listed(settings, "spark.jars.packages"), *missing])}
    return {"spark.jars": ",".join([*_listed(settings, "spark.jars"), *map(str, connector_jars(missing))])}


def connector_jars(packages: Iterable[str]) -> list[Path]:
    """The jars of these packages and their dependencies, without those that Spark has itself."""
    brought = {_artifact(name) for name in _spark_jar_names()}
    return [jar for jar in resolve_jars(packages) if _artifact(jar.name) not in brought]


def _kind(format_name: str) -> str:
    """The format's name; for an address of a database, its beginning, such as `jdbc:postgresql`."""
    return ":".join(format_name.split(":", 2)[:2]) if format_name.startswith("jdbc:") else format_name


def _package(kind: str) -> str | None:
    if kind == "kafka":
        import pyspark

        return f"org.apache.spark:spark-sql-kafka-0-10_{_scala_version()}:{pyspark.__version__}"
    if kind == "jdbc:postgresql":
        return f"org.postgresql:postgresql:{POSTGRESQL_DRIVER_VERSION}"
    return None


def _scala_version() -> str:
    """The Scala that Spark was built with: 2.13, and 2.12 where it is the usual Spark 3.5."""
    found = re.search(r"^scala-library-(\d+\.\d+)", "\n".join(_spark_jar_names()), re.MULTILINE)
    return found[1] if found else "2.13"


def _is_there(package: str, settings: Mapping[str, str]) -> bool:
    group, artifact, _ = package.split(":")
    if any(named.startswith(f"{group}:{artifact}:") for named in _listed(settings, "spark.jars.packages")):
        return True
    names = [PurePosixPath(jar).name for jar in _listed(settings, "spark.jars")] + _spark_jar_names()
    return any(re.match(rf"{re.escape(artifact)}-\d", name) for name in names)


def _spark_jar_names() -> list[str]:
    return [jar.name for jar in spark_jars().glob("*.jar")]


def _artifact(jar: str) -> str:
    """A jar's name without its version."""
    return re.sub(r"-\d[^-]*\.jar$", "", jar)


def _listed(settings: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in settings.get(key, "").split(",") if item.strip()]


def _spark_defaults() -> dict[str, str]:
    """The settings of spark-defaults.conf, which a setting of ours would override."""
    folder = os.environ.get("SPARK_CONF_DIR") or spark_jars().parent / "conf"
    file = Path(folder, "spark-defaults.conf")
    if not file.is_file():
        return {}
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
