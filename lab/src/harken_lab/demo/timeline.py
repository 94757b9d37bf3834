"""The steps of the pipeline and their times, from Spark's event log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INDEX, MATCH, NOTIFY, LETTERS, OTHER = (
    "index the subscriptions",
    "decode, join and match",
    "write the notifications",
    "collect the dead letters",
    "inspect the sources",
)
STEPS = (OTHER, INDEX, MATCH, LETTERS, NOTIFY)


@dataclass(frozen=True, slots=True)
class SparkStep:
    """A step that Spark ran; times are seconds since 1970."""

    name: str
    start: float
    end: float
    tasks: int
    busy: float
    """The run times of its tasks, added up, in seconds."""

    @property
    def seconds(self) -> float:
        return self.end - self.start


def steps(folder: Path) -> list[SparkStep]:
    """The steps in the event logs of a folder, by start."""
    plans: dict[int, Any] = {}
    ends: dict[int, float] = {}
    tasks: dict[int, list[float]] = {}
    stages: dict[int, int] = {}
    for event in _events(folder):
        match event["Event"].rpartition(".")[2]:
            case "SparkListenerSQLExecutionStart":
                plans[event["executionId"]] = event
            case "SparkListenerSQLExecutionEnd":
                ends[event["executionId"]] = event["time"] / 1e3
            case "SparkListenerJobStart":
                execution = event["Properties"].get("spark.sql.execution.id")
                if execution is not None:
                    stages |= dict.fromkeys(event["Stage IDs"], int(execution))
            case "SparkListenerTaskEnd" if event["Stage ID"] in stages and "Task Metrics" in event:
                busy = event["Task Metrics"]["Executor Run Time"] / 1e3
                tasks.setdefault(stages[event["Stage ID"]], []).append(busy)
    finished = [
        SparkStep(_name(plan), plan["time"] / 1e3, ends[number], len(tasks.get(number, ())), sum(tasks.get(number, ())))
        for number, plan in plans.items()
        if number in ends
    ]
    return sorted(finished, key=lambda step: step.start)


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):
            with path.open(encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def _name(plan: dict[str, Any]) -> str:
    text, origin = plan["physicalPlanDescription"], plan["description"]
    if "harken_build_index" in text:
        return INDEX
    if "InsertIntoHadoopFsRelationCommand" in text:
        return LETTERS if "/dead-letters" in text else NOTIFY
    if "OverwriteByExpression" in text or "noop" in text:
        return MATCH
    return OTHER if "enriching" in origin else LETTERS
