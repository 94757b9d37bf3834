"""A batch of events as values that a database compares: one value a column, or the event is told apart.

Events with several bindings, with numbers that no double holds, and with texts that not every database holds are
apart: they are verified against every subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.encode import binding_prefixes
from harken.databases.dialects import Storage
from harken.events import EventBatch
from harken.events.cells import Cells, PathCells
from harken.relational.typed_values import is_sayable, storage_of
from harken.schema.derived import place_of
from harken.schema.paths import Path

_BEYOND = 2.0**63


class TypedColumn(NamedTuple):
    """The values of one column: the events that have one, ascending, and the value of each."""

    attribute: int
    storage: Storage
    rows: NDArray[np.int32]
    values: list[Any]


@dataclass(frozen=True, slots=True)
class TypedEvents:
    """The events of a batch. Values of events that are apart are left out."""

    count: int
    columns: list[TypedColumn]
    """Those that some event has a value in."""
    apart: NDArray[np.bool_]

    def by_event(self) -> list[list[tuple[int, Storage, Any]]]:
        """What each event has: attribute, storage, value."""
        found: list[list[tuple[int, Storage, Any]]] = [[] for _ in range(self.count)]
        for attribute, storage, rows, values in self.columns:
            for row, value in zip(rows.tolist(), values, strict=True):
                found[row].append((attribute, storage, value))
        return found


def typed_events(batch: EventBatch, columns: Sequence[Column]) -> TypedEvents:
    """A batch as typed columns."""
    apart = np.zeros(len(batch), np.bool_)
    found: list[TypedColumn] = []
    names = batch.known_names()
    paths: dict[Path, PathCells] = {}
    for place, column in enumerate(columns):
        path = column.path
        name = place_of(path)[0]
        if name and column.kind is not None and name not in names:
            continue
        if path not in paths:
            paths[path] = batch.cells(path)
            _mark_several(paths[path], apart)
        rows, values = _values(column, paths[path], apart)
        if len(rows):
            found.append(TypedColumn(place + 1, storage_of(column), rows, values))
    for prefix in binding_prefixes(paths):
        apart |= batch.branching(prefix)
    if apart.any():
        found = [_without(each, apart) for each in found]
    return TypedEvents(len(batch), [each for each in found if len(each.rows)], apart)


def _mark_several(found: PathCells, apart: NDArray[np.bool_]) -> None:
    """Mark the events with several values at a path, of one kind or of several."""
    rows = [cells.rows for cells in found.cells]
    if rows:
        apart |= np.bincount(np.concatenate(rows), minlength=len(apart)) > 1
    if found.open_rows is not None:
        apart[found.open_rows] = True


def _without(column: TypedColumn, apart: NDArray[np.bool_]) -> TypedColumn:
    kept = ~apart[column.rows]
    values = [value for value, stays in zip(column.values, kept.tolist(), strict=True) if stays]
    return column._replace(rows=column.rows[kept], values=values)


def _values(column: Column, found: PathCells, apart: NDArray[np.bool_]) -> tuple[NDArray[np.int32], list[Any]]:
    if column.kind is None:
        return np.arange(len(found.present), dtype=np.int32), found.present.astype(np.int64).tolist()
    cells = next((each for each in found.cells if each.kind is column.kind), None)
    if cells is None:
        return np.empty(0, np.int32), []
    if column.coded is not None:
        places = pc.index_in(cells.values, value_set=pa.array(column.coded, cells.values.type))
        whole = pc.fill_null(places, -1).to_numpy().astype(np.int64)
        apart[cells.rows[whole < 0]] = True
        return cells.rows, whole.tolist()
    match storage_of(column):
        case Storage.TEXT:
            texts = cells.values.to_pylist()
            apart[cells.rows[[not is_sayable(text) for text in texts]]] = True
            return cells.rows, texts
        case Storage.NUMBER:
            numbers, is_exact = _doubles(cells)
            apart[cells.rows[~is_exact]] = True
            return cells.rows, numbers.tolist()
        case Storage.WHOLE:
            return cells.rows, cells.values.tolist()


def _doubles(cells: Cells) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers as doubles, and which of them are exactly that, and finite."""
    whole = np.asarray(cells.values)
    numbers = whole.astype(np.float64)
    is_within = (numbers >= -_BEYOND) & (numbers < _BEYOND)
    is_exact = is_within & (np.where(is_within, numbers, 0.0).astype(np.int64) == whole)
    if cells.part is None:
        return numbers, is_exact
    is_beyond = (cells.part >= _BEYOND) | (cells.part < -_BEYOND)
    numbers = np.where(is_beyond, cells.part, numbers + cells.part)
    return numbers, (is_exact | (cells.part != 0)) & np.isfinite(numbers)
