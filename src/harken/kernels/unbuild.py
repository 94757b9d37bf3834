"""From an index back to its rows, for merging: so rows need not be stored twice."""

from __future__ import annotations

import numpy as np

from harken.kernels import clusters as cluster
from harken.kernels import pool as pools
from harken.kernels.clusters import rest_interval
from harken.kernels.compile import inner, kernel
from harken.kernels.deletes import is_dead
from harken.kernels.rows import UP_TO, WITHIN
from harken.kernels.sieve import PREDICATE
from harken.kernels.vector import ONE_BIT, ROWS

_WIDE = 0xFFFF_FFFF


@kernel
def cluster_rows(index, dead, tops, keys, slots, columns, lows, highs):
    """The predicates of all slots that are not deleted: slot, column, lowest and highest code. Returns their number.

    `keys` is room for the code of the key of every slot of a cluster.
    """
    end = 0
    for number in range(index.clusters.shape[0]):
        fields = index.clusters[number]
        key, bound = fields[cluster.KEY_COLUMN], fields[cluster.RANGE_COLUMN]
        if fields[cluster.RANGE_CLASS] >= WITHIN:
            bound = np.int64(cluster.NONE)  # it is among what is compared
        if key != cluster.NONE:
            _keys_of_slots(index, fields, keys)
        for slot in range(fields[cluster.SLOT_COUNT]):
            whole = fields[cluster.SLOT_START] + slot
            if is_dead(dead, whole):
                continue
            begin = end
            if key != cluster.NONE:
                columns[end], lows[end], highs[end] = key, keys[slot], keys[slot]
                end += 1
            if bound != cluster.NONE:
                at = fields[cluster.BOUND_START] + slot
                limit = np.int64(index.wide[at] if fields[cluster.BOUND_WIDE] else index.narrow[at])
                is_upper = fields[cluster.RANGE_CLASS] == UP_TO
                columns[end] = bound
                lows[end], highs[end] = (1, limit) if is_upper else (limit, tops[bound])
                end += 1
            lists = fields[cluster.LIST_START]
            if lists != cluster.NONE:
                for i in range(index.list_starts[lists + slot], index.list_starts[lists + slot + 1]):
                    columns[end], lows[end] = index.list_columns[i], index.list_low[i]
                    highs[end] = (np.int64(index.list_low[i]) + np.int64(index.list_span[i])) & _WIDE
                    end += 1
            else:
                for i in range(fields[cluster.MASK_COUNT]):
                    column = index.masks[fields[cluster.MASK_START] + i]
                    if column not in (key, bound):
                        columns[end], lows[end], highs[end] = column, 1, tops[column]
                        end += 1
                for i in range(fields[cluster.REST_START], fields[cluster.REST_START] + fields[cluster.REST_COUNT]):
                    column = index.rest[i, cluster.REST_COLUMN]
                    low, high = rest_interval(index.rest, i, slot, index.narrow, index.wide, tops[column])
                    for at in range(begin, end):
                        if columns[at] == column:
                            lows[at], highs[at] = low, high
            slots[begin:end] = whole
    return end


@inner
def _keys_of_slots(index, fields, keys):
    """The code of the key of every slot of a cluster."""
    if fields[cluster.HASH_START] == cluster.NONE:
        for place in range(fields[cluster.KEY_COUNT]):
            at = fields[cluster.KEY_START] + place
            for slot in range(index.starts[at], index.starts[at + 1]):
                keys[slot] = 2 * place + 2
        return
    for pair in range(1 << fields[cluster.HASH_BITS]):
        code = index.hashed[fields[cluster.HASH_START] + 2 * pair]
        if code:
            at = fields[cluster.KEY_START] + index.hashed[fields[cluster.HASH_START] + 2 * pair + 1]
            for slot in range(index.starts[at], index.starts[at + 1]):
                keys[slot] = code


@kernel
def pool_rows(index, dead, tops, slots, columns, lows, highs, end):
    """`cluster_rows` for pools, appended at `end`. Returns the new end."""
    for number in range(index.pools.shape[0]):
        directory = index.pools[number, pools.DIRECTORY_START]
        cell, cell_start = np.int64(0), index.pools[number, pools.CELL_START]
        for block in range(index.pools[number, pools.BLOCK_START], index.pools[number, pools.BLOCK_END]):
            base = index.first_slot + (block << pools.BLOCK_BITS)
            for slot in range(index.block_slots[block]):
                while index.cell_starts[cell_start + cell + 1] <= (block << pools.BLOCK_BITS) + slot:
                    cell += 1
                if is_dead(dead, base + slot):
                    continue
                word, bit = slot // ROWS, ONE_BIT << np.uint64(slot % ROWS)
                begin = end
                for j in range(index.block_starts[block], index.block_starts[block + 1]):
                    column = index.block_columns[j]
                    classes = index.class_starts[column]
                    bitmaps = index.block_bitmaps[j] + word
                    if index.bitmaps[bitmaps + np.int64(index.classes[classes]) * pools.WORDS] & bit:
                        continue  # it admits events without a value: it does not ask
                    columns[end] = column
                    lows[end], highs[end] = _interval(index.classes, classes, index.bitmaps, bitmaps, bit, tops[column])
                    end += 1
                left = cell
                for i in range(index.pools[number, pools.DIRECTORY_COUNT]):
                    digit = left // index.radix[directory + i]
                    left -= digit * index.radix[directory + i]
                    column = index.directory[directory + i]
                    is_known = digit == 0
                    for at in range(begin, end):
                        is_known |= columns[at] == column
                    if not is_known:
                        columns[end], lows[end], highs[end] = column, 2 * digit, 2 * digit
                        end += 1
                slots[begin:end] = base + slot
    return end


@kernel
def _interval(classes, first, bitmaps, at, bit, top):
    """The lowest and the highest code that a slot admits; where it leaves out some in between, wrapped."""
    lowest = highest = hole = np.int64(0)
    after = np.int64(0)
    for code in range(1, top + 1):
        if bitmaps[at + np.int64(classes[first + code]) * pools.WORDS] & bit:
            if lowest == 0:
                lowest = np.int64(code)
            elif hole and after == 0:
                after = np.int64(code)
            if after == 0:
                highest = np.int64(code)
        elif lowest and hole == 0:
            hole = np.int64(code)
    return (lowest, highest) if after == 0 else (after, highest)


@kernel
def sieve_rows(index, dead, slots, columns, lows, highs, end):
    """`cluster_rows` for a sieve, appended at `end`. Returns the new end."""
    for slot in range(index.row_starts.size - 1):
        if is_dead(dead, index.first_slot + slot):
            continue
        for at in range(index.row_starts[slot] * PREDICATE, index.row_starts[slot + 1] * PREDICATE, PREDICATE):
            slots[end] = index.first_slot + slot
            columns[end], lows[end] = index.rows[at], index.rows[at + 1]
            highs[end] = (np.int64(index.rows[at + 1]) + np.int64(index.rows[at + 2])) & _WIDE
            end += 1
    return end
