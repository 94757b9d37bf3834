"""The grid as tables: ratios by shape and size, a column for each way to call; and lines for the missed targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harken_lab.harness.charts import shown

if TYPE_CHECKING:
    from rich.table import Table

    from harken_lab.bench.grid_result import GridResult, MeasuredCell

_FAR = 3
"""Factor by which the cost that the plan expects may differ from the measured cost."""


def grid_tables(result: GridResult) -> Iterator[Table]:
    """Tables of three ratios: Harken to closures, Harken to scan, and expected to measured cost."""
    if result.cells:
        title = "Harken / closures (! misses its target)"
        yield _table(result, title, lambda each: each.ratio, lambda each: each.meets_target)
        yield _table(result, "Harken / scan", lambda each: each.scan_ratio, lambda each: True)
        title = f"expected / measured cost (! beyond {_FAR} times)"
        yield _table(result, title, _expected, lambda each: 1 / _FAR <= (_expected(each) or 1.0) <= _FAR)


def _expected(each: MeasuredCell) -> float | None:
    return None if each.expected is None or not each.inside else each.expected / each.inside


def _table(
    result: GridResult,
    title: str,
    value: Callable[[MeasuredCell], float | None],
    is_good: Callable[[MeasuredCell], bool],
) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    ways = list(dict.fromkeys(each.cell.way for each in sorted(result.cells, key=lambda each: each.cell.call)))
    rows: dict[tuple[str, int], dict[str, MeasuredCell]] = {}
    for each in result.cells:
        rows.setdefault((each.cell.shape, each.cell.size), {})[each.cell.way] = each
    style = {"title_justify": "left", "title_style": "bold", "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=title, box=box.SIMPLE_HEAD, **style)  # type: ignore[arg-type]
    table.add_column("shape", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for way in ways:
        table.add_column(way.replace(" → ", "\n→ ").replace(", ", "\n"), justify="right")
    for (shape, size), cells in rows.items():
        texts = []
        for way in ways:
            cell = cells.get(way)
            ratio = None if cell is None else value(cell)
            if cell is None or ratio is None:
                texts.append(Text("–"))
            else:
                texts.append(Text(shown(ratio)) if is_good(cell) else Text(f"{shown(ratio)}!", "bold red"))
        table.add_row(shape, f"{size:,}", *texts)
    return table


def missed_lines(result: GridResult) -> list[str]:
    """The cells that miss their target, worst first, and those that could not be measured."""
    missed = [
        f"{each.cell}: {shown(each.harken.median)} µs, closures {shown(each.closures.median)} µs; "
        f"it should be {each.cell.target()}"
        for each in sorted(result.missed, key=lambda each: -each.ratio)
    ]
    missing = [
        f"not measured: {each['shape']} {each['size']:,}, {each['cells']} cells: {each['reason']}"
        for each in result.not_measured
    ]
    return missed + missing
