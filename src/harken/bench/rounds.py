"""Timing things against each other: in one run, interleaved, warm-up thrown away, median and spread kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contestant over all rounds."""

    seconds: tuple[float, ...]

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


def interleaved(contestants: Mapping[Name, Callable[[], object]], rounds: int) -> dict[Name, Timing]:
    """Run every contestant once for warm-up, then all of them in turn, as often as there are rounds."""
    for run in contestants.values():
        run()
    seconds: dict[Name, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            started = perf_counter()
            run()
            seconds[name].append(perf_counter() - started)
    return {name: Timing(tuple(each)) for name, each in seconds.items()}
