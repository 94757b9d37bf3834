"""Cells as an Arrow table, for what works on tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.events.cells import Cells, PathCells
from harken.schema.paths import Path, format_path
from harken.schema.values import Kind

_BEYOND = 2.0**63


def table_of(columns: Mapping[Path, PathCells], rows: int) -> Any:
    """A column for every path, named as it is written in a subscription; None if one of them cannot be a column."""
    import pyarrow

    arrays = {format_path(path): _column(found, rows) for path, found in columns.items()}
    return None if any(array is None for array in arrays.values()) else pyarrow.table(arrays)


def _column(found: PathCells, rows: int) -> Any:
    """The only value of each row; None if some row has several, or only an object."""
    import numpy as np
    import pyarrow

    if len(found.cells) > 1:
        return None
    if not found.cells:
        return None if found.present.any() else pyarrow.nulls(rows)
    (cells,) = found.cells
    values = _values(cells)
    has_several = bool((cells.rows[1:] == cells.rows[:-1]).any())
    if values is None or has_several or len(cells.rows) != np.count_nonzero(found.present):
        return None
    places = np.full(rows, -1)
    places[cells.rows] = np.arange(len(cells.rows))
    return values.take(pyarrow.array(places, mask=places < 0))


def _values(cells: Cells) -> Any:
    """The values as an Arrow array; None for integers beside floats where some have no equal of the other type."""
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
    is_beyond = np.abs(cells.part) >= 1  # a float outside of 64 bits is all in its second half
    integers = values[~is_beyond]
    floats = integers.astype(np.float64)
    if (floats == _BEYOND).any() or (floats.astype(np.int64) != integers).any():
        return None
    return pyarrow.array(np.where(is_beyond, cells.part, values + cells.part))
