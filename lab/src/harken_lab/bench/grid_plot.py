"""The grid as one picture: Harken's speed as a multiple of a loop of closures', by shape, size and events a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harken_lab.bench.grid_result import GridResult, MeasuredCell
from harken_lab.harness.charts import require_altair, save, squares

_MISSED, _SLOWER = 0.0, 0.5
_COLOURS = dict(
    zip(
        (_MISSED, _SLOWER, 1.0, 10.0, 100.0, 1_000.0),
        ("#d9705f", "#ececec", "#dbe9f4", "#b7d3e9", "#86b5d9", "#5a97c8"),
        strict=True,
    )
)


def draw_grid(result: GridResult, folder: str | Path) -> list[Path]:
    """Write the picture as SVG and PNG. Returns the paths."""
    require_altair()
    return save({"grid": grid_plot(result)}, folder)


def grid_plot(result: GridResult) -> Any:
    """A panel for each number of events a call, with a square for each shape and size: its slowest cell."""
    squared: dict[tuple[int, str, int], list[MeasuredCell]] = {}
    for each in result.cells:
        squared.setdefault((each.cell.call, each.cell.shape, each.cell.size), []).append(each)
    points = []
    for (call, shape, size), measured in sorted(squared.items(), key=lambda item: item[0][0]):
        least = min(1 / each.ratio for each in measured)
        shade = max(least, _SLOWER) if all(each.meets_target for each in measured) else _MISSED
        points.append({"title": _title(call), "name": shape, "x": size, "label": _shown(least), "shade": shade})
    subtitle = [
        "the least over dicts, JSON and Arrow in, ids and numbers out; freshly subscribed, reloaded and after deletes;",
        "red: misses its target; grey: slower than the loop, within the target",
    ]
    return squares(points, "Times as quick as a loop of compiled closures", subtitle, "subscriptions", _COLOURS)


def _title(call: int) -> str:
    return "one event a call" if call == 1 else f"{call:,} events a call"


def _shown(value: float) -> str:
    """Two significant digits; from 10 on, a whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
