"""All rows as one table: a row asks for a label within an interval in each of some columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel

_LOW_BITS = 0xFFFF_FFFF


class RowTable(NamedTuple):
    """The predicates of row r are the `sizes[r]` from `starts[r]` on, ordered by column."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    columns: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    """If low is greater than high, the interval is wrapped: it admits labels >= low or <= high, but not 0."""


@kernel
def holds(low, high, label):
    """Whether an event's label lies in an interval. Label 0, a missing value, lies in none."""
    offset, span = np.int64(label) - np.int64(low), np.int64(high) - np.int64(low)
    return label != np.uint32(0) and offset & _LOW_BITS <= span & _LOW_BITS


@kernel
def row_holds(table, row, codes, event):
    """Whether all predicates of a row hold for an event, whose labels are `codes[:, event]`."""
    start = table.starts[row]
    for at in range(start, start + table.sizes[row]):
        if not holds(table.low[at], table.high[at], codes[table.columns[at], event]):
            return False
    return True


@kernel
def find_several(table, alive, starts, values, columns, place, out, end):
    """Append the rows that may hold for an event with several labels in some column; rows without predicates never.

    The labels of the event in column c begin at `values[starts[place × columns + c]]`, ascending. `out` has room for
    all rows. Returns the new end.
    """
    first = place * columns
    for i in range(alive.size):
        row = alive[i]
        start = table.starts[row]
        met = table.sizes[row] > 0
        for at in range(start, start + table.sizes[row]):
            begin = starts[first + table.columns[at]]
            stop = starts[first + table.columns[at] + 1]
            any_holds = False
            for j in range(begin, stop):
                any_holds |= holds(table.low[at], table.high[at], values[j])
            met &= any_holds
            if not met:
                break
        if met:
            out[end] = row
            end += 1
    return end
