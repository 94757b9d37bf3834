"""A Kafka broker of one node, without ZooKeeper, and Kafka's own tools to look at it without Spark."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harken.spark.java import find_java
from services.maven import BROKER, jars_or_skip
from services.processes import free_port, running

Message = tuple[str | None, str]

_TOOL_SECONDS = 120
_CLUSTER_ID = base64.urlsafe_b64encode(b"harken-the-tests").decode().rstrip("=")
_NO_KEY = "\\N"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
_LOG4J = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %c: %m%n
"""


@dataclass(frozen=True, slots=True)
class Kafka:
    """A broker that runs. A message is a key, which may be None, and a value: text without tabs and line breaks.

    A topic is made when it is first written to, with one partition; one with more has to be created.
    """

    address: str
    java: tuple[str, ...]

    def create_topic(self, topic: str, partitions: int) -> None:
        self._tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic, "--partitions", str(partitions))

    def produce(self, topic: str, messages: Iterable[Message]) -> None:
        lines = [f"{_NO_KEY if key is None else key}\t{value}\n" for key, value in messages]
        options = _options({"parse.key": "true", "key.separator": "\t", "null.marker": _NO_KEY})
        self._tool("kafka.tools.ConsoleProducer", "--topic", topic, *options, text="".join(lines))

    def count(self, topic: str) -> int:
        """How many messages the topic holds, all partitions together."""
        output = self._tool("org.apache.kafka.tools.GetOffsetShell", "--topic", topic)
        return sum(int(line.rsplit(":", 1)[1]) for line in output.split())

    def consume(self, topic: str) -> list[Message]:
        """All messages of the topic, in the order of each partition."""
        count = self.count(topic)
        if count == 0:
            return []
        options = _options({"print.key": "true", "key.separator": "\t", "null.literal": _NO_KEY})
        limits = ["--from-beginning", "--max-messages", str(count), "--timeout-ms", str(_TOOL_SECONDS * 500)]
        output = self._tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", topic, *options, *limits)
        pairs = [line.split("\t", 1) for line in output.splitlines()]
        return [(None if key == _NO_KEY else key, value) for key, value in pairs]

    def _tool(self, main: str, *arguments: str, text: str = "") -> str:
        command = [*self.java, main, "--bootstrap-server", self.address, *arguments]
        return _run(command, text)


@contextmanager
def running_kafka(folder: Path) -> Iterator[Kafka]:
    """A broker whose files are in the folder. Skips the test if its jars cannot be had."""
    jars = os.pathsep.join(map(str, jars_or_skip(BROKER)))
    ports = {"broker": free_port(), "controller": free_port()}
    properties, log4j = folder / "server.properties", folder / "log4j.properties"
    properties.write_text(_PROPERTIES.format(folder=folder, **ports))
    log4j.write_text(_LOG4J)
    quick = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j.configuration={log4j.as_uri()}")
    java = (str(find_java().home / "bin" / "java"), *quick, "-cp", jars)
    _run([*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties)])

    def ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", ports["broker"])) == 0

    with running([*java, "kafka.Kafka", str(properties)], folder / "broker.log", ready):
        yield Kafka(f"127.0.0.1:{ports['broker']}", java)


def _options(pairs: dict[str, str]) -> list[str]:
    return [word for key, value in pairs.items() for word in ("--property", f"{key}={value}")]


def _run(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, timeout=_TOOL_SECONDS, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
