"""Figures with their spread: round by round, or from the least to the most; and whether they are within a margin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from harken_lab.experiments.figure_rows import SIZE, TIME, Row, WorkloadRows
from harken_lab.experiments.margins import NO_ROUNDS, OUTLIERS_FROM, STANDARD_ERRORS
from harken_lab.harness.charts import shown

ROUNDS = "rounds"
"""The field of a row with the figures of all rounds or seeds, by name."""
_TIMES = ("_us", "seconds", "parse_share", TIME)
"""The ends of the names of times, and of ratios of times."""
_EVALUATED = "evaluated_per_event"


@dataclass(frozen=True, slots=True)
class FigureSpread:
    """A figure with its spread."""

    middle: float
    least: float
    most: float
    rounds: tuple[float, ...] = ()
    """The figure round by round; empty if only the ends are known."""

    @classmethod
    def of_rounds(cls, rounds: Sequence[float], middle: float | None = None) -> FigureSpread:
        """The spread of rounds. Of `OUTLIERS_FROM` rounds and more, the least and the most do not count."""
        ends = sorted(rounds)[1:-1] if len(rounds) >= OUTLIERS_FROM else rounds
        middle = median(rounds) if middle is None else middle
        return cls(middle, min(*ends, middle), max(*ends, middle), tuple(rounds))

    @classmethod
    def of_ends(cls, middle: float, least: float, most: float) -> FigureSpread:
        """The spread of rounds of which only the ends are kept: the nearer end counts on both sides."""
        factor = min(middle / least, most / middle)
        return cls(middle, middle / factor, middle * factor)

    @classmethod
    def exact(cls, value: float) -> FigureSpread:
        return cls(value, value, value)

    def __truediv__(self, other: FigureSpread) -> FigureSpread:
        """The ratio: round by round if both have the same rounds, for what slows a round slows both."""
        middle = self.middle / other.middle
        if len(self.rounds) == len(other.rounds) > 1:
            return self.of_rounds([one / two for one, two in zip(self.rounds, other.rounds, strict=True)], middle)
        return FigureSpread(middle, self.least / other.most, self.most / other.least)

    def __str__(self) -> str:
        ends = [shown(self.least), shown(self.most)]
        return shown(self.middle) if ends[0] == ends[1] else f"{shown(self.middle)} ({' to '.join(ends)})"


def spread_of(row: Row, field: str) -> FigureSpread:
    """A figure of a row with its spread: of its rounds, else of its ends, else of its deviation over drawings.

    A time without any of them gets the spread of `NO_ROUNDS`. Other figures are exact.
    """
    value = float(row[field])
    rounds = row.get(ROUNDS, {}).get(field)
    if rounds:
        return FigureSpread.of_rounds(rounds, value)
    if field == TIME and "least_us" in row:
        return FigureSpread.of_ends(value, row["least_us"], row["most_us"])
    if field == _EVALUATED and row.get("deviation"):
        error = STANDARD_ERRORS * row["deviation"] / math.sqrt(row["seeds"])
        return FigureSpread(value, value - error, value + error)
    if field.endswith(_TIMES):
        return FigureSpread(value, value / NO_ROUNDS, value * NO_ROUNDS)
    return FigureSpread.exact(value)


def spreads(rows: WorkloadRows, field: str, by: str = SIZE, **wanted: Any) -> dict[Any, FigureSpread]:
    """The figures of a field with their spreads, by the values of another field, ascending."""
    figures = {row[by]: spread_of(row, field) for row in rows.where(**wanted) if row.get(field) is not None}
    return dict(sorted(figures.items()))


def within(figure: FigureSpread, least: float = -math.inf, most: float = math.inf) -> bool | None:
    """Whether a figure is within a margin; None if an end of the margin lies within the spread."""
    if least <= figure.least and figure.most <= most:
        return True
    return False if figure.most < least or figure.least > most else None


def below(one: FigureSpread, other: FigureSpread) -> bool | None:
    """Whether a figure is below another; None if their spreads overlap."""
    return True if one.most < other.least else False if one.least >= other.most else None


def majority(verdicts: Sequence[bool | None]) -> bool | None:
    """The verdict at most of the sizes; None without one."""
    return next((each for each in (True, False) if 2 * list(verdicts).count(each) > len(verdicts)), None)


def everywhere(verdicts: Sequence[bool | None]) -> bool | None:
    """True if all are, False if one is not, else None."""
    return False if False in verdicts else None if None in verdicts else True


def mean_of(figures: Sequence[FigureSpread]) -> FigureSpread:
    """The mean of several figures, with the means of their ends."""
    middle, least, most = zip(*((each.middle, each.least, each.most) for each in figures), strict=True)
    return FigureSpread(fmean(middle), fmean(least), fmean(most))


def exponent(points: Mapping[float, float]) -> float | None:
    """The exponent of a figure's growth with the size, by least squares on the logarithms; None for one point."""
    logs = [(math.log(size), math.log(value)) for size, value in points.items() if value > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(each) / len(logs) for each in zip(*logs, strict=True))
    variance = math.fsum((x - mean_x) * (x - mean_x) for x, _ in logs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / variance


def growth_of(points: Mapping[float, FigureSpread]) -> FigureSpread | None:
    """The exponent of growth with its spread: of each round if all sizes have as many, else between the ends."""
    points = {size: each for size, each in points.items() if each.least > 0}
    middle = exponent({size: each.middle for size, each in points.items()})
    if middle is None:
        return None
    counts = {len(each.rounds) for each in points.values()}
    if len(counts) == 1 and max(counts) > 1:
        turns = [{size: each.rounds[turn] for size, each in points.items()} for turn in range(max(counts))]
    else:
        centre = math.exp(sum(map(math.log, points)) / len(points))
        turns = [
            {size: each.most if (size < centre) == is_flat else each.least for size, each in points.items()}
            for is_flat in (True, False)
        ]
    ends = FigureSpread.of_rounds([power for power in map(exponent, turns) if power is not None], middle)
    return FigureSpread(middle, ends.least, ends.most)
