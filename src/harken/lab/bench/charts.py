"""What all plots have in common: colours, axes in powers of ten, titles, and being written as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harken.errors import SourceError, require_extra

FORMATS = ("svg", "png")
COLOURS = ("#1b6ca8", "#e07b39", "#5b8c5a", "#8e5ea2", "#b0413e")
FAINT = "#b4b4b4"
MICROSECONDS = "µs per event (log)"
PLAIN = ",~f"
_SHARPNESS = 144


def refuse_without_altair() -> None:
    """Raise MissingExtraError unless plots can be drawn: to be known before the measuring starts."""
    require_extra("bench")


def altair_library() -> Any:
    """The library, untyped: its types are stricter than what it takes."""
    import altair

    return altair


def save(charts: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Write every chart that there is under its name, as SVG and PNG, and tell the paths."""
    written = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, chart in charts.items():
            for format in FORMATS if chart is not None else ():
                path = Path(folder, f"{name}.{format}")
                chart.save(str(path), format=format, **({"ppi": _SHARPNESS} if format == "png" else {}))
                written.append(path)
    except OSError as error:
        raise SourceError(f"{folder} cannot be written to: {error.strerror or error}") from error
    return written


def decades(values: Iterable[float]) -> list[float]:
    """The powers of ten from below the least value to above the greatest."""
    known = list(values)
    return [10.0**power for power in range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)]


def shown(value: float) -> str:
    """Three digits, or as many as a number has before its point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def titles(alt: Any, values: list[Any], field: str = "title") -> Any:
    """A plot for each title, in the order in which they come."""
    header = alt.Header(labelFontSize=13, labelFontWeight="bold", labelAnchor="start")
    return alt.Facet(f"{field}:N", title=None, sort=list(dict.fromkeys(values)), header=header)


def styled(alt: Any, chart: Any, title: str, subtitle: str) -> Any:
    """The chart with its title, in the style of all."""
    above = alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=17, subtitleColor="#555", offset=12)
    return (
        chart.properties(title=above)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#eee", domainColor="#999", tickColor="#999", labelLimit=220)
        .configure_legend(orient="bottom", labelLimit=300)
    )
