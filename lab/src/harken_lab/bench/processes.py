"""Figures that need fresh processes: peak memory, and the first match."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from harken_lab.bench.child import in_child, pack
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.trials import Trial
from harken_lab.workloads.workload import Workload


def measure_peaks(result: BenchResult, trial: Trial, most: int) -> None:
    """Measure the peak memory of a process that builds an index and matches at most `most` events."""
    events = trial.workload.events.slice(0, most)
    with TemporaryDirectory(prefix="harken-bench-") as folder:
        pack(Path(folder), trial.size, trial.workload.predicates, events)
        for matcher in trial.matchers:
            memory = in_child("peak", matcher, Path(folder))
            result.add(Key("peak_rss", trial.workload.name, trial.size, matcher), memory["peak"])
            result.add(Key("start_rss", trial.workload.name, trial.size, matcher), memory["start"])


def measure_first_matches(result: BenchResult, workload: Workload, matchers: Iterable[str], rounds: int) -> None:
    """Time the first match in fresh processes, after one that fills the cache of kernels."""
    tasks = {"low level": "first_match", "engine": "first_match_of_engine"}
    with TemporaryDirectory(prefix="harken-bench-") as folder:
        pack(Path(folder), workload.subscriptions, workload.predicates, workload.events.slice(0, 1))
        for matcher in matchers:
            for part, task in tasks.items():
                key = Key("first_match", matcher=matcher, part=part)
                result.add(key, _seconds(task, matcher, Path(folder), rounds))


def _seconds(task: str, matcher: str, folder: Path, rounds: int) -> list[float]:
    in_child(task, matcher, folder)
    return [in_child(task, matcher, folder)["seconds"] for _ in range(rounds)]
