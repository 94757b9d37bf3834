"""One run of an experiment: contestants are filled, verified outside of any timer, and timed in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from harken.errors import CapabilityError, LimitError
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.roles import AddsInBulk
from harken_lab.experiments.figure_rows import TIME, Row
from harken_lab.experiments.spreads import ROUNDS
from harken_lab.harness.contestants import Contestant, FilledMatcher, sample_of
from harken_lab.harness.learning import details_of
from harken_lab.harness.rounds import Timing, interleaved
from harken_lab.harness.verified_answers import Offsets, title, verify
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

_VERIFIED = 64
_EVALUATED = 2
_MATCHES = 2_000_000
"""Answers are verified, and candidates counted, on the first events that have this many matches together."""
_PILOT = 4
_SLOW = 5
"""A contestant is timed only once if its turn takes more than this many times the intended seconds."""


@dataclass(frozen=True, slots=True)
class ScalePace:
    """The time that a scale spends on one figure."""

    rounds: int
    seconds: float
    """Seconds of a turn: a contestant matches as many events as it can in that time, but at least two."""
    patience: float
    """Larger sizes are skipped after more seconds than this for an event, or 100 times as many for filling."""
    one_by_one: int
    """Most subscriptions of matchers that do not add in bulk."""


PACES = {
    "smoke": ScalePace(rounds=2, seconds=0.02, patience=0.1, one_by_one=2_000),
    "laptop": ScalePace(rounds=3, seconds=0.2, patience=0.25, one_by_one=400_000),
    "full": ScalePace(rounds=7, seconds=1.5, patience=2.0, one_by_one=400_000),
}


@dataclass(slots=True)
class Run:
    """The parameters of a run, and the contestants that were too slow so far."""

    parameters: dict[str, Any]
    pace: ScalePace
    seed: int
    tell: Callable[[str], None]
    _left_out: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """By workload and contestant: the size beyond which the contestant is skipped, and why."""

    _pilots: dict[str, float] = field(default_factory=dict)
    """Seconds for an event in a first try, by contestant."""

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def draw(self, name: str, subscriptions: int, **parameters: Any) -> Workload:
        """Draw a workload with the seed of the run and the scale's number of events."""
        return generate(name, subscriptions, self["events"], self.seed, **parameters)

    def compare(
        self, workload: Workload, contestants: Sequence[Contestant], limits: Limits = DEFAULT_LIMITS, **more: Any
    ) -> Iterator[Row]:
        """A row for every contestant: its time and memory, or why it was rejected. `more` is added to each row."""
        filled, rejected = self.fill_all(workload, contestants, limits)
        verify(workload, filled, most=_verified(filled), evaluated=_EVALUATED)
        self.tell(f"{title(workload)}: timing")
        timings = self._timed(filled)
        for contestant in contestants:
            row = row_of(contestant, workload) | more
            if contestant.name in rejected:
                yield row | rejected[contestant.name]
                continue
            each = filled[contestant.name]
            times = timings[contestant.name].microseconds(each.events)
            self._remember(workload, contestant, each, median(times) / 1e6)
            yield row | timed(times) | described(each)

    def fill_all(
        self, workload: Workload, contestants: Sequence[Contestant], limits: Limits = DEFAULT_LIMITS
    ) -> tuple[dict[str, FilledMatcher], dict[str, Row]]:
        """Contestants with all subscriptions and as many events as fit a turn, and a row for each that was rejected."""
        sample = self.sample_of(workload)
        filled: dict[str, FilledMatcher] = {}
        rejected: dict[str, Row] = {}
        for contestant in contestants:
            self.tell(f"{title(workload)}: filling {contestant.name}")
            try:
                self._reject_slow(workload, contestant)
                self._warm_up(workload, contestant, sample)
                each = contestant.fill(workload, sample, limits)
                self._give_events(contestant.name, each, workload.events)
                filled[contestant.name] = each
            except (LimitError, CapabilityError) as error:
                rejected[contestant.name] = rejection(error)
                if isinstance(error, LimitError):
                    self._leave_out(workload, contestant, f"it stopped at {error.limit}")
        return filled, rejected

    def _timed(self, filled: dict[str, FilledMatcher]) -> dict[str, Timing]:
        """Time all contestants in turn, very slow ones only once: verifying them was their warm-up."""
        slow = {name for name, each in filled.items() if each.events * self._pilots[name] > _SLOW * self.pace.seconds}
        timings = interleaved({name: filled[name].find for name in filled if name not in slow}, self.pace.rounds)
        for name in slow:
            started = perf_counter()
            filled[name].find()
            timings[name] = Timing((perf_counter() - started,))
        return timings

    def sample_of(self, workload: Workload) -> pa.Table:
        """Other events of the same workload, to plan by."""
        return sample_of(workload.name, self.seed, **workload.parameters).events

    def _warm_up(self, workload: Workload, contestant: Contestant, sample: pa.Table) -> None:
        """Fill and match a small workload, so that no figure includes compiling kernels."""
        small = generate(workload.name, 20, 2, self.seed, **workload.parameters)
        contestant.fill(small, sample).take(small.events).find()

    def _give_events(self, name: str, filled: FilledMatcher, events: pa.Table) -> None:
        """Give a matcher as many events as fit a turn, after a try with one event and, if that is quick, a few."""
        for pilot in (1, _PILOT):
            filled.take(events.slice(0, pilot))
            started = perf_counter()
            filled.find()
            seconds = max((perf_counter() - started) / filled.events, 1e-9)
            if seconds > self.pace.seconds:
                break
        self._pilots[name] = seconds
        filled.take(events.slice(0, max(2, int(self.pace.seconds / seconds))))

    def _reject_slow(self, workload: Workload, contestant: Contestant) -> None:
        size, reason = self._left_out.get((workload.name, contestant.name), (workload.subscriptions, ""))
        if size < workload.subscriptions:
            raise CapabilityError(f"it is skipped: with {size:,} subscriptions {reason}")
        if workload.subscriptions > self.pace.one_by_one and not isinstance(contestant.matcher(), AddsInBulk):
            most = f"{self.pace.one_by_one:,}"
            raise CapabilityError(
                f"it does not add in bulk, and this scale gives such matchers at most {most} subscriptions"
            )

    def _remember(self, workload: Workload, contestant: Contestant, filled: FilledMatcher, seconds: float) -> None:
        if not isinstance(filled.matcher, AddsInBulk):
            return
        if seconds > self.pace.patience:
            self._leave_out(workload, contestant, f"an event took {seconds:.2g} s")
        elif filled.fill_seconds > 100 * self.pace.patience:
            self._leave_out(workload, contestant, f"filling took {filled.fill_seconds:.0f} s")

    def _leave_out(self, workload: Workload, contestant: Contestant, reason: str) -> None:
        self._left_out.setdefault((workload.name, contestant.name), (workload.subscriptions, reason))


def rejection(error: LimitError | CapabilityError) -> Row:
    """The fields of a row for a contestant that was rejected, with the limit if it stopped at one."""
    message = str(error).partition("\n")[0]
    if isinstance(error, LimitError):
        return {"rejected": f"stopped at {error.limit}: {message}", "limit": error.limit}
    return {"rejected": f"cannot: {message}"}


def row_of(contestant: Contestant, workload: Workload) -> Row:
    """The first fields of every row of a contestant."""
    return {
        "workload": workload.name,
        "subscriptions": workload.subscriptions,
        "entrant": contestant.name,
        "algorithm": contestant.algorithm,
        "options": dict(contestant.options),
    }


def timed(microseconds: Sequence[float]) -> Row:
    """The fields of a row with the time of an event: in the median round, the quickest and the slowest, and in all."""
    middle, least, most = median(microseconds), min(microseconds), max(microseconds)
    figures = {"us_per_event": round(middle, 4), "least_us": round(least, 4), "most_us": round(most, 4)}
    return figures | {ROUNDS: {TIME: [round(each, 4) for each in microseconds]}}


def joined(one: Row, other: Row) -> Row:
    """The fields of two rows about the same contestant, the second's where both have one; rounds of both."""
    rounds = one.get(ROUNDS, {}) | other.get(ROUNDS, {})
    return {**one, **other, **({ROUNDS: rounds} if rounds else {})}


def described(filled: FilledMatcher) -> Row:
    """The fields of a row with matches, memory, the time of filling, and the algorithm's own statistics."""
    offsets, _ = filled.matches()
    examined = filled.examined(_events_within(offsets))
    row: Row = {
        "events": filled.events,
        "matches_per_event": round(int(offsets[-1]) / filled.events, 3),
        "examined_per_event": None if examined is None else round(examined, 3),
        "fill_seconds": round(filled.fill_seconds, 5),
    }
    memory = filled.memory()
    if memory:
        row |= {"bytes": sum(memory.values()), "index_bytes": filled.index_bytes(), "memory": memory}
    details = details_of(filled.matcher)
    return row | ({"details": details} if details else {})


def _verified(filled: dict[str, FilledMatcher]) -> int:
    """The number of events to verify: fewer if they have very many matches."""
    most = max(filled.values(), key=lambda each: each.events, default=None)
    return _VERIFIED if most is None else min(_VERIFIED, _events_within(most.matches()[0]))


def _events_within(offsets: Offsets) -> int:
    """The number of first events that have at most _MATCHES matches together; at least two, if there are two."""
    return min(len(offsets) - 1, max(2, int(np.searchsorted(offsets, _MATCHES, "right")) - 1))
