"""Plots of an experiment: each says what is on its axes, and which rows it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken_lab.experiments.figure_rows import SIZE, TIME, Row
from harken_lab.harness.charts import MEDIAN, Point, dots, lines, refuse_without_altair, save

if TYPE_CHECKING:
    from harken_lab.experiments.definition import Experiment, ExperimentResult

IN_THE_PAPER, HERE = "in the paper", "here"
FROM_THE_PAPER = " (paper)"
"""The end of a contestant's name whose figures are the paper's own."""

Series = Mapping[str, Mapping[int, float]]
"""Figures by name, and by their place on the horizontal axis."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A line for every contestant; a plot for every value of the facet."""

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
    """What a point is, below the title."""


@dataclass(frozen=True, slots=True)
class Dots:
    """A figure for every contestant, one below the other; a plot for every workload."""

    name: str
    title: str
    x: str = TIME
    x_title: str = "µs per event"


def draw(experiment: Experiment, result: ExperimentResult, folder: str | Path) -> list[Path]:
    """Write every plot that there are figures for, as SVG and PNG. Returns the paths."""
    refuse_without_altair()
    charts = {f"{result.experiment}_{plot.name}": chart(plot, result.rows) for plot in experiment.plots}
    return save(charts, folder)


def chart(plot: Plot | Dots, rows: Sequence[Row], paper: Series | None = None) -> Any:
    """The plot of these rows, with the paper's figures beside it on the same axes; None if there is nothing to draw."""
    points = points_of(plot, rows)
    if isinstance(plot, Dots):
        return dots(points, plot.title, MEDIAN, plot.x_title)
    if points and paper:
        points = [*_of_paper(paper), *_here(points)]
    format = {"format": "~s"} if "bytes" in plot.y else {}
    return lines(points, plot.title, plot.x_title, plot.y_title, plot.is_log_x, plot.is_log_y, plot.figure, **format)


def points_of(plot: Plot | Dots, rows: Sequence[Row]) -> list[Point]:
    """What the plot draws of these rows."""
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
    """Our own points, under a title that tells them from the paper's."""
    ours = [point for point in points if not point["name"].endswith(FROM_THE_PAPER)]
    return [point | {"title": point["title"] or HERE} for point in ours]
