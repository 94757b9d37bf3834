"""Timing contestants against each other: in one run, in turn, without their warm-up. Every round is kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)
TURN = 0.1
"""Seconds that a turn of matching should last, so that cold caches and noise are a small part of it."""
MOST_RUNS = 8
"""Most runs of a contestant in its turn. Contestants of a mixture share an index, which frees a buffer of answers that
was not used for 64 turns (`matchers.columnar.buffers`).
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contestant over all rounds."""

    seconds: tuple[float, ...]
    """Of each round: one run, or the mean of the runs in the contestant's turn."""
    first: tuple[float, ...] = ()
    """Of the first run in each turn, when the caches still hold data of other contestants."""

    @property
    def median(self) -> float:
        return median(self.seconds)

    def rates(self, count: int) -> dict[str, float]:
        """Items a second in the median round, the slowest and the quickest."""
        return {
            "median": round(count / self.median, 1),
            "slowest": round(count / max(self.seconds), 1),
            "quickest": round(count / min(self.seconds), 1),
        }

    def microseconds(self, count: int) -> tuple[float, ...]:
        """Microseconds an item, round by round."""
        return tuple(each / count * 1e6 for each in self.seconds)

    def times(self, other: Timing) -> tuple[float, ...]:
        """The ratio to another timing, round by round: what slows a round slows both."""
        return tuple(one / two for one, two in zip(self.seconds, other.seconds, strict=True))


def interleaved(
    contestants: Mapping[Name, Callable[[], object]], rounds: int, least: float = 0.0
) -> dict[Name, Timing]:
    """Run every contestant once to warm up, then all of them in turn, in each of the rounds.

    A contestant whose warm-up took less than `least` seconds runs several times in its turn.
    """
    runs: dict[Name, int] = {}
    for name, run in contestants.items():
        started = perf_counter()
        run()
        took = perf_counter() - started
        runs[name] = max(1, min(MOST_RUNS, ceil(least / max(took, 1e-9))))
    seconds: dict[Name, list[float]] = {name: [] for name in contestants}
    first: dict[Name, list[float]] = {name: [] for name in contestants}
    for _round in range(rounds):
        for name, run in contestants.items():
            started = perf_counter()
            run()
            first[name].append(perf_counter() - started)
            for _ in range(runs[name] - 1):
                run()
            seconds[name].append((perf_counter() - started) / runs[name])
    return {name: Timing(tuple(seconds[name]), tuple(first[name])) for name in contestants}
