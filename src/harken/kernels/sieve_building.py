"""Building a sieve: cut the codes of columns into buckets, sort rows so that blocks fail as a whole, fill bitmaps."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import inner, kernel
from harken.kernels.pool import BLOCK, BLOCK_BITS, WORDS
from harken.kernels.sieve import MOST_BUCKETS
from harken.kernels.vector import ALL_BITS, NO_BITS, ONE_BIT, first_bits

_SLICES = 8
"""Slices of the rows by which the gain of sorting by a column is judged."""
_SAMPLED = 2_048
"""Rows sampled to choose a part's sort column."""
_LEAST_ASKING = 64
"""Rows are not sorted by a column for which fewer than 1/64 of them ask."""
_LEAST_GAIN = 1e-3
_LOW_BITS = 0xFFFF_FFFF
_NOT_ASKING = MOST_BUCKETS
"""Stands in for the first bucket of a row that does not ask for a column."""


@kernel
def count_cuts(starts, columns, low, high, rows, tops, code_starts, counts, asking):
    """Count, from counts[code_starts[column]] on, how many intervals begin at each code or end before it.

    `asking` gets the number of rows that ask for each column.
    """
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            column = columns[at]
            asking[column] += 1
            if low[at] > 1:
                counts[code_starts[column] + low[at]] += 1
            if high[at] < tops[column]:
                counts[code_starts[column] + high[at] + 1] += 1


@kernel
def choose_cuts(counts, most, cuts, is_whole):
    """Choose up to `most` codes with which buckets begin, so that about as many intervals begin or end in each bucket.

    A chosen code leaves no slot in doubt, so codes at which many intervals begin or end are preferred. `is_whole` gets
    for each bucket whether no interval begins or ends within it. Returns the number of chosen codes.
    """
    left, distinct = np.int64(0), 0
    for code in range(counts.size):
        left += counts[code]
        distinct += counts[code] > 0
    is_whole[0] = True
    chosen, within = 0, np.int64(0)
    for code in range(counts.size):
        here = np.int64(counts[code])
        if here == 0:
            continue
        share = left / (most - chosen + 1)
        if chosen < most and (distinct <= most or within + here / 2 >= share or here >= share):
            cuts[chosen] = code
            chosen += 1
            is_whole[chosen] = True
            left -= within + here
            within = np.int64(0)
        else:
            is_whole[chosen] = False
            within += here
    return chosen


@kernel
def number_buckets(cuts, bucket_of):
    """The bucket of every code of a column."""
    bucket = 1
    bucket_of[0] = 0
    for code in range(1, bucket_of.size):
        while bucket <= cuts.size and cuts[bucket - 1] <= code:
            bucket += 1
        bucket_of[code] = bucket


@kernel
def place_bounds(starts, columns, low, high, rows, code_starts, bucket_of, first, last):
    """For each predicate of these rows the buckets of its lowest and its highest code."""
    for i in range(rows.size):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            base = code_starts[columns[at]]
            first[at], last[at] = bucket_of[base + low[at]], bucket_of[base + high[at]]


@kernel
def _hull(low, high, first, last):
    """The buckets that an interval lies in: all if it is wrapped."""
    if low > high:
        return np.int64(1), np.int64(MOST_BUCKETS - 1)
    return np.int64(first), np.int64(last)


@kernel
def sort_rows(starts, columns, low, high, first, last, places, below, order):
    """Sort `order` so that the rows of a block fail together for many events.

    Rows are split recursively, as in a k-d tree: by the column that lets most blocks fail once rows are sorted by where
    their intervals begin, with rows that do not ask for it last. `places` has the place of every column in `below`,
    which has the share of events below each bucket.
    """
    count = order.size
    blocks = (count + BLOCK - 1) >> BLOCK_BITS
    pending = np.empty((blocks + 2, 2), np.int64)
    pending[0, 0], pending[0, 1] = 0, blocks
    waiting = 1
    tally = np.zeros((below.shape[0], MOST_BUCKETS + 1), np.int64)
    reach = np.zeros((below.shape[0], MOST_BUCKETS + 1), np.int64)
    asking = np.zeros(below.shape[0], np.int64)
    used = np.empty(below.shape[0], np.int64)
    spare, keys = np.empty(count, np.int64), np.empty(count, np.uint8)
    heads = np.empty(MOST_BUCKETS + 2, np.int64)
    while waiting:
        waiting -= 1
        begin_block, end_block = pending[waiting, 0], pending[waiting, 1]
        if end_block - begin_block < 2:
            continue
        begin, end = begin_block << BLOCK_BITS, min(end_block << BLOCK_BITS, count)
        step = max(1, (end - begin) // _SAMPLED)
        uses = sampled = 0
        for i in range(begin, end, step):
            row = order[i]
            sampled += 1
            for at in range(starts[row], starts[row + 1]):
                column = places[columns[at]]
                if asking[column] == 0:
                    used[uses] = column
                    uses += 1
                asking[column] += 1
                lowest, highest = _hull(low[at], high[at], first[at], last[at])
                tally[column, lowest] += 1
                reach[column, lowest] = max(reach[column, lowest], highest)
        best, best_gain = -1, _LEAST_GAIN
        for u in range(uses):
            column = used[u]
            if asking[column] * _LEAST_ASKING >= sampled and asking[column] * step >= BLOCK:
                least = max(asking[column] / _SLICES, BLOCK / step)
                gain = _gain(tally[column], reach[column], below[column], sampled, least)
                if gain > best_gain:
                    best, best_gain = column, gain
            asking[column] = 0
            tally[column], reach[column] = 0, 0
        if best < 0:
            continue
        heads[:] = 0
        asks = 0
        for i in range(begin, end):
            row, key = order[i], np.int64(_NOT_ASKING)
            for at in range(starts[row], starts[row + 1]):
                if places[columns[at]] == best:
                    key, _ = _hull(low[at], high[at], first[at], last[at])
                    asks += 1
            keys[i] = key
            heads[key + 1] += 1
        for key in range(heads.size - 1):
            heads[key + 1] += heads[key]
        for i in range(begin, end):
            key = np.int64(keys[i])
            spare[begin + heads[key]] = order[i]
            heads[key] += 1
        order[begin:end] = spare[begin:end]
        middle = (begin_block + end_block) >> 1
        edge = begin_block + ((asks + BLOCK // 2) >> BLOCK_BITS)  # rows behind it do not ask
        if asks < end - begin and begin_block < edge < end_block:
            middle = edge
        pending[waiting, 0], pending[waiting, 1] = begin_block, middle
        pending[waiting + 1, 0], pending[waiting + 1, 1] = middle, end_block
        waiting += 2


@inner
def _gain(tally, reach, below, rows, least):
    """The mean share of rows that fail by a column together with their slice, less that of all rows together.

    A slice is at least `least` rows that begin in neighbouring buckets. `reach` has the last bucket of rows, by their
    first.
    """
    gain, done, in_slice = 0.0, 0, 0
    lowest = highest = whole_lowest = whole_highest = 0
    for bucket in range(1, MOST_BUCKETS):
        if tally[bucket] == 0:
            continue
        lowest = bucket if in_slice == 0 else lowest
        highest = reach[bucket] if in_slice == 0 else max(highest, reach[bucket])
        whole_lowest = bucket if done == 0 else whole_lowest
        whole_highest = max(whole_highest, reach[bucket])
        in_slice += tally[bucket]
        done += tally[bucket]
        if in_slice >= least or done == rows:
            gain += in_slice * (1 - (below[highest + 1] - below[lowest]))
            in_slice = 0
    if done == rows:
        gain -= rows * (1 - (below[whole_highest + 1] - below[whole_lowest]))
    return gain / rows


@kernel
def choose_columns(
    starts, columns, low, high, first, last, places, below, is_whole, order, test, bitmap, block_columns, block_ends,
    expected,
):  # fmt: skip
    """For every block the columns that get bitmaps, those by which it fails most often as a whole first.

    A column gets none where its bitmap costs more than the tests that it spares: `test` and `bitmap` are what these
    cost. `expected` gets by block: how often an event looks at it, how many slots are left then, and the share of
    those that are in doubt.
    """
    width = below.shape[0]
    failing, asking = np.empty(width), np.zeros(width, np.int64)
    lowest, highest = np.empty(width, np.int64), np.empty(width, np.int64)
    used, numbers, score = np.empty(width, np.int64), np.empty(width, np.int32), np.empty(width)
    end = np.int64(0)
    for block in range(block_ends.size):
        begin, stop = block << BLOCK_BITS, min((block + 1) << BLOCK_BITS, order.size)
        uses = 0
        for i in range(begin, stop):
            row = order[i]
            for at in range(starts[row], starts[row + 1]):
                column = places[columns[at]]
                begins, ends = _hull(low[at], high[at], first[at], last[at])
                if asking[column] == 0:
                    used[uses] = column
                    uses += 1
                    lowest[column], highest[column] = begins, ends
                    failing[column] = 0.0
                    numbers[column] = columns[at]
                asking[column] += 1
                lowest[column], highest[column] = min(lowest[column], begins), max(highest[column], ends)
                failing[column] += 1 - (below[column, ends + 1] - below[column, begins])
        taken, live = stop - begin, 1.0
        for u in range(uses):
            column = used[u]
            hull = below[column, highest[column] + 1] - below[column, lowest[column]]
            score[u] = failing[column] / taken
            if asking[column] == taken:
                score[u] += 1 - hull
                live *= hull
        ranked = np.argsort(-score[:uses])
        left = np.float64(taken)
        for i in range(uses):
            column = used[ranked[i]]
            share = failing[column] / taken
            asking[column] = 0
            if left * share * test >= bitmap:
                block_columns[end] = numbers[column]
                end += 1
                left *= 1 - share
                asking[column] = 1  # it has bitmaps
        passed = doubtful = 0.0
        for i in range(begin, stop):
            passing, sure = _chances(starts, columns, low, high, first, last, places, below, is_whole, asking, order[i])
            passed += passing
            doubtful += passing * (1 - sure)
        for u in range(uses):
            asking[used[u]] = 0
        block_ends[block] = end
        expected[block, 0] = live
        expected[block, 1] = min(passed / max(live, 1e-9), taken)
        expected[block, 2] = doubtful / max(passed, 1e-9)


@inner
def _chances(starts, columns, low, high, first, last, places, below, is_whole, has_bitmaps, row):
    """The chance that a row passes the bitmaps of its block, and that one that passes is not in doubt."""
    passing, sure = 1.0, 1.0
    for at in range(starts[row], starts[row + 1]):
        column = places[columns[at]]
        begins, ends = _hull(low[at], high[at], first[at], last[at])
        if has_bitmaps[column] == 0 or low[at] > high[at]:
            sure = 0.0
            continue
        share = max(below[column, ends + 1] - below[column, begins], 1e-9)
        unsure = 0.0
        if not is_whole[column, begins]:
            unsure += below[column, begins + 1] - below[column, begins]
        if ends != begins and not is_whole[column, ends]:
            unsure += below[column, ends + 1] - below[column, ends]
        passing *= share
        sure *= 1 - unsure / share
    return passing, sure


@kernel
def fill_blocks(
    starts, columns, low, high, first, last, order, cut_starts, block_starts, block_columns, block_bitmaps,
    summary_places, places, bitmaps, in_doubt, summaries,
):  # fmt: skip
    """Fill the bitmaps of all blocks, and of the summaries, whose bits are all set before.

    `summary_places` has, by 512 blocks and column, where in the summaries the column's bitmaps are; `places` is room
    for a number by column, all of them -1.
    """
    for block in range(block_starts.size - 1):
        begin, stop = block << BLOCK_BITS, min((block + 1) << BLOCK_BITS, order.size)
        for j in range(block_starts[block], block_starts[block + 1]):
            column, at = block_columns[j], block_bitmaps[j]
            places[column] = at
            bitmaps[at : at + _buckets(cut_starts, column) * WORDS] = ALL_BITS
        for slot in range(stop - begin):
            row = order[begin + slot]
            word, bit = slot >> 6, ONE_BIT << np.uint64(slot & 63)
            for at in range(starts[row], starts[row + 1]):
                column = columns[at]
                if low[at] > high[at] or places[column] < 0:
                    in_doubt[block * WORDS + word] |= bit
                if places[column] >= 0:
                    _clear_outside(
                        bitmaps, places[column] + word, ~bit, np.int64(first[at]), np.int64(last[at]),
                        low[at] > high[at], _buckets(cut_starts, column),
                    )  # fmt: skip
        number = block % BLOCK
        for j in range(block_starts[block], block_starts[block + 1]):
            column = block_columns[j]
            target = summary_places[block // BLOCK, column] + (number >> 6)
            for bucket in range(_buckets(cut_starts, column)):
                any_slot = NO_BITS
                for w in range(WORDS):
                    any_slot |= bitmaps[block_bitmaps[j] + bucket * WORDS + w] & first_bits(stop - begin - w * 64)
                if any_slot == NO_BITS:
                    summaries[target + bucket * WORDS] &= ~(ONE_BIT << np.uint64(number & 63))
            places[column] = -1


@kernel
def _buckets(cut_starts, column):
    """The number of buckets of a column, with bucket 0."""
    return cut_starts[column + 1] - cut_starts[column] + 2


@inner
def _clear_outside(bitmaps, at, mask, first, last, is_wrapped, buckets):
    """Clear the bit of a slot in the bitmaps of the buckets of which it admits no code."""
    bitmaps[at] &= mask
    if is_wrapped:
        for bucket in range(last + 1, first):
            bitmaps[at + bucket * WORDS] &= mask
        return
    for bucket in range(1, first):
        bitmaps[at + bucket * WORDS] &= mask
    for bucket in range(last + 1, buckets):
        bitmaps[at + bucket * WORDS] &= mask


@kernel
def copy_rows(starts, columns, low, high, order, row_starts, rows):
    """Write the predicates of the rows, in this order, as a sieve keeps them."""
    end = np.int64(0)
    for i in range(order.size):
        row_starts[i] = end
        for at in range(starts[order[i]], starts[order[i] + 1]):
            rows[3 * end] = columns[at]
            rows[3 * end + 1] = low[at]
            rows[3 * end + 2] = (np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS
            end += 1
    row_starts[order.size :] = end
