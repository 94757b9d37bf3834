"""A workload at one size, with every contestant of the benchmark that can index it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from harken.errors import CapabilityError
from harken_lab.harness.contestants import Contestant, FilledMatcher
from harken_lab.workloads.workload import Workload

BASELINE = "counting_lists"
CONTESTANTS: dict[str, Contestant] = {
    # By default up to 1,024 rows stay unindexed. Here all are indexed, so that the index is what is timed.
    "columnar": Contestant.of("columnar", small_rows=0, recent_rows=1),
    BASELINE: Contestant.of(BASELINE),
}
"""Contestants by the name of their algorithm. The last is the baseline."""


@dataclass(slots=True)
class Trial:
    """A workload with its contestants, each filled with its subscriptions and given its events."""

    workload: Workload
    matchers: dict[str, FilledMatcher] = field(default_factory=dict)
    build_seconds: dict[str, list[float]] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)
    """Why contestants cannot index this workload, by name."""

    @property
    def size(self) -> int:
        return self.workload.subscriptions

    @property
    def events(self) -> int:
        return int(self.workload.events.num_rows)

    @property
    def first(self) -> FilledMatcher:
        """The first contestant. Once answers are verified, its answers are those of all."""
        return next(iter(self.matchers.values()))


def prepare(workload: Workload, sample: pa.Table, contestants: Mapping[str, Contestant], builds: int = 0) -> Trial:
    """Fill every contestant once for warm-up, then `builds` times by the clock.

    A contestant that cannot index the workload is noted; every other failure is fatal.
    """
    trial = Trial(workload)
    if not trial.events:
        raise ValueError("there are no events to measure with")
    for name, contestant in contestants.items():
        try:
            seconds = [contestant.fill(workload, None).fill_seconds for _ in range(builds)]
            filled = contestant.fill(workload, sample).take(workload.events)
        except CapabilityError as error:
            trial.unable[name] = str(error)
            continue
        trial.matchers[name] = filled
        trial.build_seconds[name] = [*seconds[1:], filled.fill_seconds] if seconds else []
    return trial
