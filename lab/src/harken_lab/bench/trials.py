"""A workload at one size, with every contestant of the benchmark that can do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from harken.errors import CapabilityError
from harken_lab.harness.contestants import Contestant, Filled
from harken_lab.workloads.workload import Workload

BASELINE = "counting_lists"
CONTESTANTS: dict[str, Contestant] = {
    # An engine keeps up to 1,024 rows unindexed. Here all are indexed, so that it is the index that is timed.
    "columnar": Contestant.of("columnar", small_rows=0, recent_rows=1),
    BASELINE: Contestant.of(BASELINE),
}
"""By the names of their algorithms. The first is measured, the last is what it is measured by."""


@dataclass(slots=True)
class Trial:
    """A workload with its contestants, each with all events."""

    workload: Workload
    matchers: dict[str, Filled] = field(default_factory=dict)
    build_seconds: dict[str, list[float]] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)
    """Why a contestant cannot do this workload."""

    @property
    def size(self) -> int:
        return self.workload.subscriptions

    @property
    def events(self) -> int:
        return int(self.workload.events.num_rows)

    @property
    def first(self) -> Filled:
        """The contestant whose answers stand for those of all, once they are verified."""
        return next(iter(self.matchers.values()))


def prepare(workload: Workload, sample: pa.Table, contestants: Mapping[str, Contestant], builds: int = 0) -> Trial:
    """Fill every contestant once for warm-up, then `builds` times by the clock.

    One that cannot do the workload is noted; every other failure is fatal.
    """
    trial = Trial(workload)
    if not trial.events:
        raise ValueError("there are no events to measure with")
    for name, contestant in contestants.items():
        try:
            several = [contestant.fill(workload, None).fill_seconds for _ in range(builds)]
            filled = contestant.fill(workload, sample).take(workload.events)
        except CapabilityError as error:
            trial.unable[name] = str(error)
            continue
        trial.matchers[name] = filled
        trial.build_seconds[name] = [*several[1:], filled.fill_seconds] if several else []
    return trial
