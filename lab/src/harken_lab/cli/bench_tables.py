"""Results of benchmarks as tables: figures, targets and comparisons."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harken_lab.harness.charts import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from harken_lab.bench.comparison import FigureChange
    from harken_lab.bench.figures import BenchResult, Figure, Key
    from harken_lab.bench.targets import TargetVerdict


class _Group(NamedTuple):
    """Figures in one table: a row for each workload, size and matcher, a column for each name and part."""

    title: str
    names: tuple[str, ...]
    by_part: bool = False
    """Whether each part has a row, not a column."""


_GROUPS = (
    _Group("Matching", ("match", "speedup", "to_copy")),
    _Group("Answers", ("matches", "candidates")),
    _Group("Before and after matching, µs per event", ("write", "copy", "encode", "arrow_ints", "arrow_strings")),
    _Group("Growth", ("growth",)),
    _Group("Memory", ("index_bytes", "dictionary_bytes", "bytes", "peak_rss")),
    _Group("Building", ("build", "load")),
    _Group("One event at a time, µs", ("latency_p50", "latency_p99")),
    _Group("Changes", ("insert", "insert_cpu", "delete", "delete_cpu", "under_updates")),
    _Group("Each kind in the mixture", ("in_mixture", "alone", "to_alone"), by_part=True),
    _Group("From bytes to codes", ("to_codes",), by_part=True),
    _Group("First match", ("first_match",)),
    _Group("A second thread", ("thread_gain", "alu_gain", "thread_share", "thread_share_quickest")),
)
_LABELS = ("workload", "size", "matcher", "part")
# Most terminals have 80 columns.
_NARROW: dict[str, Any] = {"pad_edge": False, "padding": (0, 1, 0, 0)}
_SPREAD = {"match", "speedup", "to_copy", "growth", "to_alone"}


def figure_tables(result: BenchResult) -> Iterator[Table]:
    """All figures, a table for each group that has any."""
    for group in _GROUPS:
        figures = [figure for name in group.names for figure in result.named(name)]
        if figures:
            yield _table(group, figures)


def _table(group: _Group, figures: list[Figure]) -> Table:
    from rich import box
    from rich.table import Table

    headings = list(dict.fromkeys(_heading(group, figure.key) for figure in figures))
    headings.sort(key=lambda heading: group.names.index(heading[0]))
    units = {figure.key.name: figure.meaning.unit for figure in figures}
    rows: dict[tuple[object, ...], dict[tuple[str, str | None], Figure]] = {}
    for figure in figures:
        rows.setdefault(_row(group, figure.key), {})[_heading(group, figure.key)] = figure
    used = [place for place in range(4) if any(row[place] is not None for row in rows)]
    table = Table(
        min_width=len(group.title),
        title=group.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        **_NARROW,
    )
    for place in used:
        table.add_column(_LABELS[place], justify="right" if _LABELS[place] == "size" else "left", no_wrap=True)
    for name, part in headings:
        heading = name.replace("_", " ") + ("" if part is None else f" {part}")
        table.add_column(f"{heading}\n{units[name]}", justify="right")
    for row, cells in rows.items():
        labels = [_label(row[place]) for place in used]
        table.add_row(*labels, *(_cell(cells.get(heading)) for heading in headings))
    return table


def _row(group: _Group, key: Key) -> tuple[object, ...]:
    return key.workload, key.size, key.matcher, key.part if group.by_part else None


def _heading(group: _Group, key: Key) -> tuple[str, str | None]:
    return key.name, None if group.by_part else key.part


def _label(value: object) -> str:
    """A label of a row: a name as it is, a size in thousands or millions."""
    if not isinstance(value, int):
        return "" if value is None else str(value)
    for unit, letter in ((1_000_000, "M"), (1_000, "K")):
        if value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value:,}"


def _cell(figure: Figure | None) -> str:
    """The median and, for some figures, the largest deviation of a round from it."""
    if figure is None:
        return "–"
    if figure.key.name not in _SPREAD or not figure.median:
        return shown(figure.median)
    strays = max(figure.most - figure.median, figure.median - figure.least) / figure.median
    return f"{shown(figure.median)} ±{strays:.0%}"


def missing_lines(result: BenchResult) -> list[str]:
    """A line for each reason why figures were not measured, with their names."""
    by_reason: dict[str, dict[str, None]] = {}
    for each in result.not_measured:
        matcher = f" ({each.key.matcher})" if each.key.matcher else ""
        by_reason.setdefault(each.reason, {})[f"{each.key.name}{matcher}"] = None
    return [f"not measured: {', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def target_table(verdicts: Sequence[TargetVerdict]) -> Table:
    """Targets, the figures measured for them, and whether they are reached."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, **_NARROW)
    table.add_column("target", overflow="fold")
    table.add_column("wanted", justify="right")
    table.add_column("reached", justify="right")
    table.add_column("")
    for verdict in verdicts:
        reached = "not measured" if verdict.figure is None else shown(verdict.figure.median)
        answer = Text("yes", "green") if verdict.is_reached else Text("no", "bold red")
        table.add_row(verdict.target.text, verdict.target.wanted, reached, answer)
    return table


def unmeasured_lines(verdicts: Sequence[TargetVerdict]) -> list[str]:
    """A line for each reason why targets have no figure."""
    counts = Counter(verdict.reason for verdict in verdicts if verdict.reason is not None)
    return [f"not measured, {count} of them: {reason}" for reason, count in counts.items()]


def change_table(changes: Sequence[FigureChange]) -> Table:
    """Figures of both results, with a verdict where they differ beyond the spread."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **_NARROW)
    table.add_column("figure", overflow="fold")
    for heading in ("unit", "old", "new", "new / old"):
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    table.add_column("beyond the spread")
    for change in changes:
        old, new, ratio = shown(change.old.median), shown(change.new.median), f"{change.ratio:.2f}"
        table.add_row(str(change.new.key), change.new.meaning.unit, old, new, ratio, change.verdict)
    return table
