"""The outcome of each item: its findings, and whether its claim holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import Experiment, ExperimentResult
from harken_lab.experiments.findings import UNMEASURED, Finding
from harken_lab.experiments.plotting import FROM_THE_PAPER, Dots, Plot, points_of
from harken_lab.harness.charts import shown
from harken_lab.report.items import PAPERS, Item, Paper

_MARGIN = re.compile(r" \((?:this )?holds? .*$")
_LONGEST = 130
"""Most characters of a headline."""


class Verdict(StrEnum):
    """Whether the claim of an item holds here."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    UNTOLD = "cannot be told"
    NOT_MEASURED = UNMEASURED


@dataclass(frozen=True, slots=True)
class Measured:
    """The findings and plots of one experiment about an item."""

    experiment: Experiment
    result: ExperimentResult
    findings: list[Finding]
    plots: list[Plot | Dots]
    """The plots that the result has figures for."""


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """An item with the measurements for it."""

    paper: Paper
    item: Item
    measured: list[Measured]
    failures: Mapping[str, str]
    """The errors of experiments of this item that failed, by name."""

    @property
    def findings(self) -> list[Finding]:
        return list(chain.from_iterable(each.findings for each in self.measured))

    @property
    def judged(self) -> list[Finding]:
        """The findings that hold or do not hold; others cannot be told, or were not measured."""
        return [each for each in self.findings if each.holds is not None]

    @property
    def verdict(self) -> Verdict:
        """Whether the claim holds. Findings that cannot be told, or were not measured, count as not holding."""
        holding = sum(each.holds is True for each in self.judged)
        if not self.judged:
            return Verdict.UNTOLD if any(each.is_measured for each in self.findings) else Verdict.NOT_MEASURED
        if holding == len(self.findings) and not self.missing:
            return Verdict.HOLDS
        return Verdict.IN_PART if holding else Verdict.FAILS

    @property
    def missing(self) -> list[str]:
        """The experiments about this item that have no result."""
        there = {each.result.experiment for each in self.measured}
        return [name for name in self.item.experiments if name in EXPERIMENTS and name not in there]

    @property
    def count(self) -> str:
        """How many of the findings hold."""
        holding = sum(each.holds is True for each in self.judged)
        text = f"{holding} of {len(self.findings)} findings {'holds' if holding == 1 else 'hold'}"
        unmeasured = sum(not each.is_measured for each in self.findings)
        untold = len(self.findings) - len(self.judged) - unmeasured
        text += f", {untold} cannot be told" if untold else ""
        text += f", {unmeasured} {'is' if unmeasured == 1 else 'are'} not measured" if unmeasured else ""
        return text + "".join(f"; `{name}` is not measured" for name in self.missing)

    @property
    def headline(self) -> str:
        """The main figures in a few words, or why there are none."""
        if self.verdict is Verdict.NOT_MEASURED:
            return self._missing_reason()
        if self.item.headline:
            for finding in (each for each in self.findings if each.is_measured):
                if re.search(self.item.headline, finding.claim):
                    return brief(finding.ours)
        for each in self.measured:
            for plot in each.plots:
                if isinstance(plot, Plot):
                    return brief(_at_the_largest(plot, each.result))
        return brief(next(each.ours for each in self.findings if each.is_measured))

    def _missing_reason(self) -> str:
        reasons = [*self.failures.values(), *(each.why for each in self.findings)]
        names = ", ".join(f"`{name}`" for name in self.item.experiments)
        return reasons[0] if reasons else f"there is no result of {names}"


def outcomes(
    results: Mapping[str, ExperimentResult], failures: Mapping[str, str], papers: Sequence[Paper] = PAPERS
) -> list[ItemOutcome]:
    """The outcomes of all items, in order."""
    return [
        ItemOutcome(
            paper,
            item,
            [_measured(item, results[name]) for name in item.experiments if name in results],
            {name: failures[name] for name in item.experiments if name in failures},
        )
        for paper in papers
        for item in paper.items
    ]


def others(results: Mapping[str, ExperimentResult], items: Sequence[ItemOutcome]) -> dict[str, list[Measured]]:
    """Findings and plots of experiments that belong to no item: by the key of their paper, or by "" without one."""
    used: dict[str, list[Finding]] = {}
    drawn: dict[str, set[str]] = {}
    for each in chain.from_iterable(outcome.measured for outcome in items):
        used.setdefault(each.result.experiment, []).extend(each.findings)
        drawn.setdefault(each.result.experiment, set()).update(plot.name for plot in each.plots)
    left: dict[str, list[Measured]] = {}
    for name, result in results.items():
        experiment = find_experiment(name)
        findings = [each for each in result.findings if each not in used.get(name, [])]
        plots = _drawable([plot for plot in experiment.plots if plot.name not in drawn.get(name, set())], result)
        if findings or plots:
            left.setdefault(_paper_of(experiment), []).append(Measured(experiment, result, findings, plots))
    return left


def brief(text: str) -> str:
    """The text of a figure without its margin, cut if it is long."""
    text = _MARGIN.sub("", text)
    if len(text) <= _LONGEST:
        return text
    cuts = (text.rfind(each, 0, _LONGEST) for each in ("; ", ", ", " "))
    return f"{text[: next((cut for cut in cuts if cut > 0), _LONGEST)]} …"


def _measured(item: Item, result: ExperimentResult) -> Measured:
    experiment = find_experiment(result.experiment)
    named = {plot.name: plot for plot in experiment.plots}
    chosen = [named.get(plot) if isinstance(plot, str) else plot for plot in item.plots]
    plots = _drawable([plot for plot in chosen if plot is not None], result)
    return Measured(experiment, result, item.findings(result), plots)


def _drawable(plots: Sequence[Plot | Dots], result: ExperimentResult) -> list[Plot | Dots]:
    return [plot for plot in plots if points_of(plot, result.rows)]


def _paper_of(experiment: Experiment) -> str:
    return next((paper.key for paper in PAPERS if experiment.paper.startswith(paper.title)), "")


def _at_the_largest(plot: Plot, result: ExperimentResult) -> str:
    """The figures of a plot at the largest x for which most contestants have a value."""
    points = [each for each in points_of(plot, result.rows) if not each["name"].endswith(FROM_THE_PAPER)]
    facet = points[0]["title"]
    at: dict[float, dict[str, float]] = {}
    for each in points:
        if each["title"] == facet:
            at.setdefault(each["x"], {})[each["name"]] = each["y"]
    place = max(at, key=lambda each: (len(at[each]), each))
    is_memory = "bytes" in plot.y
    figures = (f"{name} {shown(value / 1e6) if is_memory else shown(value)}" for name, value in at[place].items())
    return f"{'MB' if is_memory else plot.y_title} at {place:,} {plot.x_title}: {'; '.join(figures)}"
