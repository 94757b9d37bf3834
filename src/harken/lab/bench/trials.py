"""What is measured on: a workload, other events of its kind to plan by, and a contestant for every matcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import pyarrow as pa

from harken.codes.conjunctions import Conjunctions
from harken.codes.encode import EncodedBatch
from harken.errors import CapabilityError
from harken.lab.bench.answers import Answers, refuse_differences, refuse_wrong
from harken.lab.bench.contestants import Contestant, Factory, Ids, encode_table, ready
from harken.lab.workloads import generate
from harken.lab.workloads.workload import Workload

SAMPLE = 256
"""Events to plan by, of every kind. They are never those that are measured."""
_SAMPLE_SEED = 1_000_003
_CHECKED = 8


@dataclass(slots=True)
class Ready:
    """A matcher on a workload, with the seconds that building it took."""

    contestant: Contestant
    conjunctions: Conjunctions
    encoded: EncodedBatch
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]]
    build_seconds: list[float]

    def find(self) -> Ids:
        """What is timed."""
        return self.contestant.find(self.encoded, self.offsets)

    def answers(self) -> Answers:
        return Answers(self.find(), self.offsets)


@dataclass(slots=True)
class Trial:
    """A workload at a size, with every matcher that can do it."""

    workload: Workload
    matchers: dict[str, Ready] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)
    """Why a matcher cannot do this workload."""

    @property
    def size(self) -> int:
        return self.workload.subscriptions

    @property
    def events(self) -> int:
        return int(self.workload.events.num_rows)

    @property
    def title(self) -> str:
        return f"{self.workload.name} with {self.size:,} subscriptions"

    def verify(self) -> None:
        """Raise WrongAnswerError unless all matchers agree on all events, and with plain evaluation on some."""
        found = {name: each.answers() for name, each in self.matchers.items()}
        if not found:
            return
        refuse_differences(found, self.title)
        name, answers = next(iter(found.items()))
        refuse_wrong(name, answers, self.workload, np.linspace(0, self.events - 1, _CHECKED).astype(np.int64))


def sample_of(name: str, seed: int) -> Workload:
    """Other events of the same kind: SAMPLE of them or, of a mixture, SAMPLE of each of its kinds."""
    kinds = len(generate(name, 0, 0).parts) or 1
    return generate(name, 0, SAMPLE * kinds, seed + _SAMPLE_SEED)


def prepare(workload: Workload, sample: pa.Table, factories: Mapping[str, Factory], builds: int = 0) -> Trial:
    """Build every matcher: once for warm-up, then so many times by the clock.

    One that cannot do the workload says so; all else that fails is fatal.
    """
    trial = Trial(workload)
    predicates = workload.predicates
    if not trial.events:
        raise ValueError("there are no events to measure with")
    for name, factory in factories.items():
        seconds = []
        try:
            conjunctions, contestant = ready(factory, predicates, trial.size, sample)
            for _ in range(builds):
                started = perf_counter()
                conjunctions, contestant = ready(factory, predicates, trial.size, sample)
                seconds.append(perf_counter() - started)
        except CapabilityError as error:
            trial.unable[name] = str(error)
            continue
        encoded = encode_table(workload.events, conjunctions)
        trial.matchers[name] = Ready(contestant, conjunctions, encoded, np.zeros(trial.events + 1, np.int64), seconds)
    return trial
