"""Compares two results: which figures changed by more than the spread of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harken_lab.bench.figures import BenchResult, Figure

_NOISE = 0.02
"""Differences up to this share are ignored: a figure measured once has no spread of its own."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of the old result and of the new one."""

    old: Figure
    new: Figure

    @property
    def ratio(self) -> float:
        """New divided by old; NaN if the old is 0."""
        return self.new.median / self.old.median if self.old.median else float("nan")

    @property
    def verdict(self) -> str:
        """`better`, `worse` or `different`; empty if the rounds of both overlap."""
        if self.new.least > self.old.most * (1 + _NOISE):
            return {"less": "worse", "more": "better", "same": "different"}[self.new.meaning.better]
        if self.new.most < self.old.least * (1 - _NOISE):
            return {"less": "better", "more": "worse", "same": "different"}[self.new.meaning.better]
        return ""

    def to_dict(self) -> dict[str, Any]:
        ratio = self.ratio if self.old.median else None
        return {
            **{name: value for name, value in self.new.key._asdict().items() if value is not None},
            "old": self.old.median,
            "new": self.new.median,
            "ratio": ratio,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class BenchComparison:
    """The figures of both results, those of only one, and how settings and environment differ."""

    changes: list[FigureChange]
    only_old: list[str]
    only_new: list[str]
    differences: list[str]
    """Settings and environment that differ: if there are any, more than the code has changed."""


def compare(old: BenchResult, new: BenchResult) -> BenchComparison:
    """Pair figures of the same key."""
    before = {figure.key: figure for figure in old.figures}
    after = {figure.key: figure for figure in new.figures}
    return BenchComparison(
        [FigureChange(before[key], figure) for key, figure in after.items() if key in before],
        [str(key) for key in before if key not in after],
        [str(key) for key in after if key not in before],
        [*_differences(old.settings, new.settings), *_differences(old.environment, new.environment)],
    )


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [f"{name}: {old.get(name)} → {new.get(name)}" for name in {**old, **new} if old.get(name) != new.get(name)]
