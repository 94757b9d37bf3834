"""Latency of one event at a time: median and 99th percentile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter_ns

import numpy as np

from harken.engine import Engine
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.trials import Trial
from harken_lab.harness.result_files import Unavailable


def measure_latency(result: BenchResult, trial: Trial, rounds: int, most: int) -> None:
    """Time a matcher, with at most `most` events: the codes of one event in, its numbers out."""
    name, size = trial.workload.name, trial.size
    for matcher, each in trial.matchers.items():
        single = [each.encoded.part(event, event + 1) for event in range(min(most, trial.events))]
        runs = [partial(each.matcher.find, one) for one in single]
        _add(result, Key("latency_p50", name, size, matcher, "low level"), runs, rounds)


def measure_engine_latency(
    result: BenchResult, trial: Trial, engines: Mapping[str, Engine | Unavailable], rounds: int
) -> None:
    """Time `Engine.match`: a dict in, a list of ids out."""
    rows = trial.workload.events.to_pylist()
    events = [{name: value for name, value in row.items() if value is not None} for row in rows]
    for matcher, engine in engines.items():
        key = Key("latency_p50", trial.workload.name, trial.size, matcher, "engine")
        with result.unless_unavailable(key, key._replace(name="latency_p99")):
            if isinstance(engine, Unavailable):
                raise engine
            _add(result, key, [partial(engine.match, event) for event in events], rounds)


def _add(result: BenchResult, key: Key, runs: Sequence[Callable[[], object]], rounds: int) -> None:
    """Add percentiles over the events, one of each per round. The first round is a warm-up."""
    times = [_microseconds(runs) for _ in range(rounds + 1)][1:]
    result.add(key, [float(np.percentile(each, 50)) for each in times])
    result.add(key._replace(name="latency_p99"), [float(np.percentile(each, 99)) for each in times])


def _microseconds(runs: Sequence[Callable[[], object]]) -> list[float]:
    times = []
    for run in runs:
        started = perf_counter_ns()
        run()
        times.append((perf_counter_ns() - started) / 1e3)
    return times
