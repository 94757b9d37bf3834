"""Counting with lists (ToPSS, section 4.1; the fair predicate algorithm of Le Subscribe, section 4.2).

A predicate that holds adds one to the counter of each row on its list; a row whose counter reaches the number of its
predicates is true. The lists of a column stand in the order of their bounds, so that all predicates `>= c` that hold
for a value are one run through memory, and so are all `<= c`. Rows are counted in blocks, so that the counters stay in
the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, kernel
from harken.kernels.vector import NO_BITS, ROWS, spread

EQUAL, AT_LEAST, AT_MOST, OTHER = range(4)
"""The groups of predicates of a column, by operator."""
GROUPS = 4

# Below one increment for so many counters it is quicker to look at what was touched than at all of them.
_SPARSE = 32


class Lists(NamedTuple):
    """The index. Group g of column c in block b is (b × columns + c) × 4 + g."""

    bounds: NDArray[np.int64]
    """Where each group's predicates begin in `keys`."""
    keys: NDArray[np.uint32]
    """The code that each predicate compares with, ascending in a group."""
    starts: NDArray[np.int64]
    """Where each predicate's list begins in `rows`."""
    rows: Any
    """The lists, of rows counted from the start of their block: uint16 or uint32."""
    needed: Any
    """The number of predicates of each row, and at the end 64 times one that is never reached: uint8 or wider."""
    always: NDArray[np.int32]
    """The rows without a predicate."""
    block: int


class Several(NamedTuple):
    """The events with several codes in some column, as in harken/segments/encode.py."""

    events: NDArray[np.int32]
    starts: NDArray[np.int64]
    values: NDArray[np.uint32]


class Space(NamedTuple):
    """What the kernel writes into besides its answers."""

    counts: Any
    """A counter for each row of a block, all 0 before and after; of the type of `needed`, and 64 more."""
    slices: NDArray[np.int64]
    """Begin and end of the lists to walk."""


if IS_PLAIN:
    _WEIGHTS = np.uint64(1) << np.arange(ROWS, dtype=np.uint64)

    def reached(counts: Any, at: int, needed: Any, needed_at: int) -> Any:
        is_equal = counts[at : at + ROWS] == needed[needed_at : needed_at + ROWS]
        return _WEIGHTS[is_equal].sum(dtype=np.uint64)

else:

    @intrinsic
    def reached(typing: Any, counts: Any, at: Any, needed: Any, needed_at: Any) -> Any:
        """A word with a bit for each of 64 counters that is equal to what is needed."""
        vector = ir.VectorType(ir.IntType(counts.dtype.bitwidth), ROWS)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def loaded(array: int) -> Any:
                proxy = cgutils.create_struct_proxy(signature.args[array])
                data = proxy(context, builder, args[array]).data
                pointer = builder.bitcast(builder.gep(data, [args[array + 1]]), vector.as_pointer())
                return builder.load(pointer, align=counts.dtype.bitwidth // 8)

            return builder.bitcast(builder.icmp_unsigned("==", loaded(0), loaded(2)), ir.IntType(64))

        return types.uint64(counts, types.int64, needed, types.int64), generate


@kernel
def match_counting(
    lists: Lists,
    labels: NDArray[np.int32],
    codes: NDArray[np.uint32],
    several: Several,
    space: Space,
    first: int,
    out: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> int:
    """Write the label of each row that is true of an event, event by event from the first.

    Returns the event that found no room, or the number of events. For events with several codes a row may come though
    no single code meets two of its predicates: such rows are to be verified.
    """
    bounds, keys, starts, rows, needed, always, block = lists
    counts, slices = space
    columns = codes.shape[0]
    size = needed.size - ROWS
    end = offsets[first]
    place = np.searchsorted(several.events, first)
    for event in range(first, codes.shape[1]):
        is_several = place < several.events.size and several.events[place] == event
        if end + always.size > out.size:
            return event
        for i in range(always.size):
            out[end + i] = labels[always[i]]
        end += always.size
        for base in range(0, size, block):
            inside = min(block, size - base)
            if end + inside > out.size:
                return event
            # The runs of rows to walk.
            used = 0
            increments = 0
            for column in range(columns):
                begin = place * columns + column
                if is_several:
                    if several.starts[begin] == several.starts[begin + 1]:
                        continue
                    least = several.values[several.starts[begin]]
                    greatest = several.values[several.starts[begin + 1] - 1]
                else:
                    least = greatest = codes[column, event]
                    if least == 0:
                        continue
                group = (base // block * columns + column) * GROUPS
                for kind in range(GROUPS):
                    low = bounds[group + kind]
                    stop = bounds[group + kind + 1]
                    if low == stop:
                        continue
                    left = low
                    if kind == EQUAL and is_several:
                        for i in range(several.starts[begin], several.starts[begin + 1]):
                            left += np.searchsorted(keys[left:stop], several.values[i])
                            if left < stop and keys[left] == several.values[i]:
                                slices[used] = starts[left]
                                slices[used + 1] = starts[left + 1]
                                used += 2
                        continue
                    high = stop
                    bound = greatest + np.uint32(1) if kind == AT_LEAST else least
                    while left < high:
                        middle = (left + high) >> 1
                        if keys[middle] < bound:
                            left = middle + 1
                        else:
                            high = middle
                    if kind == AT_LEAST:
                        high = left
                        left = low
                    elif kind == AT_MOST:
                        high = stop
                    else:
                        high = left + 1 if left < stop and keys[left] == least else left
                        if kind == OTHER:
                            if least != greatest:
                                high = left
                            slices[used] = starts[low]
                            slices[used + 1] = starts[left]
                            used += 2
                            left = high
                            high = stop
                    slices[used] = starts[left]
                    slices[used + 1] = starts[high]
                    used += 2
            for i in range(0, used, 2):
                increments += slices[i + 1] - slices[i]
            if is_several or increments * _SPARSE < inside:
                for i in range(0, used, 2):
                    for at in range(slices[i], slices[i + 1]):
                        row = rows[at]
                        counts[row] += 1
                        if counts[row] == needed[base + row]:
                            out[end] = labels[base + row]
                            end += 1
                for i in range(0, used, 2):
                    for at in range(slices[i], slices[i + 1]):
                        counts[rows[at]] = 0
                continue
            for i in range(0, used, 2):
                for at in range(slices[i], slices[i + 1]):
                    counts[rows[at]] += 1
            for at in range(0, inside, ROWS):
                word = reached(counts, at, needed, base + at)
                if word != NO_BITS:
                    end = spread(labels, base + at, word, out, end, out.size)
            counts[:inside] = 0
        place += is_several
        offsets[event + 1] = end
    return int(codes.shape[1])
