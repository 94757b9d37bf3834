"""Cells: the values of a batch at one path, as arrays, one set of arrays per kind.

A number is a pair of an int64 and a float64. Pairs compare, int64 first, exactly as Python compares integers with
floats, also beyond 2^53. The other kinds need one array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import compress
from typing import TYPE_CHECKING, Any

from harken.schema.values import INT64_MAX, INT64_MIN, KINDS, Kind, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
_BEYOND = 2.0**63


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one kind at one path in a batch."""

    kind: Kind
    rows: NDArray[np.int32]
    """The index of each value's event in the batch, ascending; repeated for events with several values."""
    values: Any
    """For strings a `pyarrow.StringArray` or `LargeStringArray` without nulls, possibly a slice; for other kinds an
    int64 array, see `whole_and_part` and `as_integer`. Do not write to `values` or `rows`: they may be shared. They are
    not marked read-only, because Numba would compile every kernel again for read-only arrays."""
    part: NDArray[np.float64] | None = None
    """The float64 half of numbers; None if it is 0 for all."""


@dataclass(frozen=True, slots=True)
class PathCells:
    """All values at one path in a batch. Objects at the end of the path count as present but have no cells."""

    cells: tuple[Cells, ...]
    """One for each kind that occurs, in the order of `Kind`."""
    present: NDArray[np.bool_]
    """For every event whether it has any value at the path."""
    open_rows: NDArray[np.int32] | None = None
    """For a derived attribute, the events with too many bindings to compute: they may have any value."""


def whole_and_part(value: int | float) -> tuple[int, float]:
    """The pair that stands for a number: its integer part, truncated toward 0, and the rest.

    Both are exact, also for the smallest floats; with the floor, -1e-300 and -1e-301 would be equal. For a float
    outside the range of int64, the pair is the nearest int64 and the float itself.
    """
    if isinstance(value, int):
        return int(value), 0.0
    if value >= _BEYOND:
        return INT64_MAX, value
    if value < -_BEYOND:
        return INT64_MIN, value
    whole = int(value)
    return whole, value - whole + 0.0


def as_integer(kind: Kind, value: Value) -> int:
    """The integer for a boolean (0, 1), a date (days since 1970) or a timestamp (microseconds since 1970)."""
    if kind is Kind.TIMESTAMP and isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if kind is Kind.DATE and isinstance(value, date):
        return value.toordinal() - _EPOCH_DAY
    if kind is Kind.BOOLEAN and isinstance(value, bool):
        return int(value)
    raise TypeError(f"{value!r:.60} is not a {kind} that one integer stands for")


def embedded(floats: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """`whole_and_part` of an array without NaNs."""
    import numpy as np

    high, low = floats >= _BEYOND, floats < -_BEYOND
    beyond = high | low
    if not beyond.any():
        whole = floats.astype(np.int64)
        part = floats - whole
    else:
        whole = np.where(beyond, 0.0, floats).astype(np.int64)
        part = floats - whole
        whole[high], whole[low] = INT64_MAX, INT64_MIN
    return whole, part + 0.0 if part.any() else None


def cells_by_kind(rows: NDArray[np.int32], values: list[Any], types: set[type]) -> Iterator[Cells]:
    """The cells of values, by kind. `types` are all types that occur; objects are left out."""
    import numpy as np

    only = KINDS.get(next(iter(types))) if len(types) == 1 else None
    if only is not None:
        yield _cells(only, rows, values, types)
        return
    for kind in Kind:
        kind_types = {each for each in types if KINDS.get(each) is kind}
        if not kind_types:
            continue
        if kind_types == types:
            yield _cells(kind, rows, values, kind_types)
        else:
            kept = np.array([type(value) in kind_types for value in values], np.bool_)
            yield _cells(kind, rows[kept], list(compress(values, kept)), kind_types)


def _cells(kind: Kind, rows: NDArray[np.int32], values: list[Any], types: set[type]) -> Cells:
    import numpy as np
    import pyarrow

    match kind:
        case Kind.STRING:
            return Cells(kind, rows, pyarrow.array(values, pyarrow.large_string()))
        case Kind.NUMBER:
            return Cells(kind, rows, *_numbers(values, types))
        case Kind.TIMESTAMP:
            integers = pyarrow.array(values, pyarrow.timestamp("us", "UTC")).view("int64").to_numpy().astype(np.int64)
        case Kind.DATE:
            integers = pyarrow.array(values, pyarrow.date32()).view("int32").to_numpy().astype(np.int64)
        case Kind.BOOLEAN:
            integers = np.array(values, np.bool_).astype(np.int64)
    return Cells(kind, rows, integers)


def _numbers(values: list[Any], types: set[type]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    import numpy as np

    if types == {int}:
        return np.array(values, np.int64), None
    if types == {float}:
        return embedded(np.array(values, np.float64))
    real = np.array([type(value) is float for value in values], np.bool_)
    whole = np.empty(len(values), np.int64)
    whole[~real] = np.array(list(compress(values, ~real)), np.int64)
    whole[real], rest = embedded(np.array(list(compress(values, real)), np.float64))
    if rest is None:
        return whole, None
    part = np.zeros(len(values), np.float64)
    part[real] = rest
    return whole, part
