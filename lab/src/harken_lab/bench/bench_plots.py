"""The result in three pictures: time by workload beside the peers', growth with size, and memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harken_lab.bench.figures import BenchResult, Key
from harken_lab.bench.peers import Peer
from harken_lab.harness.charts import COLOURS, FAINT, MEDIAN, PALE, bars, dots, lines, require_altair, save

_PEER = "measured elsewhere"
_MICROSECONDS = "µs per event"


def draw(result: BenchResult, folder: str | Path, peers: Iterable[Peer] = ()) -> list[Path]:
    """Write the plots that the result has figures for, as SVG and PNG. Returns the paths."""
    require_altair()
    charts = {"time": time_plot(result, list(peers)), "growth": growth_plot(result), "memory": memory_plot(result)}
    return save({f"matching_{name}": chart for name, chart in charts.items()}, folder)


def time_plot(result: BenchResult, peers: list[Peer]) -> Any:
    """µs per event at the largest size of every workload, of Harken's matchers and of peers."""
    largest, points = _largest(result), []
    for figure in result.named("match"):
        key = figure.key
        if key.size == largest[str(key.workload)]:
            spread = {"x": figure.median, "least": figure.least, "most": figure.most}
            points.append({"title": _title(largest, key.workload), "name": key.matcher, "kind": key.matcher, **spread})
    for peer in peers:
        if peer.size is not None and peer.size == largest.get(peer.workload):
            title = _title(largest, peer.workload)
            points.append({"title": title, "name": peer.peer, "kind": _PEER, "x": peer.us_per_event})
    colours = dict(zip(_matchers(result), COLOURS, strict=False))
    if any(point["kind"] == _PEER for point in points):
        colours[_PEER] = FAINT
    return dots(points, "Matching one event", f"{MEDIAN}; a line from the least to the most", _MICROSECONDS, colours)


def growth_plot(result: BenchResult) -> Any:
    """µs per event by the number of subscriptions. None with fewer than two sizes."""
    points = [
        {"title": each.key.workload, "name": each.key.matcher, "x": each.key.size, "y": each.median}
        for each in result.named("match")
    ]
    if len({point["x"] for point in points}) < 2:
        return None
    return lines(points, "Growth with the number of subscriptions", "subscriptions", _MICROSECONDS)


def memory_plot(result: BenchResult) -> Any:
    """Bytes a subscription at the largest size of every workload, index and dictionaries apart."""
    largest, points = _largest(result), []
    for workload, size in largest.items():
        for matcher in _matchers(result):
            for name, part in (("index_bytes", "index"), ("dictionary_bytes", "dictionaries")):
                figure = result.find(Key(name, workload, size, matcher))
                if figure is not None:
                    title = _title(largest, workload)
                    points.append({"title": title, "name": matcher, "kind": part, "x": figure.median})
    subtitle = "arrays of the index and dictionaries of constants"
    colours = {"index": COLOURS[0], "dictionaries": PALE}
    return bars(points, "Memory of an index", subtitle, "bytes per subscription", colours)


def _largest(result: BenchResult) -> dict[str, int]:
    """The largest size of every workload."""
    largest: dict[str, int] = {}
    for key in (figure.key for figure in result.named("match")):
        largest[str(key.workload)] = max(key.size or 0, largest.get(str(key.workload), 0))
    return largest


def _title(largest: dict[str, int], workload: str | None) -> str:
    return f"{workload}, {largest[str(workload)]:,}"


def _matchers(result: BenchResult) -> list[str]:
    return list(dict.fromkeys(figure.key.matcher for figure in result.named("match") if figure.key.matcher))
