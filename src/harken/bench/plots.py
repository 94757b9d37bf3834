"""The result in three pictures: time by workload beside the peers', growth with size, and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harken.bench.figures import Key, Result
from harken.bench.peers import Peer
from harken.errors import CapabilityError, SourceError

FORMATS = ("svg", "png")
_COLOURS = ("#1b6ca8", "#e07b39", "#5b8c5a", "#8e5ea2", "#b0413e")
_FAINT = "#b4b4b4"
_PEER = "measured elsewhere"
_MICROSECONDS = "µs per event (log)"
_PLAIN = ",~f"
_SHARPNESS = 144


def refuse_without_altair() -> None:
    """Raise CapabilityError unless plots can be drawn: to be known before the measuring starts."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        hint = "pip install 'harken[bench]'"
        raise CapabilityError(f"plots need altair and vl-convert-python: {error}", hint=hint) from error


def draw(result: Result, folder: str | Path, peers: Iterable[Peer] = ()) -> list[Path]:
    """Write every plot that there are figures for, as SVG and PNG, and tell their paths."""
    refuse_without_altair()
    charts = {"time": time_plot(result, list(peers)), "growth": growth_plot(result), "memory": memory_plot(result)}
    written = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, chart in charts.items():
            for format in FORMATS if chart is not None else ():
                path = Path(folder, f"matching_{name}.{format}")
                chart.save(str(path), format=format, **({"ppi": _SHARPNESS} if format == "png" else {}))
                written.append(path)
    except OSError as error:
        raise SourceError(f"{folder} cannot be written to: {error.strerror or error}") from error
    return written


def time_plot(result: Result, peers: list[Peer]) -> Any:
    """µs per event at the largest size of every workload, ours and the peers'."""
    rows: list[dict[str, Any]] = []
    for workload, size in _largest(result).items():
        title = f"{workload}, {size:,}"
        for figure in result.named("match"):
            if (figure.key.workload, figure.key.size) == (workload, size):
                spread = {"median": figure.median, "least": figure.least, "most": figure.most}
                rows.append({"title": title, "engine": figure.key.matcher, "kind": figure.key.matcher, **spread})
        for peer in peers:
            if (peer.workload, peer.size) == (workload, size):
                same = dict.fromkeys(("median", "least", "most"), peer.us_per_event)
                rows.append({"title": title, "engine": peer.peer, "kind": _PEER, **same})
    if not rows:
        return None
    alt = _altair()
    kinds = [*_matchers(result), *([_PEER] if any(row["kind"] == _PEER for row in rows) else [])]
    colours = [*_COLOURS[: len(kinds) - (_PEER in kinds)], *([_FAINT] if _PEER in kinds else [])]
    for row in rows:
        row["label"] = _shown(row["median"])
    axis = alt.Axis(values=_decades([row[end] for row in rows for end in ("least", "most")]), format=_PLAIN)
    x = alt.X("median:Q", title=_MICROSECONDS, scale=alt.Scale(type="log"), axis=axis)
    y = alt.Y("engine:N", title=None, sort=alt.EncodingSortField("median", order="ascending"))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=colours))
    base = alt.Chart().encode(y=y)
    points = base.mark_circle(size=70, opacity=1).encode(x=x, color=colour)
    spread_lines = base.mark_rule(strokeWidth=2).encode(x="least:Q", x2="most:Q", color=colour)
    numbers = base.mark_text(align="left", dx=8, fontSize=10, color="#555").encode(x="most:Q", text="label:N")
    chart = alt.layer(spread_lines, points, numbers, data=alt.Data(values=rows)).properties(width=330)
    faceted = chart.facet(facet=_titles(alt, [row["title"] for row in rows]), columns=2)
    faceted = faceted.resolve_scale(y="independent").resolve_axis(x="independent")
    return _styled(alt, faceted, "Matching one event", "median of all rounds; a line from the least to the most")


def growth_plot(result: Result) -> Any:
    """µs per event by the number of subscriptions."""
    rows: list[dict[str, Any]] = [
        {
            "workload": figure.key.workload,
            "matcher": figure.key.matcher,
            "size": figure.key.size,
            "median": figure.median,
        }
        for figure in result.named("match")
    ]
    if len({row["size"] for row in rows}) < 2:
        return None
    alt = _altair()
    sizes = sorted({row["size"] for row in rows})
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "size:Q",
                title="subscriptions (log)",
                scale=alt.Scale(type="log", domain=[sizes[0] / 1.2, sizes[-1] * 1.2], nice=False),
                axis=alt.Axis(values=sizes, format="~s"),
            ),
            y=alt.Y(
                "median:Q",
                title=_MICROSECONDS,
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=_decades([row["median"] for row in rows]), format=_PLAIN),
            ),
            color=_by_matcher(alt, result),
        )
        .properties(width=240, height=180)
        .facet(facet=_titles(alt, [row["workload"] for row in rows], "workload"), columns=3)
        .resolve_axis(x="independent", y="independent")
    )
    return _styled(alt, chart, "Growth with the number of subscriptions", "median of all rounds")


def memory_plot(result: Result) -> Any:
    """Bytes a subscription at the largest size of every workload, index and dictionaries apart."""
    parts = {"index_bytes": "index", "dictionary_bytes": "dictionaries"}
    rows: list[dict[str, Any]] = []
    for workload, size in _largest(result).items():
        for matcher in _matchers(result):
            for order, (name, part) in enumerate(parts.items()):
                figure = result.find(Key(name, workload, size, matcher))
                if figure is not None:
                    title = f"{workload}, {size:,}"
                    rows.append(
                        {"title": title, "matcher": matcher, "part": part, "order": order, "bytes": figure.median}
                    )
    if not rows:
        return None
    alt = _altair()
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=18)
        .encode(
            x=alt.X("sum(bytes):Q", title="bytes per subscription"),
            y=alt.Y("matcher:N", title=None, sort=_matchers(result)),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=list(parts.values()), range=[_COLOURS[0], "#9cc3e0"]),
            ),
            order=alt.Order("order:Q"),
        )
        .properties(width=330, height=60)
        .facet(facet=_titles(alt, [row["title"] for row in rows]), columns=2)
        .resolve_axis(x="independent", y="independent")
    )
    return _styled(alt, chart, "Memory of an index", "arrays of the index and dictionaries of constants")


def _altair() -> Any:
    """The library, untyped: its types are stricter than what it takes."""
    import altair

    return altair


def _largest(result: Result) -> dict[str, int]:
    """The largest size of every workload."""
    found: dict[str, int] = {}
    for figure in result.named("match"):
        workload, size = figure.key.workload, figure.key.size
        assert workload is not None
        assert size is not None
        found[workload] = max(size, found.get(workload, 0))
    return found


def _matchers(result: Result) -> list[str]:
    return list(dict.fromkeys(figure.key.matcher for figure in result.named("match") if figure.key.matcher))


def _decades(values: list[float]) -> list[float]:
    """The powers of ten from below the least value to above the greatest."""
    return [10.0**power for power in range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _by_matcher(alt: Any, result: Result) -> Any:
    names = _matchers(result)
    return alt.Color("matcher:N", title=None, scale=alt.Scale(domain=names, range=list(_COLOURS[: len(names)])))


def _titles(alt: Any, values: list[Any], field: str = "title") -> Any:
    """A plot for each title, in the order in which they come."""
    header = alt.Header(labelFontSize=13, labelFontWeight="bold", labelAnchor="start")
    return alt.Facet(f"{field}:N", title=None, sort=list(dict.fromkeys(values)), header=header)


def _styled(alt: Any, chart: Any, title: str, subtitle: str) -> Any:
    shown = alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=17, subtitleColor="#555", offset=12)
    return (
        chart.properties(title=shown)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#eee", domainColor="#999", tickColor="#999", labelLimit=220)
        .configure_legend(orient="bottom", labelLimit=300)
    )
