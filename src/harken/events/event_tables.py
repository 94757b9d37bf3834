"""Cells as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.events.cells import Cells, PathCells
from harken.schema.paths import Path, format_path
from harken.schema.values import Kind

_BEYOND = 2.0**63


def table_of(columns: Mapping[Path, PathCells], rows: int) -> Any:
    """A column per path, named as subscriptions write the path; None if a path cannot be a column."""
    import pyarrow

    arrays = {format_path(path): _column(cells, rows) for path, cells in columns.items()}
    return None if any(array is None for array in arrays.values()) else pyarrow.table(arrays)


def _column(path_cells: PathCells, rows: int) -> Any:
    """The value of each row; None if a row has several or only an object, or the values have several kinds."""
    import numpy as np
    import pyarrow

    if len(path_cells.cells) > 1:
        return None
    if not path_cells.cells:
        return None if path_cells.present.any() else pyarrow.nulls(rows)
    (cells,) = path_cells.cells
    values = _values(cells)
    has_several = bool((cells.rows[1:] == cells.rows[:-1]).any())
    if values is None or has_several or len(cells.rows) != np.count_nonzero(path_cells.present):
        return None
    places = np.full(rows, -1)
    places[cells.rows] = np.arange(len(cells.rows))
    return values.take(pyarrow.array(places, mask=places < 0))


def _values(cells: Cells) -> Any:
    """The values as an Arrow array; None if floats are mixed with integers that no float holds exactly."""
    import numpy as np
    import pyarrow

    values = cells.values
    match cells.kind:
        case Kind.STRING:
            return values
        case Kind.BOOLEAN:
            return pyarrow.array(values.astype(np.bool_))
        case Kind.DATE:
            return pyarrow.array(values.astype(np.int32)).view(pyarrow.date32())
        case Kind.TIMESTAMP:
            return pyarrow.array(values).view(pyarrow.timestamp("us", "UTC"))
    if cells.part is None:
        return pyarrow.array(values)
    is_beyond = np.abs(cells.part) >= 1  # a float outside the range of int64 is wholly in `part`
    integers = values[~is_beyond]
    floats = integers.astype(np.float64)
    if (floats == _BEYOND).any() or (floats.astype(np.int64) != integers).any():
        return None
    return pyarrow.array(np.where(is_beyond, cells.part, values + cells.part))
