"""A folder with a pipeline in it: its input, its configuration, and what came out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.engine import Engine
from harken.pipeline.batch_outcome import Stamp
from harken.pipeline.config import Config, check_config
from harken.spark.index_versions import Index, IndexVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
COLUMNS = "id STRING, category STRING, price DOUBLE, at TIMESTAMP, seller STRING"
EVENTS: list[dict[str, Any]] = [
    {"id": "A1", "category": "Toy", "price": 3.5, "at": "2024-05-01T10:00:00Z", "seller": "s1"},
    {"id": "A2", "category": "Lamp", "price": 30, "at": "2024-05-01T10:01:00Z", "seller": "s2"},
    {"id": "A3", "category": "Toy", "price": 7, "at": "2024-05-01T10:02:00Z", "seller": "s9"},
]
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "alice", "where": "category = 'Toy' AND price < 5", "owner": "Alice"},
    {"id": "bob", "where": "price > 5"},
]
PAIRS = {("A1", "alice"), ("A2", "bob"), ("A3", "bob")}
SINK = '[[sink]]\nformat = "parquet"\npath = "out"\n'


class Project:
    """Files below a folder, and configurations that name them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: list[dict[str, Any]] | str) -> Path:
        """Records as JSON lines, or a text as it is."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else "".join(json.dumps(each) + "\n" for each in content)
        path.write_text(text, "utf-8")
        return path

    def text(self, source: str = "", more: str = "", head: str = "", sink: str = SINK, match: str = "") -> str:
        """A configuration, with input that does for it where there is none."""
        if not (self.folder / "events.jsonl").exists():
            self.write("events.jsonl", EVENTS)
        if not (self.folder / "subscriptions.jsonl").exists():
            self.write("subscriptions.jsonl", SUBSCRIPTIONS)
        usual = {"format": '"json"', "path": '"events.jsonl"', "event_id": '"id"', "columns": f'"{COLUMNS}"'}
        given = dict(line.split(" = ", 1) for line in source.splitlines() if line)
        lines = [f"{key} = {value}" for key, value in (usual | given).items() if value != "none"]
        parts = [
            head,
            "[source]",
            *lines,
            "[subscriptions]",
            'path = "subscriptions.jsonl"',
            f"[match]\n{match}",
            sink,
            more,
        ]
        return "\n".join(parts)

    def config(self, *given: str, **named: str) -> Config:
        config, faults = check_config(self.text(*given, **named), str(self.folder / "pipeline.toml"))
        assert config is not None, [str(fault) for fault in faults]
        return config

    def rows(self, spark: SparkSession, name: str = "out", format: str = "parquet") -> list[Any]:
        """What a sink of files has."""
        return spark.read.format(format).load(str(self.folder / name)).collect()

    def index(self, subscriptions: list[dict[str, Any]] = SUBSCRIPTIONS, **given: Any) -> IndexVersion:
        engine = Engine(**given)
        assert not engine.subscribe_many(subscriptions).faults
        return Index(self.folder / "index").publish(engine)

    def stamp(self, batch: int = 0, time: datetime = NOW, late_before: datetime | None = None, **given: Any) -> Stamp:
        return Stamp(batch, self.index(**given), time, late_before)


def pairs(notifications: DataFrame | list[Any]) -> set[tuple[str, str]]:
    """Who is told of what. What is told twice fails."""
    rows = notifications if isinstance(notifications, list) else notifications.collect()
    found = [(row["event_id"], row["subscription_id"]) for row in rows]
    assert len(found) == len(set(found))
    return set(found)
