"""Plots of an experiment: the fields on their axes, and the rows that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken_lab.experiments.figure_rows import SIZE, TIME, Row
from harken_lab.harness.charts import MEDIAN, Point, dots, lines, require_altair, save

if TYPE_CHECKING:
    from harken_lab.experiments.definition import Experiment, ExperimentResult

IN_THE_PAPER, HERE = "in the paper", "here"
FROM_THE_PAPER = " (paper)"
"""The names of contestants whose figures are the paper's own end with this."""

Series = Mapping[str, Mapping[int, float]]
"""Figures by name, and by their place on the horizontal axis."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A line for each contestant, in a plot for each value of the facet."""

    name: str
    title: str
    x: str = SIZE
    y: str = TIME
    x_title: str = "subscriptions"
    y_title: str = "µs per event"
    facet: str | None = "workload"
    is_log_x: bool = True
    is_log_y: bool = True
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values that rows must have."""
    entrants: Sequence[str] = ()
    """The contestants that are drawn; all if empty."""
    figure: str = MEDIAN
    """The subtitle, which says what a point is."""


@dataclass(frozen=True, slots=True)
class Dots:
    """A dot for each contestant, one below the other, in a plot for each workload."""

    name: str
    title: str
    x: str = TIME
    x_title: str = "µs per event"


def draw(experiment: Experiment, result: ExperimentResult, folder: str | Path) -> list[Path]:
    """Write every plot that has figures, as SVG and PNG. Returns the paths."""
    require_altair()
    charts = {f"{result.experiment}_{plot.name}": chart(plot, result.rows) for plot in experiment.plots}
    return save(charts, folder)


def chart(plot: Plot | Dots, rows: Sequence[Row], paper: Series | None = None) -> Any:
    """Draw these rows, beside the paper's figures on the same axes. None if there is nothing to draw."""
    points = points_of(plot, rows)
    if isinstance(plot, Dots):
        return dots(points, plot.title, MEDIAN, plot.x_title)
    if points and paper:
        points = [*_of_paper(paper), *_here(points)]
    format = {"format": "~s"} if "bytes" in plot.y else {}
    return lines(points, plot.title, plot.x_title, plot.y_title, plot.is_log_x, plot.is_log_y, plot.figure, **format)


def points_of(plot: Plot | Dots, rows: Sequence[Row]) -> list[Point]:
    """The points of a plot of these rows."""
    if isinstance(plot, Dots):
        return [
            {"title": row["workload"], "name": row["entrant"], "x": row[plot.x]}
            for row in rows
            if (row.get(plot.x) or 0) > 0
        ]
    return [
        {
            "title": "" if plot.facet is None else str(row[plot.facet]),
            "name": row["entrant"],
            "x": row[plot.x],
            "y": row[plot.y],
        }
        for row in rows
        if row.get(plot.x) is not None
        and (row.get(plot.y) or 0) > 0
        and all(row.get(name) == value for name, value in plot.where.items())
        and (not plot.entrants or row["entrant"] in plot.entrants)
    ]


def _of_paper(paper: Series) -> list[Point]:
    return [
        {"title": IN_THE_PAPER, "name": name, "x": place, "y": value}
        for name, values in paper.items()
        for place, value in values.items()
    ]


def _here(points: Sequence[Point]) -> list[Point]:
    """Our own points, under a title that distinguishes them from the paper's."""
    ours = [point for point in points if not point["name"].endswith(FROM_THE_PAPER)]
    return [point | {"title": point["title"] or HERE} for point in ours]
