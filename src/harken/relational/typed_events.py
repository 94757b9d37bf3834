"""A batch of events as columns of values that a database compares, at most one value an event and column.

Events with several bindings, with numbers that are no doubles, or with texts that some database cannot hold are
excluded: instead of being queried, they are verified against every subscription.
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
from harken.relational.typed_values import is_storable, storage_of
from harken.schema.derived import place_of
from harken.schema.paths import Path

_BEYOND = 2.0**63


class TypedColumn(NamedTuple):
    """The values of one column: the events that have a value, ascending, and the value of each."""

    attribute: int
    storage: Storage
    rows: NDArray[np.int32]
    values: list[Any]


@dataclass(frozen=True, slots=True)
class TypedEvents:
    """The events of a batch, without values of excluded events."""

    count: int
    columns: list[TypedColumn]
    """The columns that have a value of some event."""
    excluded: NDArray[np.bool_]
    """The events to verify against every subscription."""

    def by_event(self) -> list[list[tuple[int, Storage, Any]]]:
        """The values of each event, with their attributes and storages."""
        facts: list[list[tuple[int, Storage, Any]]] = [[] for _ in range(self.count)]
        for attribute, storage, rows, values in self.columns:
            for row, value in zip(rows.tolist(), values, strict=True):
                facts[row].append((attribute, storage, value))
        return facts


def typed_events(batch: EventBatch, columns: Sequence[Column]) -> TypedEvents:
    """A batch as typed columns."""
    excluded = np.zeros(len(batch), np.bool_)
    typed: list[TypedColumn] = []
    names = batch.known_names()
    paths: dict[Path, PathCells] = {}
    for place, column in enumerate(columns):
        path = column.path
        name = place_of(path)[0]
        if name and column.kind is not None and name not in names:
            continue
        if path not in paths:
            paths[path] = batch.cells(path)
            _mark_several(paths[path], excluded)
        rows, values = _values(column, paths[path], excluded)
        if len(rows):
            typed.append(TypedColumn(place + 1, storage_of(column), rows, values))
    for prefix in binding_prefixes(paths):
        excluded |= batch.branching(prefix)
    if excluded.any():
        typed = [_without(each, excluded) for each in typed]
    return TypedEvents(len(batch), [each for each in typed if len(each.rows)], excluded)


def _mark_several(at_path: PathCells, excluded: NDArray[np.bool_]) -> None:
    """Mark the events with several values at a path, of one kind or of several."""
    rows = [cells.rows for cells in at_path.cells]
    if rows:
        excluded |= np.bincount(np.concatenate(rows), minlength=len(excluded)) > 1
    if at_path.open_rows is not None:
        excluded[at_path.open_rows] = True


def _without(column: TypedColumn, excluded: NDArray[np.bool_]) -> TypedColumn:
    kept = ~excluded[column.rows]
    values = [value for value, stays in zip(column.values, kept.tolist(), strict=True) if stays]
    return column._replace(rows=column.rows[kept], values=values)


def _values(column: Column, at_path: PathCells, excluded: NDArray[np.bool_]) -> tuple[NDArray[np.int32], list[Any]]:
    if column.kind is None:
        return np.arange(len(at_path.present), dtype=np.int32), at_path.present.astype(np.int64).tolist()
    cells = next((each for each in at_path.cells if each.kind is column.kind), None)
    if cells is None:
        return np.empty(0, np.int32), []
    if column.coded is not None:
        places = pc.index_in(cells.values, value_set=pa.array(column.coded, cells.values.type))
        whole = pc.fill_null(places, -1).to_numpy().astype(np.int64)
        excluded[cells.rows[whole < 0]] = True
        return cells.rows, whole.tolist()
    match storage_of(column):
        case Storage.TEXT:
            texts = cells.values.to_pylist()
            excluded[cells.rows[[not is_storable(text) for text in texts]]] = True
            return cells.rows, texts
        case Storage.NUMBER:
            numbers, is_exact = _doubles(cells)
            excluded[cells.rows[~is_exact]] = True
            return cells.rows, numbers.tolist()
        case Storage.WHOLE:
            return cells.rows, cells.values.tolist()


def _doubles(cells: Cells) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers as doubles, and which of them are finite and exact."""
    whole = np.asarray(cells.values)
    numbers = whole.astype(np.float64)
    is_within = (numbers >= -_BEYOND) & (numbers < _BEYOND)
    is_exact = is_within & (np.where(is_within, numbers, 0.0).astype(np.int64) == whole)
    if cells.part is None:
        return numbers, is_exact
    is_beyond = (cells.part >= _BEYOND) | (cells.part < -_BEYOND)
    numbers = np.where(is_beyond, cells.part, numbers + cells.part)
    return numbers, (is_exact | (cells.part != 0)) & np.isfinite(numbers)
