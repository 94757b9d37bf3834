"""What Spark has to be given before it reads and writes Kafka, or a database over JDBC.

Kafka's connector is published with each Spark, and is built on parts of Spark that change without notice: Spark 4.3
writes and reads a topic with the connector of 4.0, and fails as soon as it is a stream. So the one of the running
version is asked for, and no other. A user who knows better names one in `spark.jars` or `spark.jars.packages`.

`connector_config` fetches the jars before Spark starts and hands them over as `spark.jars`. So the mirrors of Maven's
settings.xml count (harken.spark.jars), a second start needs no network, and what is missing is told in a line; of
`spark.jars.packages`, Spark's own way, nothing of that is true. Where the user gave Spark settings for Ivy
(`spark.jars.ivySettings`), jars come by these: Spark is told the packages, and fetches them itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from harken.spark.jars import resolve_jars, spark_jars

POSTGRESQL_DRIVER_VERSION = "42.7.14"

# Where spark-submit started Spark, or where it runs on a Connect server, whoever started it gave it its jars.
_STARTED_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")

# By what a JDBC address begins with. Spark finds a driver among its own jars alone, unless it is told the class.
_JDBC_DRIVERS = {"jdbc:postgresql": "org.postgresql.Driver"}


def packages_for(formats: Iterable[str]) -> list[str]:
    """The Maven packages that these formats need, for the PySpark that is installed.

    A format is a name that Spark knows it by ("kafka", "parquet"), or a JDBC address or its beginning
    ("jdbc:postgresql"). What is not listed here is built in, or the user brings it along.
    """
    needed = {_package(kind) for kind in map(_kind, formats)}
    return sorted(package for package in needed if package is not None)


def driver_for(url: str) -> str | None:
    """The class of the JDBC driver for an address, to be given to Spark as the option `driver`; None if not known."""
    return _JDBC_DRIVERS.get(_kind(url))


def connector_config(formats: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings that let a session which is about to start read and write these formats.

    `given` are the user's own settings for the session; the result adds to them and takes nothing away. A connector
    that is there already, among these or among Spark's jars, is not fetched. Raises HarkenError if one cannot be had.
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
    """The jars of these packages, and of all that they need but for what Spark has itself."""
    brought = {_artifact(name) for name in _spark_jar_names()}
    return [jar for jar in resolve_jars(packages) if _artifact(jar.name) not in brought]


def _kind(format_name: str) -> str:
    """`jdbc:postgresql` of any address of such a database; other formats are what they are called."""
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
    """What spark-defaults.conf says. Spark reads it last, so that a setting made here would hide the one there."""
    folder = os.environ.get("SPARK_CONF_DIR") or spark_jars().parent / "conf"
    file = Path(folder, "spark-defaults.conf")
    if not file.is_file():
        return {}
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
