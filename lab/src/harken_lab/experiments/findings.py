"""Whether a paper's claims hold here. They are judged by ratios, with a margin and a spread that the finding states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken_lab.experiments.figure_rows import TIME, WorkloadRows
from harken_lab.experiments.margins import ALIKE, LESS
from harken_lab.experiments.spreads import FigureSpread, everywhere, majority, spreads, within
from harken_lab.harness.charts import shown

UNMEASURED = "not measured"
_DIVIDED = "It holds at some sizes and not at others, and neither are most of them."
_UNITS = {TIME: "µs", "fill_seconds": "s", "insert_us": "µs", "delete_us": "µs", "insert_rows_us": "µs"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper, its figures, ours, and whether the claim holds."""

    claim: str
    paper_figure: str
    ours: str
    holds: bool | None
    """None if it cannot be told, or was not measured."""
    why: str
    is_measured: bool = True

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if not self.is_measured:
            return UNMEASURED
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, with the paper's figures, and explanations for both outcomes here."""

    text: str
    paper_figure: str
    because: str = ""
    otherwise: str = ""

    def judged(self, holds: bool | None, ours: str, why: str | None = None) -> Finding:
        """The finding. `why` replaces the claim's explanation."""
        usual = "The margin lies within the spread." if holds is None else self.because if holds else self.otherwise
        return Finding(self.text, self.paper_figure, ours, holds, why or usual)

    def unmeasured(self, why: str, ours: str = UNMEASURED) -> Finding:
        """The finding where the claim was not measured. `ours` may say what was measured in its place."""
        return Finding(self.text, self.paper_figure, ours, None, why, is_measured=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of two contestants at one size."""

    place: int
    one: float
    other: float
    ratio: FigureSpread
    """The second figure divided by the first."""
    text: str
    """Both figures and their ratio, for a finding."""


def pairs(rows: WorkloadRows, one: str, other: str, field: str = TIME) -> list[Pair]:
    """The figures of two contestants at every size that both have, ascending, unless the first is 0."""
    unit = _UNITS.get(field, "bytes")
    firsts, seconds = (spreads(rows, field, entrant=each) for each in (one, other))
    compared = []
    for place in rows.shared(field, (one, other)):
        first, second = firsts[place], seconds[place]
        if first.least > 0:
            ratio = second / first
            figures = f"{one} {shown(first.middle)} {unit}, {other} {shown(second.middle)} {unit}"
            text = f"{figures}: {ratio} times, at {place:,} subscriptions"
            compared.append(Pair(place, first.middle, second.middle, ratio, text))
    return compared


def at_sizes(compared: Sequence[Pair], verdicts: Sequence[bool | None]) -> str:
    """The ratios at all sizes, with the verdicts that are not True."""
    words = {True: "", False: " no", None: " ?"}
    return ", ".join(
        f"{each.place:,}: {shown(each.ratio.middle)}{words[verdict]}"
        for each, verdict in zip(compared, verdicts, strict=True)
    )


def less(
    claim: Claim, rows: WorkloadRows, smaller: str, larger: str, field: str = TIME, margin: float = LESS
) -> Finding:
    """Whether one contestant needs less than another, at most of the sizes that both have."""
    return _ratios(claim, rows, (smaller, larger), field, (margin, float("inf")), f"from {shown(margin)}")


def less_everywhere(claim: Claim, rows: WorkloadRows, smaller: str, larger: str) -> Finding:
    """Whether one contestant needs less time than another at every size."""
    compared = pairs(rows, smaller, larger)
    if not compared:
        return claim.unmeasured(missing(rows, smaller, larger))
    verdicts = [within(each.ratio, LESS) for each in compared]
    ours = f"{larger} by {smaller}, by subscriptions: {at_sizes(compared, verdicts)} (holds from {LESS:g} at all sizes)"
    return claim.judged(everywhere(verdicts), ours)


def about(
    claim: Claim, rows: WorkloadRows, one: str, other: str, margin: tuple[float, float], field: str = TIME
) -> Finding:
    """Whether the second contestant needs a multiple of the first's within the margin, at most of the sizes."""
    return _ratios(claim, rows, (one, other), field, margin, f"from {shown(margin[0])} to {shown(margin[1])}")


def alike(claim: Claim, rows: WorkloadRows, one: str, other: str, field: str = TIME) -> Finding:
    """Whether two contestants need the same."""
    return about(claim, rows, one, other, (1 / ALIKE, ALIKE), field)


def _ratios(
    claim: Claim, rows: WorkloadRows, names: tuple[str, str], field: str, margin: tuple[float, float], rule: str
) -> Finding:
    compared = pairs(rows, *names, field)
    if not compared:
        return claim.unmeasured(missing(rows, *names))
    if len(compared) == 1:
        return claim.judged(within(compared[0].ratio, *margin), f"{compared[0].text} (holds {rule})")
    verdicts = [within(each.ratio, *margin) for each in compared]
    ours = f"{compared[-1].text}; by subscriptions: {at_sizes(compared, verdicts)} (holds {rule} at most sizes)"
    verdict = majority(verdicts)
    is_divided = verdict is None and {True, False} <= set(verdicts)
    return claim.judged(verdict, ours, _DIVIDED if is_divided else None)


def missing(rows: WorkloadRows, *contestants: str) -> str:
    """The reason why there is nothing to compare."""
    rejections = rows.rejections(*contestants)
    return rejections[0] if rejections else f"this scale does not have {' and '.join(contestants)} together"
