"""Plots of an experiment: each says what is on its axes, and which rows it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.lab.experiments.rows import SIZE, TIME, Row
from harken.lab.harness.charts import MEDIAN, dots, lines, refuse_without_altair, save

if TYPE_CHECKING:
    from harken.lab.experiments.experiment import Experiment, Result


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


def draw(experiment: Experiment, result: Result, folder: str | Path) -> list[Path]:
    """Write every plot that there are figures for, as SVG and PNG. Returns the paths."""
    refuse_without_altair()
    charts = {f"{result.experiment}_{plot.name}": chart(plot, result.rows) for plot in experiment.plots}
    return save(charts, folder)


def chart(plot: Plot | Dots, rows: Sequence[Row]) -> Any:
    """The plot of these rows; None if there is nothing to draw."""
    if isinstance(plot, Dots):
        points = [
            {"title": row["workload"], "name": row["entrant"], "x": row[plot.x]}
            for row in rows
            if (row.get(plot.x) or 0) > 0
        ]
        return dots(points, plot.title, MEDIAN, plot.x_title)
    points = [
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
    format = {"format": "~s"} if "bytes" in plot.y else {}
    return lines(points, plot.title, plot.x_title, plot.y_title, plot.is_log_x, plot.is_log_y, plot.figure, **format)
