"""Finds the connectors that Spark needs to read and write Kafka, or a database over JDBC.

Every release of Spark has its own Kafka connector, which uses internals that change without notice: with the connector
of 4.0, Spark 4.3 reads and writes a topic in batch but fails in a stream. So the connector of the running version is
used. Users who need another one name it in `spark.jars` or `spark.jars.packages`.

`connector_config` fetches the jars before Spark starts and passes them as `spark.jars`. This way the mirrors of Maven's
settings.xml apply (harken.pipeline.jars), a second start needs no network, and a missing jar is a one-line error.
`spark.jars.packages`, Spark's own way, has none of these advantages. If the user has settings for Ivy
(`spark.jars.ivySettings`), Spark gets the names of the packages and fetches them itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from harken.pipeline.jars import resolve_jars, spark_jars

POSTGRESQL_DRIVER_VERSION = "42.7.14"

# Set if spark-submit or a Connect server started Spark: that Spark has its jars already.
_STARTED_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")

# By the beginning of a JDBC address. Without the class name, Spark only finds drivers among its own jars.
_JDBC_DRIVERS = {"jdbc:postgresql": "org.postgresql.Driver"}


def packages_for(formats: Iterable[str]) -> list[str]:
    """The Maven packages that formats need, for the installed PySpark.

    A format is Spark's name for it ("kafka", "parquet"), a JDBC address or its beginning ("jdbc:postgresql"). A format
    without a package is built in, or the user supplies its jars.
    """
    needed = {_package(kind) for kind in map(_kind, formats)}
    return sorted(package for package in needed if package is not None)


def driver_for(url: str) -> str | None:
    """The class of the JDBC driver for an address, for Spark's option `driver`; None if it is not known."""
    return _JDBC_DRIVERS.get(_kind(url))


def connector_config(formats: Iterable[str], user_settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings that a new session needs, besides the user's, to read and write these formats.

    Connectors that the user's settings name, or that Spark has among its jars, are not fetched. Raises HarkenError if a
    connector cannot be fetched.
    """
    settings = _spark_defaults() | dict(user_settings or {})
    if "spark.remote" in settings or any(name in os.environ for name in _STARTED_ELSEWHERE):
        return {}
    missing = [package for package in packages_for(formats) if not _is_present(package, settings)]
    if not missing:
        return {}
    if "spark.jars.ivySettings" in settings:
        return {"spark.jars.packages": ",".join([*_listed(settings, "spark.jars.packages"), *missing])}
    return {"spark.jars": ",".join([*_listed(settings, "spark.jars"), *map(str, connector_jars(missing))])}


def connector_jars(packages: Iterable[str]) -> list[Path]:
    """The jars of these packages and their dependencies, without those among Spark's own jars."""
    spark_artifacts = {_artifact(name) for name in _spark_jar_names()}
    return [jar for jar in resolve_jars(packages) if _artifact(jar.name) not in spark_artifacts]


def _kind(format_name: str) -> str:
    """The name of a format; for a JDBC address its beginning, such as `jdbc:postgresql`."""
    return ":".join(format_name.split(":", 2)[:2]) if format_name.startswith("jdbc:") else format_name


def _package(kind: str) -> str | None:
    if kind == "kafka":
        import pyspark

        return f"org.apache.spark:spark-sql-kafka-0-10_{_scala_version()}:{pyspark.__version__}"
    if kind == "jdbc:postgresql":
        return f"org.postgresql:postgresql:{POSTGRESQL_DRIVER_VERSION}"
    return None


def _scala_version() -> str:
    """The Scala version that Spark was built with: 2.13, or 2.12 for most builds of Spark 3.5."""
    match = re.search(r"^scala-library-(\d+\.\d+)", "\n".join(_spark_jar_names()), re.MULTILINE)
    return match[1] if match else "2.13"


def _is_present(package: str, settings: Mapping[str, str]) -> bool:
    group, artifact, _ = package.split(":")
    if any(named.startswith(f"{group}:{artifact}:") for named in _listed(settings, "spark.jars.packages")):
        return True
    names = [PurePosixPath(jar).name for jar in _listed(settings, "spark.jars")] + _spark_jar_names()
    return any(re.match(rf"{re.escape(artifact)}-\d", name) for name in names)


def _spark_jar_names() -> list[str]:
    return [jar.name for jar in spark_jars().glob("*.jar")]


def _artifact(jar: str) -> str:
    """The name of a jar without its version."""
    return re.sub(r"-\d[^-]*\.jar$", "", jar)


def _listed(settings: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in settings.get(key, "").split(",") if item.strip()]


def _spark_defaults() -> dict[str, str]:
    """The settings in spark-defaults.conf. A setting that Harken passes to Spark would override them."""
    folder = os.environ.get("SPARK_CONF_DIR") or spark_jars().parent / "conf"
    file = Path(folder, "spark-defaults.conf")
    if not file.is_file():
        return {}
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
