"""The whole benchmark: each workload, then the figures that depend on none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from harken.engine import Engine
from harken_lab.bench import threads
from harken_lab.bench.bench_loading import measure_load
from harken_lab.bench.bench_matching import measure_matching
from harken_lab.bench.encoding import measure_encoding
from harken_lab.bench.engines import engines_of, live_of, reject_wrong_engine, reject_wrong_live
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.latency import measure_engine_latency, measure_latency
from harken_lab.bench.mixture import measure_mixture
from harken_lab.bench.processes import measure_first_matches, measure_peaks
from harken_lab.bench.threads import alu_gain, measure_threads
from harken_lab.bench.trials import CONTESTANTS, Trial, prepare
from harken_lab.bench.updates import measure_under_updates, measure_updates
from harken_lab.harness.contestants import SAMPLE, Contestant, sample_of
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import Unavailable
from harken_lab.harness.rounds import MOST_RUNS, TURN
from harken_lab.workloads import generate

Tell = Callable[[str], None]

_EVENTS = 8_192
_EVENTS_OF = {"w4": 256}
"""Workloads with fewer events: an event of w4 has thousands of matches."""
_EVENTS_ONE_BY_ONE, _IDS_ONE_BY_ONE = 256, 1 << 23
"""Most events and ids through an engine: each id becomes a Python string, so where many match, events are fewer."""
_MATCHES_FOR_THREADS, _MOST_EVENTS_FOR_THREADS = 1 << 26, 1 << 18
"""Most matches and events when threads are measured. Two such answers fit into the memory that a matcher keeps for
answers.
"""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What is measured, and how often. The committed results use the defaults."""

    workloads: tuple[str, ...] = ("w4", "le-subscribe", "stock", "gryphon", "mixed")
    sizes: tuple[int, ...] = (10, 1_000, 10_000, 100_000, 1_000_000)
    more_sizes: tuple[tuple[str, int], ...] = ()
    """Sizes for one workload only."""
    matchers: tuple[str, ...] = tuple(CONTESTANTS)
    events: int | None = None
    """None: 8,192, and 256 for w4."""
    rounds: int = 7
    seed: int = 0
    builds: int = 3
    """How often building an index is timed."""
    engine_size: int = 100_000
    """The most subscriptions for matchers whose index is not saved."""
    engine_rounds: int = 3
    window: float = 1.0
    """Seconds of matching at rest, and with updates, in every round."""
    steps: int = 100_000_000
    """Steps of the loop that shows how much a second thread can gain."""
    all_peaks: bool = True
    """Whether peak memory is measured at every size, not only at the largest."""

    def quick(self) -> BenchSettings:
        """Small sizes and few rounds: about a minute."""
        return replace(
            self,
            sizes=(10, 2_000, 50_000),
            events=self.events or 64,
            rounds=3,
            builds=1,
            engine_size=2_000,
            engine_rounds=1,
            window=0.2,
            steps=20_000_000,
            all_peaks=False,
        )

    def events_of(self, workload: str) -> int:
        return self.events or _EVENTS_OF.get(workload, _EVENTS)

    def sizes_of(self, workload: str) -> list[int]:
        return sorted({*self.sizes, *(size for name, size in self.more_sizes if name == workload)})

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "more_sizes": [list(each) for each in self.more_sizes],
            "events": {name: self.events_of(name) for name in self.workloads},
            "sample": SAMPLE,
            "turn": TURN,
            "most_runs": MOST_RUNS,
            "thread_turn": threads.TURN,
            "thread_rounds": threads.ROUNDS * self.rounds,
        }


def run(
    settings: BenchSettings,
    tell: Tell = lambda text: None,
    keep: Callable[[BenchResult], None] = lambda result: None,
) -> BenchResult:
    """Measure everything. Failures and wrong answers are fatal; unavailable figures are noted as not measured.

    `keep` is called with the result so far after each workload.
    """
    chosen = {name: CONTESTANTS[name] for name in settings.matchers}
    result = BenchResult(_plain(settings.to_dict()), environment("numba"))
    for name in settings.workloads:
        _measure_workload(result, settings, name, chosen, tell)
        keep(result)
    _measure_the_rest(result, settings, tell)
    return result


def _measure_workload(
    result: BenchResult, settings: BenchSettings, name: str, contestants: Mapping[str, Contestant], tell: Tell
) -> None:
    sample = sample_of(name, settings.seed)
    trials = []
    for size in settings.sizes_of(name):
        tell(f"{name}: drawing and indexing {size:,} subscriptions")
        workload = generate(name, size, settings.events_of(name), settings.seed)
        trials.append(prepare(workload, sample.events, contestants, settings.builds))
    tell(f"{name}: matching {settings.events_of(name):,} events")
    measure_matching(result, trials, settings.rounds)
    for trial in trials:
        if trial.workload.parts:
            tell(f"{name}: kind by kind, {trial.size:,} subscriptions")
            capable = {matcher: contestants[matcher] for matcher in trial.matchers}
            measure_mixture(result, trial, sample, capable, settings.rounds)
        tell(f"{name}: one event at a time, {trial.size:,} subscriptions")
        measure_latency(result, trial, settings.engine_rounds, _EVENTS_ONE_BY_ONE)
        if settings.all_peaks or trial is trials[-1]:
            tell(f"{name}: peak memory, {trial.size:,} subscriptions")
            measure_peaks(result, trial, _EVENTS_ONE_BY_ONE)
        if trial.matchers:
            _measure_engines(result, settings, trial, sample.events, tell)


def _measure_engines(result: BenchResult, settings: BenchSettings, trial: Trial, sample: pa.Table, tell: Tell) -> None:
    workload, expected = trial.workload, trial.first.answers()
    matches = max(1, len(expected.numbers) // trial.events)
    some = replace(workload, events=workload.events.slice(0, min(_EVENTS_ONE_BY_ONE, 1 + _IDS_ONE_BY_ONE // matches)))
    tell(f"{workload.name}: through engines, {trial.size:,} subscriptions")
    engines = engines_of(workload, sample, trial.matchers, settings.engine_size)
    for engine in engines.values():
        if isinstance(engine, Engine):
            reject_wrong_engine(engine, some.events, expected)
    measure_engine_latency(result, Trial(some), engines, settings.engine_rounds)
    for matcher, engine in engines.items():
        key = Key("load", workload.name, trial.size, matcher)
        with result.unless_unavailable(key):
            if isinstance(engine, Unavailable):
                raise engine
            measure_load(result, key, engine, some.events, settings.engine_rounds)
    if trial.size == settings.sizes_of(workload.name)[-1]:
        _measure_threads(result, settings, trial, engines)
    del engines
    for matcher in trial.matchers:
        tell(f"{workload.name}: changes, {trial.size:,} subscriptions, {matcher}")
        key = Key("under_updates", workload.name, trial.size, matcher)
        changes = [key._replace(name=name) for name in ("insert", "insert_cpu", "delete", "delete_cpu")]
        with result.unless_unavailable(key, *changes):
            live = live_of(matcher, workload, sample, settings.engine_size)
            measure_updates(result, key, live, trial.size, some.events, settings.engine_rounds)
            with result.unless_unavailable(key):
                measure_under_updates(result, key, live, some.events, settings.engine_rounds, settings.window)
            reject_wrong_live(live, some.events, expected)


def _measure_threads(
    result: BenchResult, settings: BenchSettings, trial: Trial, engines: Mapping[str, Engine | Unavailable]
) -> None:
    name = trial.workload.name
    matches = trial.first.find()[0][-1] / trial.events
    count = min(_MOST_EVENTS_FOR_THREADS, max(1, int(_MATCHES_FOR_THREADS / max(matches, 1))))
    events = generate(name, 0, count if settings.events is None else settings.events, settings.seed).events
    for matcher, engine in engines.items():
        key = Key("batch", name, trial.size, matcher)
        gains = [key._replace(name=figure) for figure in ("thread_gain", "thread_share")]
        with result.unless_unavailable(key, *gains):
            measure_threads(result, key, engine, events, settings.rounds, settings.steps)


def _measure_the_rest(result: BenchResult, settings: BenchSettings, tell: Tell) -> None:
    tell("dicts and JSON to codes")
    measure_encoding(result, settings.engine_size, settings.seed, settings.rounds)
    tell("the gain of a second thread")
    result.add(Key("alu_gain"), alu_gain(settings.engine_rounds, settings.steps))
    tell("the first match of fresh processes")
    name = settings.workloads[0]
    measure_first_matches(result, generate(name, 1_000, 1, settings.seed), settings.matchers, settings.engine_rounds)


def _plain(value: Any) -> Any:
    """Turn tuples into lists, as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
