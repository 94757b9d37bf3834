"""REIN: mark the rows that fail, bound by bound (Qian et al., INFOCOM 2014, section IV)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.vector import NO_BITS, ONE_BIT, ROWS, borrowed, trailing_zeros
from harken_lab.papers.kernels.row_table import row_holds


class Bounds(NamedTuple):
    """The bounds of one side, ascending by column: those of column c from starts[c] to starts[c + 1]."""

    starts: NDArray[np.int64]
    labels: NDArray[np.uint32]
    rows: NDArray[np.int32]


class BoundLists(NamedTuple):
    """The bounds of all rows but the latest."""

    low: Bounds
    """The low bound of every interval that is not wrapped."""
    high: Bounds
    """The high bound of those intervals that have one."""
    wrapped: Bounds
    """The low bound of wrapped intervals, in no order."""
    wrapped_high: NDArray[np.uint32]
    failed: NDArray[np.uint64]
    """A bit for every row that is not on the lists or was removed: such rows fail for every event."""


@kernel
def find_unmarked(lists, table, latest, count, codes, marked, first, out, offsets, examined):
    """Mark for each event from `first` on the rows that fail; the unmarked rows match.

    The latest rows are on no list: they are tested. `marked` has room for a bit a row. Returns the first event without
    room for `count` rows, which are all, or the end.
    """
    low, high, wrapped = lists.low, lists.high, lists.wrapped
    marked = borrowed(marked)
    columns = min(codes.shape[0], low.starts.size - 1)
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < count:
            return event
        marked[:] = lists.failed
        examined_rows = np.int64(latest.size)
        for column in range(columns):
            label = codes[column, event]
            begin, stop = low.starts[column], low.starts[column + 1]
            if label:
                begin = _first_above(low.labels, begin, stop, label)
            examined_rows += _mark(low.rows, begin, stop, marked)
            begin, stop = high.starts[column], high.starts[column + 1]
            if label:
                stop = _first_above(high.labels, begin, stop, label - np.uint32(1))
                examined_rows += _mark(high.rows, begin, stop, marked)
            for at in range(wrapped.starts[column], wrapped.starts[column + 1]):
                examined_rows += 1
                if label == 0 or lists.wrapped_high[at] < label < wrapped.labels[at]:
                    marked[wrapped.rows[at] >> 6] |= ONE_BIT << np.uint64(wrapped.rows[at] & 63)
        for word in range(marked.size):
            left = ~marked[word]
            while left != NO_BITS:
                out[end] = word * ROWS + trailing_zeros(left)
                end += 1
                left &= left - ONE_BIT
        for i in range(latest.size):
            if row_holds(table, latest[i], codes, event):
                out[end] = latest[i]
                end += 1
        offsets[event + 1] = end
        examined[event] = examined_rows
    return codes.shape[1]


@inlined
def _mark(rows, begin, stop, marked):
    """Mark rows[begin:stop]. Returns how many these are."""
    for at in range(begin, stop):
        row = rows[at]
        marked[row >> 6] |= ONE_BIT << np.uint64(row & 63)
    return stop - begin


@inner
def _first_above(labels, begin, stop, label):
    """The first place in begin:stop with a greater label, or `stop`."""
    while begin < stop:
        middle = (begin + stop) >> 1
        if labels[middle] <= label:
            begin = middle + 1
        else:
            stop = middle
    return begin
