"""The jars that the tests' services and connectors are made of, and their versions. What cannot be had skips a test."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.pipeline.connectors import connector_jars, packages_for
from harken.pipeline.jars import resolve_jars

# As the Kafka client in Spark's connector; the tools make topics, write and read without Spark.
KAFKA_VERSION = "3.9.2"
BROKER = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}")

# A server in an archive, for machines that have none. By what Python calls the processor.
POSTGRESQL_VERSION = "18.6.0"
POSTGRESQL_SERVERS = {
    machine: f"io.zonky.test.postgres:embedded-postgres-binaries-linux-{name}:{POSTGRESQL_VERSION}"
    for machine, name in (("x86_64", "amd64"), ("aarch64", "arm64v8"))
}

# A PySpark may be on PyPI before all of its connector is on Maven. By the version of PySpark: other connectors that
# were seen to work with it, with batches and with streams.
KAFKA_STAND_INS = {
    "4.3.0": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    ),
}


def jars_or_skip(packages: Iterable[str]) -> list[Path]:
    """The jars of these packages and of all that they need, or the reason why the test cannot run."""
    try:
        return resolve_jars(packages)
    except HarkenError as error:
        pytest.skip(error.message)


def jars_for(formats: Iterable[str]) -> list[Path]:
    """The jars that Spark needs for these formats (harken.pipeline.connectors). Skips the test if there are none."""
    packages: list[str] = []
    for name in formats:
        packages += _kafka_connector() if name == "kafka" else packages_for([name])
    jars_or_skip(packages)
    return connector_jars(packages)


@cache
def _kafka_connector() -> tuple[str, ...]:
    """The packages that Harken asks for; where they are not to be had, those that stand in for them."""
    import pyspark

    exact = tuple(packages_for(["kafka"]))
    try:
        resolve_jars(exact)
    except HarkenError:
        return KAFKA_STAND_INS.get(pyspark.__version__, exact)
    return exact
