"""Plots of an experiment: what is on the axes is said, and all are drawn in one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.lab.bench.charts import PLAIN, altair_library, decades, refuse_without_altair, save, shown, styled, titles
from harken.lab.experiments.rows import SIZE, TIME, Row

if TYPE_CHECKING:
    from harken.lab.experiments.experiment import Experiment, Result

_COLOURS = (
    "#1b6ca8 #e07b39 #5b8c5a #8e5ea2 #b0413e #2a9d8f #c9a227 #6d6875 #e377c2 #7f7f7f #17becf #4b3b47 #a1c181 #d62828"
).split()


@dataclass(frozen=True, slots=True)
class Plot:
    """A line for every entrant, or a point where the x axis has names; a plot for every value of the facet."""

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
    """Values that rows have to have."""
    entrants: Sequence[str] = ()
    """Those that are drawn. All if there are none."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Entrants below each other, with a figure each; a plot for every value of the facet."""

    name: str
    title: str
    x: str = TIME
    x_title: str = "µs per event"
    facet: str = "workload"


def draw(experiment: Experiment, result: Result, folder: str | Path) -> list[Path]:
    """Write every plot that there are figures for, as SVG and PNG, and tell their paths."""
    refuse_without_altair()
    charts = {f"{result.experiment}_{plot.name}": chart(plot, result.rows) for plot in experiment.plots}
    return save(charts, folder)


def chart(plot: Plot | Dots, rows: Sequence[Row]) -> Any:
    """The plot of these rows, or None if there is nothing to be drawn."""
    return _lines(plot, rows) if isinstance(plot, Plot) else _dots(plot, rows)


def _lines(plot: Plot, rows: Sequence[Row]) -> Any:
    points = [
        {
            "x": row[plot.x],
            "y": row[plot.y],
            "entrant": row["entrant"],
            "title": "" if plot.facet is None else str(row[plot.facet]),
        }
        for row in rows
        if row.get(plot.x) is not None
        and (row.get(plot.y) or 0) > 0
        and all(row.get(name) == value for name, value in plot.where.items())
        and (not plot.entrants or row["entrant"] in plot.entrants)
    ]
    if not points:
        return None
    alt = altair_library()
    data = alt.Data(values=points)
    base = alt.Chart().encode(x=_x(alt, plot, points), y=_y(alt, plot, points), color=_colours(alt, points))
    lines = alt.layer(base.mark_line(strokeWidth=2), base.mark_circle(size=45, opacity=1), data=data)
    lines = lines.properties(width=330, height=240)
    names = [point["title"] for point in points]
    if len(set(names)) > 1:
        # Facets share their axes, so that they can be compared, and have numbers on each of them.
        lines = lines.facet(facet=titles(alt, names), columns=2).resolve_axis(x="independent", y="independent")
    return styled(alt, lines, plot.title, "median of all rounds")


def _dots(plot: Dots, rows: Sequence[Row]) -> Any:
    points = [
        {"x": row[plot.x], "label": shown(row[plot.x]), "entrant": row["entrant"], "title": str(row[plot.facet])}
        for row in rows
        if (row.get(plot.x) or 0) > 0
    ]
    if not points:
        return None
    alt = altair_library()
    axis = alt.Axis(values=decades(point["x"] for point in points), format=PLAIN)
    x = alt.X("x:Q", title=f"{plot.x_title} (log)", scale=alt.Scale(type="log"), axis=axis)
    y = alt.Y("entrant:N", title=None, sort=alt.EncodingSortField("x", order="ascending"))
    base = alt.Chart().encode(x=x, y=y)
    dots = base.mark_circle(size=70, opacity=1, color=_COLOURS[0])
    numbers = base.mark_text(align="left", dx=8, fontSize=10, color="#555").encode(text="label:N")
    layered = alt.layer(dots, numbers, data=alt.Data(values=points)).properties(width=330)
    faceted = layered.facet(facet=titles(alt, [point["title"] for point in points]), columns=2)
    faceted = faceted.resolve_scale(y="independent").resolve_axis(x="independent")
    return styled(alt, faceted, plot.title, "median of all rounds")


def _x(alt: Any, plot: Plot, points: list[dict[str, Any]]) -> Any:
    places = sorted({point["x"] for point in points})
    if not plot.is_log_x:
        return alt.X("x:Q", title=plot.x_title, axis=alt.Axis(values=places))
    scale = alt.Scale(type="log", domain=[places[0] / 1.2, places[-1] * 1.2], nice=False)
    # Too many numbers would cover each other; sizes are few.
    values = places if len(places) <= 8 else decades(places)
    return alt.X("x:Q", title=f"{plot.x_title} (log)", scale=scale, axis=alt.Axis(values=values, format="~s"))


def _y(alt: Any, plot: Plot, points: list[dict[str, Any]]) -> Any:
    if not plot.is_log_y:
        return alt.Y("y:Q", title=plot.y_title)
    axis = alt.Axis(values=decades(point["y"] for point in points), format="~s" if "bytes" in plot.y else PLAIN)
    return alt.Y("y:Q", title=f"{plot.y_title} (log)", scale=alt.Scale(type="log"), axis=axis)


def _colours(alt: Any, points: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(point["entrant"] for point in points))
    colours = [_COLOURS[number % len(_COLOURS)] for number in range(len(names))]
    return alt.Color("entrant:N", title=None, scale=alt.Scale(domain=names, range=colours))
