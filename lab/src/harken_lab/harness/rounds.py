"""Timing contestants against each other: in one run, in turn, without their warm-up, every round kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)
TURN = 0.1
"""Seconds a turn of matching should last, so that cold caches and noise of the machine are a small part of it."""
MOST_RUNS = 8
"""Runs of a contestant in its turn, at most. Those of a mixture share an index, which frees an answer's buffer after 64
turns without use (`matchers.columnar.buffers`).
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contestant over all rounds."""

    seconds: tuple[float, ...]
    """Per run: the mean of a turn that had several."""
    first: tuple[float, ...] = ()
    """Of the first run in each turn, whose caches hold what others left there."""

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
        return tuple(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))


def interleaved(
    contestants: Mapping[Name, Callable[[], object]], rounds: int, least: float = 0.0
) -> dict[Name, Timing]:
    """Run every contestant once for warm-up, then all of them in turn, for so many rounds.

    One whose warm-up took less than `least` seconds runs several times in its turn.
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
