"""The figures behind the plots of an experiment, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harken_lab.experiments.definition import Experiment, ExperimentResult
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.plotting import Dots, Plot
from harken_lab.harness.charts import shown

REJECTED, NOTHING = "rejected", "–"


class Table(NamedTuple):
    """Cells of text below headings."""

    title: str
    headings: list[str]
    cells: list[list[str]]


def tables(experiment: Experiment, result: ExperimentResult) -> Iterator[Table]:
    """A table for each plot and each value of its facet."""
    for plot in experiment.plots:
        if isinstance(plot, Dots):
            yield _by_contestant(plot, WorkloadRows(result.rows))
            continue
        rows = WorkloadRows(result.rows).where(**plot.where)
        for facet in rows.each(plot.facet) if plot.facet else [None]:
            inside = rows.where(**{plot.facet: facet}) if plot.facet else rows
            if any(plot.y in row for row in inside):
                yield _by_place(plot, inside, "" if facet is None else f", {facet}")


def _by_place(plot: Plot, rows: WorkloadRows, more: str) -> Table:
    entrants = [name for name in rows.each("entrant") if not plot.entrants or name in plot.entrants]
    places = sorted({row[plot.x] for row in rows if plot.x in row})
    cells = [
        [name, *(_cell(rows.where(**{plot.x: place, "entrant": name}), plot.y) for place in places)]
        for name in entrants
    ]
    title = f"{plot.title}{more}: {plot.y_title}, by {plot.x_title}"
    # Contestants are rows: there are more of them than places, and their names are longer.
    return Table(title, ["", *map(_place, places)], cells)


def _by_contestant(plot: Dots, rows: WorkloadRows) -> Table:
    workloads = rows.each("workload")
    cells = [
        [name, *(_cell(rows.where(entrant=name, workload=each), plot.x) for each in workloads)]
        for name in rows.each("entrant")
    ]
    return Table(f"{plot.title}: {plot.x_title}", ["", *workloads], cells)


def _cell(rows: WorkloadRows, field: str) -> str:
    row: Row = next(iter(rows), {})
    if row.get(field) is not None:
        return _size(row[field]) if "bytes" in field else shown(row[field])
    return REJECTED if "rejected" in row else NOTHING


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"{shown(size)} {unit}"
        size /= 1_000
    return f"{shown(size)} GB"


def _place(place: float) -> str:
    return f"{place:,}" if isinstance(place, int) else f"{place:g}"
