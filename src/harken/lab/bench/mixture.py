"""The mixed workload, kind by kind: what its events cost in the mixed index, and with their quarter indexed alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from harken.lab.bench.answers import Answers
from harken.lab.bench.contestants import Factory, encode_table
from harken.lab.bench.figures import Key, Result, WrongAnswerError
from harken.lab.bench.rounds import TURN, interleaved
from harken.lab.bench.trials import Ready, Trial, prepare
from harken.lab.workloads.workload import Workload


def measure_mixture(
    result: Result, trial: Trial, sample: Workload, factories: Mapping[str, Factory], rounds: int
) -> None:
    """Time the events of each kind against the mixture and against their quarter, in the same rounds."""
    workload = trial.workload
    contestants: dict[Key, Callable[[], object]] = {}
    for kind, part in workload.parts.items():
        alone = prepare(part, sample.parts[kind].events, factories)
        for matcher, each in alone.matchers.items():
            inside = _inside(trial.matchers[matcher], part)
            _refuse_differences(inside, each, workload, kind)
            key = Key("in_mixture", workload.name, trial.size, matcher, kind)
            contestants |= {key: inside.find, key._replace(name="alone"): each.find}
    timings = interleaved(contestants, rounds, TURN)
    for key, timing in timings.items():
        assert key.part is not None
        result.add(key, timing.microseconds(workload.parts[key.part].events.num_rows))
        if key.name == "in_mixture":
            result.add(key._replace(name="to_alone"), timing.times(timings[key._replace(name="alone")]))


def _inside(mixed: Ready, part: Workload) -> Ready:
    """The same matcher, on the events of one kind. The attributes of the others are missing in these."""
    events = part.events.num_rows
    return Ready(
        mixed.contestant,
        mixed.conjunctions,
        encode_table(part.events, mixed.conjunctions),
        np.zeros(events + 1, np.int64),
        [],
    )


def _refuse_differences(inside: Ready, alone: Ready, mixture: Workload, kind: str) -> None:
    """Raise WrongAnswerError unless both find the same subscriptions, by the numbers that the quarter gives them."""
    places = _places(mixture, kind)
    ids = inside.find()
    own = np.searchsorted(places, ids)
    foreign = bool((places[np.minimum(own, len(places) - 1)] != ids).any())
    theirs = Answers(own.astype(np.int32), inside.offsets)
    if foreign or theirs != alone.answers():
        raise WrongAnswerError(f"events of {kind} match other subscriptions in the mixture than alone")


def _places(mixture: Workload, kind: str) -> NDArray[np.int32]:
    """The numbers in the mixture of a kind's subscriptions, in order. Each has at least one predicate."""
    names = {conditions.attribute for conditions in mixture.parts[kind].conditions}
    rows = [conditions.rows for conditions in mixture.conditions if conditions.attribute in names]
    return np.unique(np.concatenate([np.empty(0, np.int32), *rows]))
