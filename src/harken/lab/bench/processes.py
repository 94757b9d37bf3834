"""Figures that need fresh processes: the peak of memory, and the first match."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from harken.lab.bench.child import in_child, pack
from harken.lab.bench.figures import Key, Result, Unavailable
from harken.lab.bench.trials import Trial
from harken.matchers.registry import ALGORITHMS


def measure_peaks(result: Result, trial: Trial, sample: pa.Table, most: int) -> None:
    """The peak of resident memory of a process that builds an index and matches so many events at most with it."""
    events = trial.workload.events.slice(0, most)
    with TemporaryDirectory(prefix="harken-bench-") as folder:
        pack(Path(folder), trial.size, trial.workload.predicates, events, sample)
        for matcher in trial.matchers:
            found = in_child("peak", matcher, Path(folder))
            result.add(Key("peak_rss", trial.workload.name, trial.size, matcher), found["peak"])
            result.add(Key("start_rss", trial.workload.name, trial.size, matcher), found["start"])


def measure_first_matches(result: Result, trial: Trial, sample: pa.Table, matchers: Sequence[str], rounds: int) -> None:
    """The first match in fresh processes, after one that fills the cache of kernels."""
    with TemporaryDirectory(prefix="harken-bench-") as folder:
        pack(Path(folder), trial.size, trial.workload.predicates, trial.workload.events.slice(0, 1), sample)
        for matcher in matchers:
            key = Key("first_match", matcher=matcher, part="low level")
            result.add(key, _seconds("first_match", matcher, Path(folder), rounds))
            key = key._replace(part="engine")
            with result.unless_unavailable(key):
                if matcher not in ALGORITHMS:
                    raise Unavailable(f"no engine has the algorithm `{matcher}` yet")
                result.add(key, _seconds("first_match_of_engine", matcher, Path(folder), rounds))


def _seconds(task: str, matcher: str, folder: Path, rounds: int) -> list[float]:
    in_child(task, matcher, folder)
    return [in_child(task, matcher, folder)["seconds"] for _ in range(rounds)]
