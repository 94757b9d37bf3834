"""The result in three pictures: time by workload beside the peers', growth with size, and memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harken.lab.bench.charts import (
    COLOURS,
    FAINT,
    MICROSECONDS,
    PLAIN,
    altair_library,
    decades,
    refuse_without_altair,
    save,
    shown,
    styled,
    titles,
)
from harken.lab.bench.figures import Key, Result
from harken.lab.bench.peers import Peer

__all__ = ["draw", "growth_plot", "memory_plot", "refuse_without_altair", "time_plot"]

_PEER = "measured elsewhere"


def draw(result: Result, folder: str | Path, peers: Iterable[Peer] = ()) -> list[Path]:
    """Write every plot that there are figures for, as SVG and PNG, and tell their paths."""
    refuse_without_altair()
    charts = {"time": time_plot(result, list(peers)), "growth": growth_plot(result), "memory": memory_plot(result)}
    return save({f"matching_{name}": chart for name, chart in charts.items()}, folder)


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
    alt = altair_library()
    kinds = [*_matchers(result), *([_PEER] if any(row["kind"] == _PEER for row in rows) else [])]
    colours = [*COLOURS[: len(kinds) - (_PEER in kinds)], *([FAINT] if _PEER in kinds else [])]
    for row in rows:
        row["label"] = shown(row["median"])
    axis = alt.Axis(values=decades([row[end] for row in rows for end in ("least", "most")]), format=PLAIN)
    x = alt.X("median:Q", title=MICROSECONDS, scale=alt.Scale(type="log"), axis=axis)
    y = alt.Y("engine:N", title=None, sort=alt.EncodingSortField("median", order="ascending"))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=colours))
    base = alt.Chart().encode(y=y)
    points = base.mark_circle(size=70, opacity=1).encode(x=x, color=colour)
    spread_lines = base.mark_rule(strokeWidth=2).encode(x="least:Q", x2="most:Q", color=colour)
    numbers = base.mark_text(align="left", dx=8, fontSize=10, color="#555").encode(x="most:Q", text="label:N")
    chart = alt.layer(spread_lines, points, numbers, data=alt.Data(values=rows)).properties(width=330)
    faceted = chart.facet(facet=titles(alt, [row["title"] for row in rows]), columns=2)
    faceted = faceted.resolve_scale(y="independent").resolve_axis(x="independent")
    return styled(alt, faceted, "Matching one event", "median of all rounds; a line from the least to the most")


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
    alt = altair_library()
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
                title=MICROSECONDS,
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=decades([row["median"] for row in rows]), format=PLAIN),
            ),
            color=_by_matcher(alt, result),
        )
        .properties(width=240, height=180)
        .facet(facet=titles(alt, [row["workload"] for row in rows], "workload"), columns=3)
        .resolve_axis(x="independent", y="independent")
    )
    return styled(alt, chart, "Growth with the number of subscriptions", "median of all rounds")


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
    alt = altair_library()
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=18)
        .encode(
            x=alt.X("sum(bytes):Q", title="bytes per subscription"),
            y=alt.Y("matcher:N", title=None, sort=_matchers(result)),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=list(parts.values()), range=[COLOURS[0], "#9cc3e0"]),
            ),
            order=alt.Order("order:Q"),
        )
        .properties(width=330, height=60)
        .facet(facet=titles(alt, [row["title"] for row in rows]), columns=2)
        .resolve_axis(x="independent", y="independent")
    )
    return styled(alt, chart, "Memory of an index", "arrays of the index and dictionaries of constants")


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


def _by_matcher(alt: Any, result: Result) -> Any:
    names = _matchers(result)
    return alt.Color("matcher:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])))
