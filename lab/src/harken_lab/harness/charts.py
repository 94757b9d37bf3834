"""All plots: lines by size, dots by contestant, stacked bars; written as SVG and PNG in one style.

A point is a dict. Its `title` names the plot that it belongs to, among plots side by side; the functions name the rest.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harken.errors import SourceError, require_libraries

Point = dict[str, Any]
COLOURS = (
    "#1b6ca8 #e07b39 #5b8c5a #8e5ea2 #b0413e #2a9d8f #c9a227 #6d6875 #e377c2 #7f7f7f #17becf #4b3b47 #a1c181 #d62828"
).split()
PALE, FAINT = "#9cc3e0", "#b4b4b4"
MEDIAN = "median of all rounds"
_FORMATS = ("svg", "png")
_PLAIN = ",~f"
_PIXELS_PER_INCH = 144
_LEGEND_SYMBOL, _LEGEND_LETTER = 30, 6
_TWO_PLOTS = 760


def require_altair() -> None:
    """Raise MissingExtraError unless plots can be drawn. Call this before measuring."""
    require_libraries("harken-lab[plots]", ("altair", "vl_convert"))


def save(charts: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Write the charts that are not None under their names, as SVG and PNG. Returns the paths."""
    written = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, chart in charts.items():
            for format in _FORMATS if chart is not None else ():
                path = Path(folder, f"{name}.{format}")
                chart.save(str(path), format=format, **({"ppi": _PIXELS_PER_INCH} if format == "png" else {}))
                written.append(path)
    except OSError as error:
        raise SourceError(f"{folder} cannot be written to: {error.strerror or error}") from error
    return written


def svg(chart: Any) -> str:
    """The chart as the text of an SVG file."""
    drawn = io.StringIO()
    chart.save(drawn, format="svg")
    return drawn.getvalue()


def shown(value: float) -> str:
    """A number as text, with three digits, or with all digits before the point if these are more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lines(
    points: Sequence[Point],
    title: str,
    x: str,
    y: str,
    is_log_x: bool = True,
    is_log_y: bool = True,
    subtitle: str = MEDIAN,
    format: str = _PLAIN,
) -> Any:
    """A line for each `name`, through the `x` and `y` of its points. None without points."""
    if not points:
        return None
    alt = _altair()
    places = sorted({point["x"] for point in points})
    if is_log_x:
        scale = alt.Scale(type="log", domain=[places[0] / 1.2, places[-1] * 1.2], nice=False)
        # More than eight labels would overlap.
        axis = alt.Axis(values=places if len(places) <= 8 else _decades(places), format="~s")
        horizontal = alt.X("x:Q", title=f"{x} (log)", scale=scale, axis=axis)
    else:
        horizontal = alt.X("x:Q", title=x, axis=alt.Axis(values=places))
    vertical = _log(alt, alt.Y, "y", y, points, format) if is_log_y else alt.Y("y:Q", title=y)
    names = list(dict.fromkeys(point["name"] for point in points))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    base = alt.Chart().encode(x=horizontal, y=vertical, color=_colour(alt, "name", colours))
    marks = (base.mark_line(strokeWidth=2), base.mark_circle(size=45, opacity=1))
    chart = alt.layer(*marks, data=alt.Data(values=points)).properties(width=330, height=240)
    if len({point["title"] for point in points}) > 1:
        # The axes have the same scale, so that plots can be compared, and each has its labels.
        chart = _side_by_side(alt, chart, points).resolve_axis(x="independent", y="independent")
    return _styled(alt, chart, title, subtitle)


def dots(points: Sequence[Point], title: str, subtitle: str, x: str, colours: Mapping[str, str] | None = None) -> Any:
    """A dot for each `name` at its `x`, the smallest first. None without points.

    With `colours`, by `kind`: points have a `kind`, and a line from `least` to `most`.
    """
    if not points:
        return None
    alt = _altair()
    points = [{"least": point["x"], "most": point["x"], **point, "label": shown(point["x"])} for point in points]
    ends = [{"x": point[end]} for point in points for end in ("least", "most")]
    base = alt.Chart().encode(y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("x", order="ascending")))
    dot = base.encode(x=_log(alt, alt.X, "x", x, ends, _PLAIN)).mark_circle(size=70, opacity=1, color=COLOURS[0])
    spread = base.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(x="least:Q", x2="most:Q")
    label = base.mark_text(align="left", dx=8, fontSize=10, color="#555").encode(x="most:Q", text="label:N")
    if colours:
        dot, spread = (each.encode(color=_colour(alt, "kind", colours)) for each in (dot, spread))
    chart = alt.layer(spread, dot, label, data=alt.Data(values=points)).properties(width=330)
    chart = _side_by_side(alt, chart, points).resolve_scale(y="independent").resolve_axis(x="independent")
    return _styled(alt, chart, title, subtitle)


def bars(points: Sequence[Point], title: str, subtitle: str, x: str, colours: Mapping[str, str]) -> Any:
    """A bar for each `name`: the `x` of its points stacked in the order of their `kind`. None without points."""
    if not points:
        return None
    alt = _altair()
    order = {kind: place for place, kind in enumerate(colours)}
    values = [point | {"order": order[point["kind"]]} for point in points]
    chart = alt.Chart(alt.Data(values=values)).mark_bar(height=18)
    chart = chart.encode(
        x=alt.X("sum(x):Q", title=x),
        y=alt.Y("name:N", title=None, sort=list(dict.fromkeys(point["name"] for point in points))),
        color=_colour(alt, "kind", colours),
        order=alt.Order("order:Q"),
    ).properties(width=330, height=60)
    chart = _side_by_side(alt, chart, points).resolve_axis(x="independent", y="independent")
    return _styled(alt, chart, title, subtitle)


def squares(points: Sequence[Point], title: str, subtitle: Sequence[str], x: str, colours: Mapping[float, str]) -> Any:
    """A square for each `x` and `name`, with its `label` in it, in the colour of its `shade`. None without points.

    A colour applies to shades from its key up to the next key.
    """
    if not points:
        return None
    alt = _altair()
    base = alt.Chart().encode(
        x=alt.X(
            "x:O", title=x, sort=sorted({point["x"] for point in points}), axis=alt.Axis(format="~s", labelAngle=0)
        ),
        y=alt.Y("name:N", title=None, sort=list(dict.fromkeys(point["name"] for point in points))),
    )
    scale = alt.Scale(type="threshold", domain=list(colours)[1:], range=list(colours.values()))
    square = base.mark_rect(stroke="white").encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    label = base.mark_text(fontSize=9).encode(text="label:N")
    chart = alt.layer(square, label, data=alt.Data(values=points)).properties(width=270, height=230)
    header = alt.Header(labelFontSize=13, labelFontWeight="bold", labelAnchor="start")
    titles = list(dict.fromkeys(point["title"] for point in points))
    return _styled(
        alt, chart.facet(column=alt.Column("title:N", title=None, sort=titles, header=header)), title, subtitle
    )


def _altair() -> Any:
    """The library, untyped: its type hints reject arguments that it accepts."""
    import altair

    return altair


def _log(alt: Any, channel: Any, field: str, title: str, points: Iterable[Point], format: str) -> Any:
    axis = alt.Axis(values=_decades(point[field] for point in points), format=format)
    return channel(f"{field}:Q", title=f"{title} (log)", scale=alt.Scale(type="log"), axis=axis)


def _decades(values: Iterable[float]) -> list[float]:
    """The powers of ten from below the least value to above the greatest."""
    numbers = list(values)
    first, last = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    return [10.0**power for power in range(first, last + 1)]


def _colour(alt: Any, field: str, colours: Mapping[str, str]) -> Any:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(columns=_legend_columns(colours)))


def _legend_columns(names: Iterable[str]) -> int:
    """Columns of a legend: 0, which means one line, unless the line would be wider than two plots."""
    widths = [_LEGEND_SYMBOL + _LEGEND_LETTER * len(name) for name in names]
    return 0 if sum(widths) <= _TWO_PLOTS else max(1, _TWO_PLOTS // max(widths))


def _side_by_side(alt: Any, chart: Any, points: Sequence[Point]) -> Any:
    """A plot for each title, in order of appearance."""
    header = alt.Header(labelFontSize=13, labelFontWeight="bold", labelAnchor="start")
    titles = list(dict.fromkeys(point["title"] for point in points))
    return chart.facet(facet=alt.Facet("title:N", title=None, sort=titles, header=header), columns=2)


def _styled(alt: Any, chart: Any, title: str, subtitle: str | Sequence[str]) -> Any:
    above = alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=17, subtitleColor="#555", offset=12)
    return (
        chart.properties(title=above)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#eee", domainColor="#999", tickColor="#999", labelLimit=220)
        .configure_legend(orient="bottom", labelLimit=300)
    )
