"""Timing things against each other: in one run, interleaved, warm-up thrown away, median and spread kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)
TURN = 0.1
"""Seconds that a turn of matching is to last: what others leave in the caches, and what other guests of the machine do,
is then a small part of it, as it is of the turn of a matcher that is slow.
"""
MOST_RUNS = 8
"""How often a contestant runs in its turn, at most. Those of a mixture share an index, and it gives up the memory of an
answer that nobody wanted 64 times (`matchers.columnar.buffers`).
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contestant over all rounds."""

    seconds: tuple[float, ...]
    """Of a run. Where there were several in a turn, on average."""
    first: tuple[float, ...] = ()
    """Of the first run in each turn, which finds in the caches what others left there."""

    @property
    def median(self) -> float:
        return median(self.seconds)

    def rates(self, count: int) -> dict[str, float]:
        """Items a second: the median round, the slowest and the quickest."""
        return {
            "median": round(count / self.median, 1),
            "slowest": round(count / max(self.seconds), 1),
            "quickest": round(count / min(self.seconds), 1),
        }

    def microseconds(self, count: int) -> tuple[float, ...]:
        """Microseconds an item, round by round."""
        return tuple(each / count * 1e6 for each in self.seconds)

    def times(self, other: Timing) -> tuple[float, ...]:
        """How many times as long as the other it took, round by round: what slows a round slows both of them."""
        return tuple(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))


def interleaved(
    contestants: Mapping[Name, Callable[[], object]], rounds: int, least: float = 0.0
) -> dict[Name, Timing]:
    """Run every contestant once for warm-up, then all of them in turn, as often as there are rounds.

    One that took less than `least` seconds for its warm-up runs several times in its turn.
    """
    runs: dict[Name, int] = {}
    for name, run in contestants.items():
        started = perf_counter()
        run()
        took = perf_counter() - started
        runs[name] = max(1, min(MOST_RUNS, ceil(least / max(took, 1e-9))))
    seconds: dict[Name, list[float]] = {name: [] for name in contestants}
    first: dict[Name, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            started = perf_counter()
            run()
            first[name].append(perf_counter() - started)
            for _again in range(runs[name] - 1):
                run()
            seconds[name].append((perf_counter() - started) / runs[name])
    return {name: Timing(tuple(seconds[name]), tuple(first[name])) for name in contestants}
