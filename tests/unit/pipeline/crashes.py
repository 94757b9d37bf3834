"""A pipeline in a process of its own, which is killed again and again; and what must be true of what it wrote."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from harken.engine import Engine

DRIVER = """\
import os, signal, sys
from harken.pipeline.config import load_config
from harken.pipeline.stream import stream
from harken.spark.session import local_session

path, *last = sys.argv[1:]

def reached(step):
    if step in last:
        os.kill(os.getpid(), signal.SIGKILL)

stream(load_config(path), local_session("crash"), reached=reached)
"""
"""A process that ends at a step, if one is named, as if its power was cut."""
PIPELINE = """\
name = "crash"
mode = "stream"
checkpoint = "state"
trigger = "available-now"
[source]
format = "json"
path = "events"
columns = "id STRING, price DOUBLE, at TIMESTAMP"
event_id = "id"
event_time = "at"
max_files_per_trigger = 2
[subscriptions]
path = "subscriptions.jsonl"
[match]
columns = ["price"]
"""
FILE_SINKS = """
[[sink]]
name = "table"
format = "parquet"
path = "out"
[[sink]]
name = "lines"
format = "json"
path = "lines"
"""
EVERYBODY = "everybody"
"""A subscription that all events match, in every version: who got an event at all is told by it."""
PER_FILE = 5
_LIFE_SECONDS = 120
_LAST_LIFE_SECONDS = 1_200
"""After many deaths there is much left to do."""
Row = tuple[str, str, int, int]
"""Event, subscription, version of the index, batch."""


class World:
    """The folder of a pipeline, the events that came into it, and the lives of its process."""

    def __init__(self, folder: Path, seed: int, sinks: str = FILE_SINKS) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.events: dict[str, dict[str, Any]] = {}
        self.poison: list[str] = []
        self.kept = folder / "kept"
        self.environment: Mapping[str, str] = os.environ
        (folder / "events").mkdir(parents=True)
        (folder / "pipeline.toml").write_text(PIPELINE + sinks)
        self.change_subscriptions()

    def add_events(self, files: int) -> None:
        """Put files of events where they are watched for, each with a line that is no event."""
        for _ in range(files):
            lines = []
            for _ in range(PER_FILE):
                id = f"e{len(self.events)}"
                event = {"id": id, "price": self.random.randrange(100), "at": "2026-01-01T00:00:00Z"}
                self.events[id] = event
                lines.append(json.dumps(event))
            self.poison.append(f"poison {len(self.poison)}")
            lines.insert(self.random.randrange(len(lines)), self.poison[-1])
            self._put(f"events/{len(self.poison):05d}.json", lines)

    def change_subscriptions(self) -> None:
        """Put other subscriptions in the place of those that are there."""
        some = {f"s{self.random.randrange(30)}": self.random.randrange(100) for _ in range(20)}
        records = [{"id": EVERYBODY, "where": "price >= 0", "owner": "all"}]
        records += [{"id": id, "where": f"price < {limit}"} for id, limit in some.items()]
        self._put("subscriptions.jsonl", [json.dumps(each) for each in records])

    def _put(self, name: str, lines: list[str]) -> None:
        unfinished = self.folder / f"unfinished-{Path(name).name}"
        unfinished.write_text("\n".join(lines) + "\n")
        unfinished.replace(self.folder / name)

    @contextmanager
    def living(self, stop_at: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """The process. When this ends it is dead, with its Java, and what versions it made are kept."""
        steps = [] if stop_at is None else [stop_at]
        command = [sys.executable, "-c", DRIVER, str(self.folder / "pipeline.toml"), *steps]
        log = self.folder / "log"
        with (
            log.open("ab") as stream,
            subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for version in (self.folder / "state/index").glob("version-*"):
            if not (self.kept / version.name).exists() and (version / "version.json").exists():
                shutil.copytree(version, self.kept / version.name)

    def die_at(self, step: str) -> bool:
        """Live until a step. Java may outlive that for a moment."""
        with self.living(step) as process:
            code = process.wait(_LIFE_SECONDS)
            time.sleep(self.random.random() / 2)
        assert code in (0, -signal.SIGKILL), self.log()
        return code != 0

    def die_at_any_time(self) -> bool:
        """Live until a while after a batch was begun."""
        begun = self.begun()
        with self.living() as process:
            end = time.monotonic() + _LIFE_SECONDS
            while process.poll() is None and self.begun() == begun:
                assert time.monotonic() < end, self.log()
                time.sleep(0.02)
            if self.random.random() < 0.5:
                self.change_subscriptions()
            time.sleep(self.random.random() * 2)
            code = process.poll()
        assert code in (None, 0), self.log()
        return code is None

    def live(self) -> None:
        """Live until all input is used up."""
        with self.living() as process:
            assert process.wait(_LAST_LIFE_SECONDS) == 0, self.log()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4_000:]

    def begun(self) -> int:
        return len(list((self.folder / "state/batches").glob("*/begun.json")))

    def verify(self, rows: list[Row]) -> None:
        """Every event, told once to everybody whom the recorded version of its batch names, and to nobody else."""
        twice = [row for row, count in Counter(row[:2] for row in rows).items() if count > 1]
        assert not twice
        found: dict[str, set[str]] = {id: set() for id in self.events}
        batch_of: dict[str, set[tuple[int, int]]] = {id: set() for id in self.events}
        for event, subscription, version, batch in rows:
            found[event].add(subscription)
            batch_of[event].add((version, batch))
        lost = [event for event, names in found.items() if EVERYBODY not in names]
        assert not lost
        assert all(len(each) == 1 for each in batch_of.values())
        engines = {int(each.name.split("-")[1]): Engine.load(each) for each in self.kept.iterdir()}
        recorded = {batch: record["version"] for batch, record in self.records().items()}
        for id, event in self.events.items():
            version, batch = next(iter(batch_of[id]))
            assert recorded[batch] == version
            assert found[id] == set(engines[version].match(event).ids)

    def records(self) -> dict[int, dict[str, Any]]:
        """What was recorded of each batch when it was begun. All of them must be done."""
        folders = sorted((self.folder / "state/batches").glob("0*"))
        assert all((each / "done.json").exists() for each in folders)
        return {int(each.name): json.loads((each / "begun.json").read_text()) for each in folders}

    def verify_files(self) -> list[Row]:
        """The same of what lies in files; the rows are returned."""
        from pyarrow import dataset

        table = dataset.dataset(self.folder / "out", partitioning="hive").to_table().to_pylist()
        rows = [(each["event_id"], each["subscription_id"], each["index_version"], each["batch_id"]) for each in table]
        self.verify(rows)
        assert all(each["batch"] == each["batch_id"] for each in table)
        times = {batch: datetime.fromisoformat(each["time"]) for batch, each in self.records().items()}
        assert all(each["match_time"] == times[each["batch_id"]] for each in table)
        lines = self._lines("lines")
        assert sorted(rows) == sorted(
            (each["event_id"], each["subscription_id"], each["index_version"], each["batch_id"]) for each in lines
        )
        assert sorted(each["event"] for each in self._lines("state/dead-letters")) == sorted(self.poison)
        return rows

    def _lines(self, folder: str) -> list[dict[str, Any]]:
        files = (self.folder / folder).glob("batch=*/*.json")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
