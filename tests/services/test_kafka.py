"""The broker that the tests start, looked at with Kafka's own tools, and Spark's connector against it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from services import kafka_round_trip
from services.kafka import Kafka, Message
from services.scripts import run_spark_script

pytestmark = pytest.mark.processes


def test_what_is_produced_is_consumed(kafka: Kafka) -> None:
    messages: list[Message] = [("a", '{"price": 3.5}'), (None, "no key"), ("ключ", "значение"), ("", "")]
    kafka.produce("plain", messages)
    assert kafka.consume("plain") == messages


@pytest.mark.slow
def test_a_topic_may_be_empty(kafka: Kafka) -> None:
    kafka.create_topic("empty", partitions=2)
    assert kafka.consume("empty") == []


def test_spark_writes_and_reads_topics_as_tables_and_as_streams(kafka: Kafka, tmp_path: Path) -> None:
    kafka.create_topic("written", partitions=3)

    script = Path(kafka_round_trip.__file__)
    done = run_spark_script(script, kafka.address, "written", "copied", str(tmp_path / "state"), formats=["kafka"])

    assert done.returncode == 0, done.stderr
    squares = Counter((str(number) if number else None, str(number * number)) for number in range(100))
    assert Counter((key, value) for key, value in json.loads(done.stdout)) == squares
    assert Counter(kafka.consume("copied")) == squares
