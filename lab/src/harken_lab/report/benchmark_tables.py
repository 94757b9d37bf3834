"""The main figures of each benchmark as tables. Of a spread the median is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken_lab.bench.figures import BenchResult, Key, read_result
from harken_lab.bench.grid_result import MeasuredCell, read_grid
from harken_lab.harness.charts import shown
from harken_lab.report.report_document import Block, DataTable, Paragraph

NOTHING = "–"
_MOST_ROWS = 40
"""Most figures shown of a benchmark that has no tables of its own."""
_MATCHING = {
    "match": "µs/event",
    "speedup": "times counting_lists",
    "bytes": "bytes a subscription",
    "build": "s to build",
    "insert": "µs to add one",
    "delete": "µs to remove one",
}
_NO_FIGURES = {"what", "environment", "settings", "rounds", "seed", "format", "count"}
_INPUT = {"subscriptions", "events", "matches", "batches"}
_LABELS = ("name", "workload", "engine", "algorithm", "subscriptions")


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """A saved benchmark."""

    name: str
    path: Path
    data: Mapping[str, Any]

    @property
    def seed(self) -> int | None:
        seed = self.data.get("seed", self.data.get("settings", {}).get("seed"))
        return None if seed is None else int(seed)


def matching_tables(each: BenchmarkResult) -> Iterator[Block]:
    """The largest size of every workload, by matcher."""
    result = read_result(each.path)
    largest: dict[str, int] = {}
    for key in (figure.key for figure in result.named("match")):
        largest[str(key.workload)] = max(key.size or 0, largest.get(str(key.workload), 0))
    matchers = dict.fromkeys(figure.key.matcher for figure in result.named("match"))
    rows = (
        (
            f"{matcher}, {workload}, {size:,}",
            *(_figure(result, Key(name, workload, size, matcher)) for name in _MATCHING),
        )
        for workload, size in largest.items()
        for matcher in matchers
    )
    yield DataTable(("matcher, workload, subscriptions", *_MATCHING.values()), tuple(rows), are_numbers=True)


def _figure(result: BenchResult, key: Key) -> str:
    figure = result.find(key)
    return NOTHING if figure is None else shown(figure.median)


def user_tables(each: BenchmarkResult) -> Iterator[Block]:
    """The time of calls, by the number of subscriptions and by workload."""
    yield _columns(each.data["sizes"], "us_per_event", "µs an event, by subscriptions", ("subscriptions",))
    if each.data.get("workloads"):
        heads = ("workload", "subscriptions")
        yield _columns(each.data["workloads"], "us_per_event", "µs an event, by workload", heads)


def document_tables(each: BenchmarkResult) -> Iterator[Block]:
    """Documents a second and further figures, by the number of subscriptions."""
    sizes = each.data["sizes"]
    yield _columns(sizes, "documents_per_second", "documents a second, by subscriptions", ("subscriptions",))
    more = ("share_of_parsing", "times_lxml", "loaded_per_second", "bytes_per_subscription")
    rows = ((titled(name), *(_value(row.get(name)) for row in sizes)) for name in more)
    yield DataTable(
        ("by subscriptions", *(f"{row['subscriptions']:,}" for row in sizes)), tuple(rows), are_numbers=True
    )


def relational_tables(each: BenchmarkResult) -> Iterator[Block]:
    """The time of an event, by algorithm, workload and database."""
    yield _columns(each.data["rows"], "us_per_event", "µs an event", ("workload", "engine"))


def _columns(rows: Sequence[Mapping[str, Any]], field: str, title: str, heads: Sequence[str]) -> DataTable:
    """A table with a column for each row of a result, and a line for each name in its field."""
    names = list(dict.fromkeys(name for row in rows for name in row[field]))
    lines = ((titled(name), *(_value(row[field].get(name)) for row in rows)) for name in names)
    return DataTable(
        (title, *(", ".join(_value(row[head]) for head in heads) for row in rows)), tuple(lines), are_numbers=True
    )


def grid_tables(each: BenchmarkResult) -> Iterator[Block]:
    """Harken's time as a multiple of the loop's: the least and the most of each shape."""
    result = read_grid(each.path)
    holding = len(result.cells) - len(result.missed)
    yield Paragraph(
        "The time of calls as a multiple of a loop of compiled closures. Harken meets its speed target in "
        f"{holding} of {len(result.cells)} cases."
    )
    shapes: dict[str, list[MeasuredCell]] = {}
    for cell in result.cells:
        shapes.setdefault(cell.cell.shape, []).append(cell)
    rows = []
    for shape, cells in shapes.items():
        largest = max(cell.cell.size for cell in cells)
        at_most = [cell for cell in cells if cell.cell.size == largest]
        holding = sum(cell.meets_target for cell in cells)
        rows.append((shape, f"{holding} of {len(cells)}", _range(cells), f"{_range(at_most)} at {largest:,}"))
    headings = ("shape", "targets met", "times the loop", "with the most subscriptions")
    yield DataTable(headings, tuple(rows), are_numbers=True)


def _range(cells: Sequence[MeasuredCell]) -> str:
    ratios = [cell.ratio for cell in cells]
    return f"{shown(min(ratios))} to {shown(max(ratios))}"


def spark_tables(each: BenchmarkResult) -> Iterator[Block]:
    """The figures of each part, by the number of cores."""
    parts = each.data["found"]
    cores = list(dict.fromkeys(name for by_cores in parts.values() for name in by_cores))
    rows = []
    for part, by_cores in parts.items():
        leaves = {name: dict(_leaves(figures)) for name, figures in by_cores.items()}
        for figure in dict.fromkeys(figure for of_cores in leaves.values() for figure in of_cores):
            if figure.rpartition(", ")[2] not in _INPUT:
                values = (leaves.get(name, {}).get(figure, NOTHING) for name in cores)
                rows.append((f"{titled(part)}: {figure}", *values))
    yield DataTable(("", *(name.replace("1 cores", "1 core") for name in cores)), tuple(rows), are_numbers=True)


def any_tables(each: BenchmarkResult) -> Iterator[Block]:
    """The figures of a benchmark without tables of its own, by the names that lead to them."""
    figures = list(_leaves({name: value for name, value in each.data.items() if name not in _NO_FIGURES}))
    yield DataTable(("figure", "value"), tuple(figures[:_MOST_ROWS]), are_numbers=True)
    if len(figures) > _MOST_ROWS:
        yield Paragraph(f"And {len(figures) - _MOST_ROWS:,} more, in {each.path.name}.", is_aside=True)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The figures of nested data, with the names that lead to them."""
    if isinstance(value, Mapping) and "median" not in value:
        for key, inner in value.items():
            text = f"{int(key):,}" if key.isdecimal() else key.replace("_", " ")
            yield from _leaves(inner, f"{name}, {text}" if name else text)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{name}, {_place(inner, place)}")
    else:
        yield name, _value(value)


def _place(value: Any, place: int) -> str:
    """A label for an item of a list: its workload, its size, or its place."""
    labels = [_value(value[name]) for name in _LABELS if name in value] if isinstance(value, Mapping) else []
    return " ".join(labels) or str(place)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        high = f" (p99: {_value(value['p99'])})" if "p99" in value else ""
        return f"{_value(value['median'])}{high}"
    if value is None:
        return NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else shown(value)


def titled(name: str) -> str:
    """A name of a file or a field as a heading."""
    words = name.replace("_", " ").replace("-", " ")
    return words[0].upper() + words[1:]
