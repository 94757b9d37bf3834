"""One run of an experiment: all entrants are filled, agree on the answers outside the timer, and take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from harken.errors import CapabilityError, LimitError
from harken.lab.bench.answers import refuse_differences, refuse_wrong
from harken.lab.bench.contestants import Offsets
from harken.lab.bench.rounds import Timing, interleaved
from harken.lab.experiments.entrants import NOT_INDEX, Entrant, Filled, FilledOneByOne, fill, refusal, takes_one_by_one
from harken.lab.experiments.rows import Row
from harken.lab.workloads import generate
from harken.lab.workloads.workload import Workload
from harken.limits import DEFAULT_LIMITS, Limits

SAMPLE = 256
"""Events that the columnar index is planned by. They are never those that are measured."""
_SAMPLE_SEED = 1_000_003
_VERIFIED = 64
_PAIRS = 2_000_000
"""Answers are verified, and what is looked at is counted, on as many events as have so many matches together."""
_EVALUATED = 2
_PILOT = 4
_SLOW = 5
"""Two events that take so many times as long as a round is meant to are timed once."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a scale takes for one figure."""

    rounds: int
    seconds: float
    """An entrant matches as many of the events in a round as it is quick enough for, but two at least."""
    patience: float
    """One that takes longer for an event, or a hundred times as long to be filled, is left out at larger sizes."""
    one_by_one: int
    """The most subscriptions for matchers that take them one by one."""


PACES = {
    "smoke": Pace(rounds=2, seconds=0.02, patience=0.1, one_by_one=2_000),
    "laptop": Pace(rounds=5, seconds=0.2, patience=0.25, one_by_one=400_000),
    "full": Pace(rounds=7, seconds=1.5, patience=2.0, one_by_one=400_000),
}


@dataclass(slots=True)
class Run:
    """The parameters of a run, and what was learnt of the entrants so far."""

    parameters: dict[str, Any]
    pace: Pace
    seed: int
    tell: Callable[[str], None]
    _left_out: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """From which size on an entrant is not asked any more, by workload, and why."""

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def draw(self, name: str, subscriptions: int, **parameters: Any) -> Workload:
        """A workload by the seed of the run, with as many events as the scale has."""
        return generate(name, subscriptions, self["events"], self.seed, **parameters)

    def compare(
        self, workload: Workload, entrants: Sequence[Entrant], limits: Limits = DEFAULT_LIMITS, **more: Any
    ) -> Iterator[Row]:
        """A row for every entrant: its time and memory, or why it was refused. `more` is written in each of them."""
        filled, refused = self.fill_all(workload, entrants, limits)
        verify(workload, filled)
        self.tell(f"{title(workload)}: timing")
        found = self._timed(filled)
        for entrant in entrants:
            row = row_of(entrant, workload) | more
            if entrant.name in refused:
                yield row | refused[entrant.name]
                continue
            each = filled[entrant.name]
            times = found[entrant.name].microseconds(each.events)
            self._remember(workload, entrant, each, median(times) / 1e6)
            yield row | timed(times) | described(each)

    def fill_all(
        self, workload: Workload, entrants: Sequence[Entrant], limits: Limits = DEFAULT_LIMITS
    ) -> tuple[dict[str, Filled], dict[str, Row]]:
        """Entrants with all subscriptions and as many events as they are quick enough for; why others are not there."""
        sample = self.sample_of(workload)
        filled: dict[str, Filled] = {}
        refused: dict[str, Row] = {}
        for entrant in entrants:
            self.tell(f"{title(workload)}: filling {entrant.name}")
            try:
                self._refuse_slow(workload, entrant)
                self._warm_up(workload, entrant, sample)
                each = fill(entrant, workload, sample, limits)
                self._give_events(each, workload.events)
                filled[entrant.name] = each
            except (LimitError, CapabilityError) as error:
                refused[entrant.name] = refusal(error)
                if isinstance(error, LimitError):
                    self._leave_out(workload, entrant, f"it stopped at {error.limit}")
        return filled, refused

    def _timed(self, filled: dict[str, Filled]) -> dict[str, Timing]:
        """All of them in turn; those that are very slow once, since they were warmed up by verifying them."""
        slow = {name for name, each in filled.items() if each.events * each.event_seconds > _SLOW * self.pace.seconds}
        found = interleaved({name: filled[name].find for name in filled if name not in slow}, self.pace.rounds)
        for name in slow:
            started = perf_counter()
            filled[name].find()
            found[name] = Timing((perf_counter() - started,))
        return found

    def sample_of(self, workload: Workload) -> pa.Table:
        """Other events of the same kind."""
        return generate(workload.name, 0, SAMPLE, self.seed + _SAMPLE_SEED, **workload.parameters).events

    def _warm_up(self, workload: Workload, entrant: Entrant, sample: pa.Table) -> None:
        """Fill it with little, so that what is compiled once is in no figure."""
        little = generate(workload.name, 20, 2, self.seed, **workload.parameters)
        each = fill(entrant, little, sample)
        each.take(little.events)
        each.find()

    def _give_events(self, filled: Filled, events: pa.Table) -> None:
        """As many as it is quick enough for. It has to be quick with one before it is tried with some."""
        for pilot in (1, _PILOT):
            filled.take(events.slice(0, pilot))
            started = perf_counter()
            filled.find()
            filled.event_seconds = max((perf_counter() - started) / filled.events, 1e-9)
            if filled.event_seconds > self.pace.seconds:
                break
        filled.take(events.slice(0, max(2, int(self.pace.seconds / filled.event_seconds))))

    def _refuse_slow(self, workload: Workload, entrant: Entrant) -> None:
        size, reason = self._left_out.get((workload.name, entrant.name), (workload.subscriptions, ""))
        if size < workload.subscriptions:
            raise CapabilityError(f"it is not tried any more: with {size:,} subscriptions {reason}")
        if workload.subscriptions > self.pace.one_by_one and takes_one_by_one(entrant):
            most = f"{self.pace.one_by_one:,}"
            raise CapabilityError(f"it takes subscriptions one by one, and gets {most} at most at this scale")

    def _remember(self, workload: Workload, entrant: Entrant, filled: Filled, seconds: float) -> None:
        if isinstance(filled, FilledOneByOne):
            return
        if seconds > self.pace.patience:
            self._leave_out(workload, entrant, f"an event took {seconds:.2g} s")
        elif filled.fill_seconds > 100 * self.pace.patience:
            self._leave_out(workload, entrant, f"filling took {filled.fill_seconds:.0f} s")

    def _leave_out(self, workload: Workload, entrant: Entrant, reason: str) -> None:
        self._left_out.setdefault((workload.name, entrant.name), (workload.subscriptions, reason))


def verify(workload: Workload, filled: dict[str, Filled]) -> None:
    """Raise WrongAnswerError unless all agree with one, on the events that both have, and that one with evaluation."""
    if not filled:
        return
    name, first = max(filled.items(), key=lambda item: item[1].events)
    most = min(_VERIFIED, first.events, _events_within(first.found()[1]))
    counts = {other: min(each.events, most) for other, each in filled.items()}
    expected = {count: first.answers(count) for count in set(counts.values())}
    for other, each in filled.items():
        refuse_differences({name: expected[counts[other]], other: each.answers(counts[other])}, title(workload))
    picked = np.unique(np.linspace(0, counts[name] - 1, _EVALUATED).astype(np.int64))
    refuse_wrong(name, expected[counts[name]], workload, picked)


def title(workload: Workload) -> str:
    """The workload and its size."""
    return f"{workload.name} with {workload.subscriptions:,} subscriptions"


def row_of(entrant: Entrant, workload: Workload) -> Row:
    """What a row says of its place."""
    return {
        "workload": workload.name,
        "subscriptions": workload.subscriptions,
        "entrant": entrant.name,
        "algorithm": entrant.algorithm,
        "options": dict(entrant.options),
    }


def timed(microseconds: Sequence[float]) -> Row:
    """The time of an event: the median round, the quickest and the slowest."""
    middle, least, most = median(microseconds), min(microseconds), max(microseconds)
    return {"us_per_event": round(middle, 4), "least_us": round(least, 4), "most_us": round(most, 4)}


def described(filled: Filled) -> Row:
    """What else there is to be said of an entrant: answers, memory and the time to fill it."""
    _, offsets = filled.found()
    examined = filled.examined(_events_within(offsets))
    row: Row = {
        "events": filled.events,
        "matches_per_event": round(int(offsets[-1]) / filled.events, 3),
        "examined_per_event": None if examined is None else round(examined, 3),
        "fill_seconds": round(filled.fill_seconds, 5),
    }
    memory = filled.memory()
    if memory:
        row["bytes"] = sum(memory.values())
        row["index_bytes"] = sum(size for name, size in memory.items() if name not in NOT_INDEX)
        row["memory"] = memory
    details = filled.details()
    return row | ({"details": details} if details else {})


def _events_within(offsets: Offsets) -> int:
    """How many of the events have not too many matches together. Two at least, if there are two."""
    return min(len(offsets) - 1, max(2, int(np.searchsorted(offsets, _PAIRS, "right")) - 1))
