"""Pipelines from Kafka to Kafka, and into PostgreSQL while their process is killed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from properties.replay import SEED
from services.kafka import Kafka
from services.postgres import Postgres
from services.scripts import run_harken, spark_environment
from unit.pipeline.crashes import World

pytestmark = pytest.mark.processes

OVER_KAFKA = """\
name = "alerts"
mode = "stream"
checkpoint = "state"
trigger = "available-now"
[source]
format = "kafka"
servers = "{address}"
topic = "events"
columns = "id STRING, price DOUBLE"
event_id = "id"
max_offsets_per_trigger = 3
[subscriptions]
path = "rules.jsonl"
[match]
columns = ["price"]
[[sink]]
name = "told"
format = "kafka"
servers = "{address}"
topic = "told"
"""


@pytest.mark.slow
def test_events_of_a_topic_become_notifications_in_another(kafka: Kafka, tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text(OVER_KAFKA.format(address=kafka.address))
    (tmp_path / "rules.jsonl").write_text('{"id": "cheap", "where": "price < 5", "owner": "ann"}\n')
    kafka.create_topic("events", partitions=2)
    kafka.create_topic("told", partitions=1)
    events = [json.dumps({"id": f"e{price}", "price": price}) for price in range(8)]
    kafka.produce("events", [(None, event) for event in [*events, "no json"]])

    done = run_harken("run", str(tmp_path / "pipeline.toml"), formats=["kafka"])
    assert done.returncode == 0, done.stderr
    told = {key: json.loads(value) for key, value in kafka.consume("told")}
    assert sorted(map(str, told)) == [f"e{price}" for price in range(5)]
    assert told["e3"]["subscription_id"] == "cheap"
    assert told["e3"]["owner"] == "ann"
    assert told["e3"]["price"] == 3
    assert len({each["batch_id"] for each in told.values()}) > 1, (
        "max_offsets_per_trigger makes several batches of them"
    )
    headers = _headers(kafka, "told")
    assert "harken_pipeline:alerts,harken_batch:0,harken_subscription:cheap" in headers
    dead = [json.loads(line) for file in (tmp_path / "state").rglob("*.json") for line in _letters(file)]
    assert [(each["stage"], each["event"]) for each in dead] == [("decode", "no json")]

    kafka.produce("events", [(None, json.dumps({"id": "later", "price": 1}))])
    done = run_harken("run", str(tmp_path / "pipeline.toml"), formats=["kafka"])
    assert done.returncode == 0, done.stderr
    assert sorted(str(key) for key, _ in kafka.consume("told")) == [*(f"e{price}" for price in range(5)), "later"]


def _letters(file: Path) -> list[str]:
    return file.read_text().splitlines() if "dead-letters" in file.parts else []


def _headers(kafka: Kafka, topic: str) -> list[str]:
    """The headers of all messages of a topic."""
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    options = ["--from-beginning", "--max-messages", str(kafka.count(topic)), "--timeout-ms", "30000"]
    shown = ["--property", "print.headers=true", "--property", "print.value=false"]
    command = [*kafka.java, consumer, "--bootstrap-server", kafka.address, "--topic", topic, *options, *shown]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def into_table(postgres: Postgres, table: str) -> str:
    login = f'url = "{postgres.url}"\nuser = "{postgres.user}"\npassword = "{postgres.password}"\n'
    return f'[[sink]]\nname = "database"\nformat = "jdbc"\ntable = "{table}"\n{login}'


def kill(postgres: Postgres, folder: Path, table: str, steps: tuple[str, ...]) -> None:
    """Kill a pipeline at steps, let it go on to its end, and see what is in the table."""
    world = World(folder, SEED, into_table(postgres, table))
    with spark_environment(["jdbc:postgresql"]) as environment:
        world.environment = environment
        for step in steps:
            world.add_events(2)
            assert world.die_at(step), f"{step} was not reached"
            world.change_subscriptions()
        world.live()
    columns = "event_id, subscription_id, index_version, batch_id, price, match_time"
    found = postgres.query(f"SELECT {columns} FROM {table} WHERE harken_pipeline = 'crash' AND harken_batch = batch_id")
    world.verify([(str(row[0]), str(row[1]), int(row[2] or -1), int(row[3] or 0)) for row in found])
    assert len(found) == int(postgres.query(f"SELECT count(*) FROM {table}")[0][0] or -1)
    assert all(float(row[4] or -1) == world.events[str(row[0])]["price"] for row in found)


@pytest.mark.slow  # the one with files, in test_crash.py, runs always
def test_a_table_has_every_notification_once_whenever_the_process_is_killed(postgres: Postgres, tmp_path: Path) -> None:
    kill(postgres, tmp_path / "world", "told", ("inserted rows", "wrote database"))


@pytest.mark.slow
def test_a_table_has_every_notification_once_after_many_kills(postgres: Postgres, tmp_path: Path) -> None:
    steps = ("begun", "wrote staging table", "deleted rows", "inserted rows", "wrote database", "done")
    postgres.query("CREATE SCHEMA often")
    kill(postgres, tmp_path / "world", "often.told", steps * 2)
