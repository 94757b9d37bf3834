"""Targets for figures, and whether a result reaches them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken_lab.bench.figures import BenchResult, Figure, Key
from harken_lab.bench.peers import BENCHMARKS, Peer
from harken_lab.harness.result_files import read_as

_BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": ("≥", operator.ge),
    "at_most": ("≤", operator.le),
    "below": ("<", operator.lt),
}
_OURS = "columnar"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for the median of a figure."""

    text: str
    key: Key
    bound: str
    """`at_least`, `at_most`, `below` or `near`."""
    value: float
    within: float = 0.0
    """For `near`: the largest distance from the value, as a share of it."""

    def is_reached(self, figure: Figure | None) -> bool:
        """Whether the figure reaches the target. A figure that was not measured does not."""
        if figure is None:
            return False
        if self.bound == "near":
            return abs(figure.median - self.value) <= self.within * self.value
        return _BOUNDS[self.bound][1](figure.median, self.value)

    @property
    def wanted(self) -> str:
        """The bound as text, as `≥ 20`."""
        sign = f"± {self.within:.0%} of" if self.bound == "near" else _BOUNDS[self.bound][0]
        return f"{sign} {self.value:,g}"


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """A target beside the figure that was measured for it."""

    target: Target
    figure: Figure | None
    reason: str | None
    """Why there is no figure."""

    @property
    def is_reached(self) -> bool:
        return self.target.is_reached(self.figure)

    def to_dict(self) -> dict[str, Any]:
        reached = None if self.figure is None else self.figure.median
        return {
            "target": self.target.text,
            "wanted": self.target.wanted,
            "reached": reached,
            "yes": self.is_reached,
            "reason": self.reason,
        }


def read_targets(path: str | Path = BENCHMARKS / "targets.json") -> list[Target]:
    """The targets in a file. Raises SourceError."""
    return read_as(path, lambda data: [_target(each) for each in data["targets"]], "does not hold targets")


def targets_from(peers: Iterable[Peer]) -> list[Target]:
    """A target for each workload and size: to be quicker than every peer."""
    quickest: dict[tuple[str, int], Peer] = {}
    for peer in peers:
        if peer.size is not None and not peer.prototype:
            place = (peer.workload, peer.size)
            quickest[place] = min(quickest.get(place, peer), peer, key=lambda each: each.us_per_event)
    return [
        Target(
            f"{workload}: µs an event at {size:,}, ahead of all peers; the quickest is {peer.peer}",
            Key("match", workload, size, _OURS),
            "below",
            peer.us_per_event,
        )
        for (workload, size), peer in quickest.items()
    ]


def judge(result: BenchResult, targets: Iterable[Target]) -> list[TargetVerdict]:
    """Compare a result with targets."""
    pairs = [(target, result.find(target.key)) for target in targets]
    return [
        TargetVerdict(target, figure, None if figure else result.missing_reason(target.key)) for target, figure in pairs
    ]


def _target(data: dict[str, Any]) -> Target:
    bound = next((name for name in (*_BOUNDS, "near") if name in data), "at_least")
    return Target(data["target"], Key(**data["figure"]), bound, float(data[bound]), float(data.get("within", 0)))
