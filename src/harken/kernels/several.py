"""Events with several values in a column: candidates, to be verified.

A predicate is taken to hold if it does for any value. So candidates are no fewer than the matches, but more where no
single binding makes all predicates hold. The codes of such an event in a column are ascending, each once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels import clusters as cluster
from harken.kernels import pool as pools
from harken.kernels.clusters import hashed_place, rest_interval
from harken.kernels.compile import inner, kernel
from harken.kernels.rows import UP_TO, WITHIN
from harken.kernels.vector import NO_BITS, ONE_BIT, ROWS, spread

_WIDE = 0xFFFF_FFFF


class EventCodes(NamedTuple):
    """The codes of events with several values: those of the i-th in column c start at entry i × columns + c."""

    starts: NDArray[np.int64]
    values: NDArray[np.uint32]
    columns: int


@inner
def meets_any(values, begin, end, low, high):
    """Whether one of the codes begin:end lies in the interval from `low` to `high`, which may be wrapped."""
    if begin == end:
        return False
    if low > high:  # wrapped
        return np.int64(values[end - 1]) >= low or np.int64(values[begin]) <= high
    last = end
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(values[middle]) < low:
            begin = middle + 1
        else:
            end = middle
    return begin < last and np.int64(values[begin]) <= high


@kernel
def find_in_clusters(index, ids, dead, event_codes, place, out, end):
    """Append the ids of the slots that may match the event at a place. Returns their end, or -1 without room."""
    clusters, rest = index.clusters, index.rest
    starts, values = event_codes.starts, event_codes.values
    first = place * event_codes.columns
    for number in range(clusters.shape[0]):
        applies = True
        for i in range(clusters[number, cluster.MASK_COUNT]):
            at = first + index.masks[clusters[number, cluster.MASK_START] + i]
            applies &= starts[at] < starts[at + 1]
        if not applies:
            continue
        key = clusters[number, cluster.KEY_COLUMN]
        keys_begin, keys_end = np.int64(0), np.int64(1)
        if key != cluster.NONE:
            keys_begin, keys_end = starts[first + key], starts[first + key + 1]
        for at in range(keys_begin, keys_end):
            begin, stop = np.int64(0), clusters[number, cluster.SLOT_COUNT]
            if key != cluster.NONE:
                code = values[at]
                if code & np.uint32(1):
                    continue
                key_place = np.int64(code >> np.uint32(1)) - 1
                if clusters[number, cluster.HASH_START] != cluster.NONE:
                    key_place = hashed_place(
                        index.hashed, clusters[number, cluster.HASH_START], clusters[number, cluster.HASH_BITS], code
                    )
                    if key_place < 0:
                        continue
                begin = np.int64(index.starts[clusters[number, cluster.KEY_START] + key_place])
                stop = np.int64(index.starts[clusters[number, cluster.KEY_START] + key_place + 1])
            for slot in range(begin, stop):
                whole = clusters[number, cluster.SLOT_START] + slot
                if (dead[whole >> 6] >> np.uint64(whole & 63)) & ONE_BIT:
                    continue
                bound_column = clusters[number, cluster.RANGE_COLUMN]
                if bound_column != cluster.NONE and clusters[number, cluster.RANGE_CLASS] < WITHIN:
                    bounds = clusters[number, cluster.BOUND_START] + slot
                    bound = index.wide[bounds] if clusters[number, cluster.BOUND_WIDE] else index.narrow[bounds]
                    if clusters[number, cluster.RANGE_CLASS] == UP_TO:
                        if values[starts[first + bound_column]] > bound:
                            continue
                    elif values[starts[first + bound_column + 1] - 1] < bound:
                        continue
                met = True
                for i in range(
                    clusters[number, cluster.REST_START],
                    clusters[number, cluster.REST_START] + clusters[number, cluster.REST_COUNT],
                ):
                    low, high = rest_interval(rest, i, slot, index.narrow, index.wide, _WIDE)
                    column = first + rest[i, cluster.REST_COLUMN]
                    if not meets_any(values, starts[column], starts[column + 1], low, high):
                        met = False
                        break
                lists = clusters[number, cluster.LIST_START]
                if met and lists != cluster.NONE:
                    for i in range(index.list_starts[lists + slot], index.list_starts[lists + slot + 1]):
                        column = first + index.list_columns[i]
                        low = np.int64(index.list_low[i])
                        high = (low + np.int64(index.list_span[i])) & _WIDE
                        if not meets_any(values, starts[column], starts[column + 1], low, high):
                            met = False
                            break
                if met:
                    if end == out.size:
                        return -1
                    out[end] = ids[whole]
                    end += 1
    return end


@kernel
def find_in_pools(index, ids, dead, event_codes, place, admitted, words, out, end):
    """`find_in_clusters` for pools. `admitted` is room for a flag by class, `words` for 16 words."""
    starts, values = event_codes.starts, event_codes.values
    first = place * event_codes.columns
    for number in range(index.pools.shape[0]):
        directory = index.pools[number, pools.DIRECTORY_START]
        depth = index.pools[number, pools.DIRECTORY_COUNT]
        last = np.int64(-1)
        cell_start = index.pools[number, pools.CELL_START]
        for cell in range(index.pools[number, pools.CELL_COUNT]):
            begin, stop = index.cell_starts[cell_start + cell], index.cell_starts[cell_start + cell + 1]
            if begin == stop:
                continue
            applies = True
            left = np.int64(cell)
            for i in range(depth):
                digit = left // index.radix[directory + i]
                left -= digit * index.radix[directory + i]
                if digit:
                    column = first + index.directory[directory + i]
                    if not meets_any(values, starts[column], starts[column + 1], 2 * digit, 2 * digit):
                        applies = False
                        break
            if not applies:
                continue
            for block in range(max(begin >> pools.BLOCK_BITS, last + 1), ((stop - 1) >> pools.BLOCK_BITS) + 1):
                last = block
                base = index.first_slot + (block << pools.BLOCK_BITS)
                for w in range(pools.WORDS):
                    words[w] = ~dead[(base >> 6) + w]
                for j in range(index.block_starts[block], index.block_starts[block + 1]):
                    _any_bitmap(index, event_codes, first, j, admitted, words)
                taken = index.block_slots[block]
                if end + taken + ROWS > out.size:
                    return -1
                for w in range(pools.WORDS):
                    word = words[w]
                    if taken < (w + 1) * ROWS:
                        word &= (ONE_BIT << np.uint64(max(0, taken - w * ROWS))) - ONE_BIT
                    end = spread(ids, base + w * ROWS, word, out, end, out.size)
    return end


@inner
def _any_bitmap(index, event_codes, first, j, admitted, words):
    """words[:8] &= the union of the bitmaps of all of an event's codes in one column of a block."""
    column = index.block_columns[j]
    at = first + column
    admitted[:] = False
    if event_codes.starts[at] == event_codes.starts[at + 1]:
        admitted[index.classes[index.class_starts[column]]] = True  # missing
    for i in range(event_codes.starts[at], event_codes.starts[at + 1]):
        admitted[index.classes[index.class_starts[column] + event_codes.values[i]]] = True
    for w in range(pools.WORDS):
        words[pools.WORDS + w] = NO_BITS
    for k in range(admitted.size):
        if admitted[k]:
            for w in range(pools.WORDS):
                words[pools.WORDS + w] |= index.bitmaps[index.block_bitmaps[j] + k * pools.WORDS + w]
    for w in range(pools.WORDS):
        words[w] &= words[pools.WORDS + w]
