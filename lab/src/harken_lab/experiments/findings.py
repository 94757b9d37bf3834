"""Whether a paper's claims hold here. They are judged by ratios, with a margin that the finding states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harken_lab.experiments.figure_rows import TIME, WorkloadRows
from harken_lab.harness.charts import shown

MARGIN = 1.1
"""The least ratio of two figures at which the smaller counts as less."""
ALIKE = 1.25
"""The greatest ratio of two figures at which they count as the same."""

_UNITS = {TIME: "µs", "fill_seconds": "s", "insert_us": "µs", "delete_us": "µs", "insert_rows_us": "µs"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper, its figures, ours, and whether the claim holds."""

    claim: str
    paper_figure: str
    ours: str
    holds: bool | None
    """None if this scale cannot tell."""
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, with the paper's figures, and explanations for both outcomes here."""

    text: str
    paper_figure: str
    because: str
    otherwise: str

    def judged(self, holds: bool | None, ours: str, why: str | None = None) -> Finding:
        """The finding. `why` replaces the claim's explanation."""
        usual = "" if holds is None else self.because if holds else self.otherwise
        return Finding(self.text, self.paper_figure, ours, holds, why or usual)

    def unmeasured(self, why: str) -> Finding:
        return self.judged(None, "not measured", why)


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of two contestants at one size."""

    place: int
    one: float
    other: float
    text: str
    """Both figures and their ratio, for a finding."""

    @property
    def ratio(self) -> float:
        """The second figure divided by the first."""
        return self.other / self.one


def pairs(rows: WorkloadRows, one: str, other: str, field: str = TIME) -> list[Pair]:
    """The figures of two contestants at every size that both have, ascending, unless the first is 0."""
    unit = _UNITS.get(field, "bytes")
    figures, others = (rows.points(field, entrant=each) for each in (one, other))
    compared = []
    for place in rows.shared(field, (one, other)):
        first, second = figures[place], others[place]
        if first > 0:
            ratio = f"{shown(second / first)} times"
            text = f"{one} {shown(first)} {unit}, {other} {shown(second)} {unit}: {ratio}, at {place:,} subscriptions"
            compared.append(Pair(place, first, second, text))
    return compared


def less(
    claim: Claim, rows: WorkloadRows, smaller: str, larger: str, field: str = TIME, margin: float = MARGIN
) -> Finding:
    """Whether one contestant needs less than another, at the largest size that both have."""
    compared = pairs(rows, smaller, larger, field)
    if not compared:
        return claim.unmeasured(missing(rows, smaller, larger))
    return claim.judged(compared[-1].ratio >= margin, f"{compared[-1].text} (holds from {shown(margin)})")


def less_everywhere(claim: Claim, rows: WorkloadRows, smaller: str, larger: str) -> Finding:
    """Whether one contestant needs less time than another at every size."""
    compared = pairs(rows, smaller, larger)
    if not compared:
        return claim.unmeasured(missing(rows, smaller, larger))
    ratios = ", ".join(f"{each.place:,}: {shown(each.ratio)}" for each in compared)
    ours = f"{larger} by {smaller}, by subscriptions: {ratios} (holds from {MARGIN:g} at all sizes)"
    return claim.judged(all(each.ratio >= MARGIN for each in compared), ours)


def about(
    claim: Claim, rows: WorkloadRows, one: str, other: str, factor: float, within: float, field: str = TIME
) -> Finding:
    """Whether one contestant needs `factor` times what another does, give or take a factor of `within`."""
    compared = pairs(rows, one, other, field)
    if not compared:
        return claim.unmeasured(missing(rows, one, other))
    least, most = factor / within, factor * within
    ours = f"{compared[-1].text} (holds from {shown(least)} to {shown(most)})"
    return claim.judged(least <= compared[-1].ratio <= most, ours)


def alike(claim: Claim, rows: WorkloadRows, one: str, other: str) -> Finding:
    """Whether two contestants need the same time."""
    return about(claim, rows, one, other, 1.0, ALIKE)


def exponent(points: Mapping[int, float]) -> float | None:
    """The exponent of a figure's growth with the size, by least squares on the logarithms; None for one point."""
    logs = [(math.log(size), math.log(value)) for size, value in points.items() if value > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(each) / len(logs) for each in zip(*logs, strict=True))
    spread = math.fsum((x - mean_x) * (x - mean_x) for x, _ in logs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def missing(rows: WorkloadRows, *contestants: str) -> str:
    """The reason why there is nothing to compare."""
    rejections = rows.rejections(*contestants)
    return rejections[0] if rejections else f"this scale does not have {' and '.join(contestants)} together"
