"""Whether what a paper found holds here: judged by ratios, with a margin that is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harken.lab.bench.charts import shown
from harken.lab.experiments.rows import SIZE, TIME, Rows

MARGIN = 1.1
"""One figure is less than another if that is so many times as much at least."""
ALIKE = 1.25
"""Two figures are the same if neither is more than so many times the other."""

_UNITS = {TIME: "µs", "fill_seconds": "s", "insert_us": "µs", "delete_us": "µs", "insert_rows_us": "µs"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper beside what was measured."""

    claim: str
    paper_figure: str
    ours: str
    holds: bool | None
    """None where this scale cannot tell."""
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper found, with its figures, and how it is explained where it holds and where it does not."""

    text: str
    paper_figure: str
    because: str
    otherwise: str

    def judged(self, holds: bool | None, ours: str, why: str | None = None) -> Finding:
        """The finding. `why` stands in place of the usual explanation."""
        usual = "" if holds is None else self.because if holds else self.otherwise
        return Finding(self.text, self.paper_figure, ours, holds, why or usual)

    def unmeasured(self, why: str) -> Finding:
        return self.judged(None, "not measured", why)


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of two entrants at one place."""

    place: int
    one: float
    other: float
    told: str

    @property
    def ratio(self) -> float:
        """How many times the first figure the second one is."""
        return self.other / self.one


def pairs(rows: Rows, one: str, other: str, field: str = TIME, **where: Any) -> list[Pair]:
    """The figures of two entrants at every size that both have, ascending."""
    unit = _UNITS.get(field, "bytes")
    found = []
    for place in rows.shared(field, (one, other), **where):
        first, second = (rows.value(field, entrant=each, **{SIZE: place}, **where) for each in (one, other))
        assert first is not None
        assert second is not None
        ratio = f"{shown(second / first)} times" if first else "from nothing"
        told = f"{one} {shown(first)} {unit}, {other} {shown(second)} {unit}: {ratio}, at {place:,} subscriptions"
        found.append(Pair(place, first, second, told))
    return [each for each in found if each.one > 0]


def less(
    claim: Claim, rows: Rows, smaller: str, larger: str, field: str = TIME, margin: float = MARGIN, **where: Any
) -> Finding:
    """Whether one entrant needs less than another, where both have the most subscriptions."""
    found = pairs(rows, smaller, larger, field, **where)
    if not found:
        return claim.unmeasured(missing(rows, smaller, larger, **where))
    return claim.judged(found[-1].ratio >= margin, f"{found[-1].told} (holds from {shown(margin)})")


def less_everywhere(claim: Claim, rows: Rows, smaller: str, larger: str, field: str = TIME, **where: Any) -> Finding:
    """Whether one entrant needs less than another at every size."""
    found = pairs(rows, smaller, larger, field, **where)
    if not found:
        return claim.unmeasured(missing(rows, smaller, larger, **where))
    ratios = ", ".join(f"{each.place:,}: {shown(each.ratio)}" for each in found)
    ours = f"{larger} by {smaller}, by subscriptions: {ratios} (holds from {MARGIN:g} at all sizes)"
    return claim.judged(all(each.ratio >= MARGIN for each in found), ours)


def about(
    claim: Claim, rows: Rows, one: str, other: str, factor: float, within: float, field: str = TIME, **where: Any
) -> Finding:
    """Whether one entrant needs so many times what another does, give or take a factor."""
    found = pairs(rows, one, other, field, **where)
    if not found:
        return claim.unmeasured(missing(rows, one, other, **where))
    least, most = factor / within, factor * within
    ours = f"{found[-1].told} (holds from {shown(least)} to {shown(most)})"
    return claim.judged(least <= found[-1].ratio <= most, ours)


def alike(claim: Claim, rows: Rows, one: str, other: str, field: str = TIME, **where: Any) -> Finding:
    """Whether two entrants need the same."""
    return about(claim, rows, one, other, 1.0, ALIKE, field, **where)


def exponent(points: Mapping[int, float]) -> float | None:
    """The power of the size with which a figure grows: least squares on the logarithms of both."""
    logs = [(math.log(size), math.log(value)) for size, value in points.items() if value > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(each) / len(logs) for each in zip(*logs, strict=True))
    spread = math.fsum((x - mean_x) * (x - mean_x) for x, _ in logs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def missing(rows: Rows, *entrants: str, **where: Any) -> str:
    """Why there is nothing to compare."""
    refusals = rows.refusals(*entrants, **where)
    return refusals[0] if refusals else f"this scale does not have {' and '.join(entrants)} together"
