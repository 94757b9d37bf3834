"""The mixed workload, kind by kind: the time of its events in the mixed index, and with their quarter indexed alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.trials import Trial, prepare
from harken_lab.harness.contestants import Contestant, FilledMatcher
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import TURN, interleaved
from harken_lab.harness.verified_answers import Answers
from harken_lab.workloads.workload import Workload


def measure_mixture(
    result: BenchResult, trial: Trial, sample: Workload, contestants: Mapping[str, Contestant], rounds: int
) -> None:
    """Time the events of each kind with the mixed index and with their quarter's, in the same rounds."""
    workload = trial.workload
    runs: dict[Key, Callable[[], object]] = {}
    for kind, part in workload.parts.items():
        alone = prepare(part, sample.parts[kind].events, contestants)
        for matcher, each in alone.matchers.items():
            inside = trial.matchers[matcher].on(part.events)
            _reject_differences(inside, each, workload, kind)
            key = Key("in_mixture", workload.name, trial.size, matcher, kind)
            runs |= {key: inside.find, key._replace(name="alone"): each.find}
    timings = interleaved(runs, rounds, TURN)
    for key, timing in timings.items():
        assert key.part is not None
        result.add(key, timing.microseconds(workload.parts[key.part].events.num_rows))
        if key.name == "in_mixture":
            result.add(key._replace(name="to_alone"), timing.times(timings[key._replace(name="alone")]))


def _reject_differences(inside: FilledMatcher, alone: FilledMatcher, mixture: Workload, kind: str) -> None:
    """Raise WrongAnswerError unless both match the same subscriptions, compared by their numbers in the quarter."""
    places = _places(mixture, kind)
    offsets, numbers = inside.matches()
    own = np.searchsorted(places, numbers)
    foreign = bool((places[np.minimum(own, len(places) - 1)] != numbers).any())
    if foreign or Answers(own.astype(np.int32), offsets) != alone.answers():
        raise WrongAnswerError(f"events of {kind} match other subscriptions in the mixture than alone")


def _places(mixture: Workload, kind: str) -> NDArray[np.int32]:
    """The numbers that a kind's subscriptions have in the mixture, in order. Each has at least one predicate."""
    names = {conditions.attribute for conditions in mixture.parts[kind].conditions}
    rows = [conditions.rows for conditions in mixture.conditions if conditions.attribute in names]
    return np.unique(np.concatenate([np.empty(0, np.int32), *rows]))
