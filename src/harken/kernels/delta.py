"""The delta: rows that came since the index was built, in chains by key.

A row hangs in one chain: that of the hash of a column and a code, if it asks for one value of some column; else that of
a column for which it asks; else that of rows which ask for nothing. Rows are only appended, and a row is written before
a chain leads to it. A row that leaves is stamped with the moment. So a reader that keeps a number of rows and a moment
always sees the same rows, whatever changes meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.frozen import thawing
from harken.kernels.several import meets_any

_LOW_BITS = 0xFFFF_FFFF
_SCATTER, _MIX = 0x1E37_79B1, 0x05EB_CA77
NO_ROW = -1
NEVER = np.iinfo(np.int64).max
"""`left` of a row that has not left."""
VERIFY, OVERLAPS, STALE = 1, 2, 4
"""Flags of a row: its matches must be verified; another row of its subscription may match the same event; the row would
be exact if the dictionaries had its constants."""
FLAG_BITS = 3


class RecentRows(NamedTuple):
    """The rows and their chains, as arrays."""

    numbers: NDArray[np.int32]
    """The subscription of each row."""
    left: NDArray[np.int64]
    """The moment at which the row left, or NEVER."""
    flags: NDArray[np.uint8]
    starts: NDArray[np.int32]
    columns: NDArray[np.int32]
    low: NDArray[np.uint32]
    span: NDArray[np.uint32]
    tops: NDArray[np.uint32]
    """The predicates of row i are those from starts[i] to starts[i + 1], each with the greatest code of its column."""
    by_value: NDArray[np.int32]
    """The first row of each chain of equal hashes. A power of two of them."""
    by_column: NDArray[np.int32]
    """The first row of each column's chain, and last of those that ask for nothing."""
    following: NDArray[np.int32]
    """The next row in the chain of each."""
    keyed_by: NDArray[np.int32]
    """The column in whose chain each row is. In a chain of values there may be rows of other columns as well."""
    is_key: NDArray[np.bool_]
    """By column, whether some row is in a chain of its values."""


_thawed = thawing(RecentRows)


@kernel
def _bucket(column, code, count):
    """The chain of a code of a column. Products of 32 bits by 31 never overflow."""
    mixed = (np.int64(column) * _SCATTER ^ np.int64(code) * _MIX) & _LOW_BITS
    return (mixed ^ mixed >> 15) & (count - 1)


@kernel
def append(delta, first, starts, columns, low, high, tops, places, numbers, flags):
    """Append rows from `first` on, whose predicates are given as codes from low to high.

    `places` has the place of each of their columns among all, `tops` its greatest code.
    """
    for i in range(numbers.size):
        end = delta.starts[first + i]
        for at in range(starts[i], starts[i + 1]):
            delta.columns[end] = places[columns[at]]
            delta.low[end] = low[at]
            delta.span[end] = (np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS
            delta.tops[end] = tops[columns[at]]
            end += 1
        delta.starts[first + i + 1] = end
        _link(delta, first + i, numbers[i], flags[i])


@kernel
def append_one(delta, row, predicates, number, flags):
    """Append one row. A predicate is its column, the low and the high code, and the greatest code of the column."""
    end = delta.starts[row]
    for i in range(predicates.shape[0]):
        delta.columns[end] = predicates[i, 0]
        delta.low[end] = predicates[i, 1]
        delta.span[end] = (predicates[i, 2] - predicates[i, 1]) & _LOW_BITS
        delta.tops[end] = predicates[i, 3]
        end += 1
    delta.starts[row + 1] = end
    _link(delta, row, number, flags)


@kernel
def _link(delta, row, number, flags):
    """Enter a row, whose predicates are written, into its chain.

    Of several equalities the key is that on the column with most constants, likely the most selective.
    """
    delta.numbers[row] = number
    delta.left[row] = NEVER
    delta.flags[row] = flags
    key = -1
    for at in range(delta.starts[row], delta.starts[row + 1]):
        if delta.span[at] == 0 and (key < 0 or delta.tops[at] > delta.tops[key]):
            key = at
    if key >= 0:
        column = delta.columns[key]
        delta.keyed_by[row] = column
        chain = _bucket(column, delta.low[key], delta.by_value.size)
        delta.following[row] = delta.by_value[chain]
        delta.by_value[chain] = row
        delta.is_key[column] = True
        return
    asks = delta.starts[row] < delta.starts[row + 1]
    column = delta.columns[delta.starts[row]] if asks else np.int32(delta.by_column.size - 1)
    delta.keyed_by[row] = column
    delta.following[row] = delta.by_column[column]
    delta.by_column[column] = row


@kernel
def find_in_delta(frozen, rows, moment, codes, skipped, first, out, offsets):
    """Find the rows, of the first `rows` and there at `moment`, that are true of each event from `first` on.

    Writes the number of each row's subscription with the row's flags below it. Returns the first event without room.
    """
    delta = _thawed(frozen)
    columns, lows, spans, starts = delta.columns, delta.low, delta.span, delta.starts
    by_value, by_column, following = delta.by_value, delta.by_column, delta.following
    keyed_by, is_key, left = delta.keyed_by, delta.is_key, delta.left
    nothing = by_column.size - 1
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if not skipped[event]:
            # For every column two chains, that of the column and that of the value, and one more at the end.
            for chain in range(2 * codes.shape[0] + 1):
                column = chain >> 1
                if column == codes.shape[0]:
                    column = nothing
                    row = by_column[nothing]
                else:
                    code = codes[column, event]
                    if code == 0 or column >= nothing:
                        continue
                    if chain & 1 == 0:
                        row = by_column[column]
                    elif is_key[column]:
                        row = by_value[_bucket(column, code, by_value.size)]
                    else:
                        continue
                while row != NO_ROW:
                    met = row < rows and keyed_by[row] == column and left[row] > moment
                    for at in range(starts[row], starts[row + 1]):
                        if not met:
                            break
                        event_code = np.int64(codes[columns[at], event])
                        met = event_code != 0 and (event_code - np.int64(lows[at])) & _LOW_BITS <= spans[at]
                    if met:
                        if end == out.size:
                            return event
                        out[end] = np.int64(delta.numbers[row]) << FLAG_BITS | np.int64(delta.flags[row])
                        end += 1
                    row = following[row]
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def find_several_in_delta(frozen, starts, values, count, rows, moment, first, out, offsets):
    """Find the rows, of the first `rows` and there at `moment`, that may match each event with several values.

    Starts at place `first` of `count` events. Writes the number of each row's subscription. Returns the place of the
    first event without room.
    """
    delta = _thawed(frozen)
    columns = (starts.size - 1) // count
    end = offsets[first]
    for place in range(first, count):
        for row in range(rows):
            met = delta.left[row] > moment
            for at in range(delta.starts[row], delta.starts[row + 1]):
                if not met:
                    break
                column = place * columns + delta.columns[at]
                low = np.int64(delta.low[at])
                high = (low + np.int64(delta.span[at])) & _LOW_BITS
                met = meets_any(values, starts[column], starts[column + 1], low, high)
            if met:
                if end == out.size:
                    return place
                out[end] = delta.numbers[row]
                end += 1
        offsets[place + 1] = end
    return count
