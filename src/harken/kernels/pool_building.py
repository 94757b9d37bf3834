"""Building pools: which cell a row belongs to, which rows come together, and the bitmaps of every block."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel
from harken.kernels.pool import BLOCK, BLOCK_BITS, WORDS
from harken.kernels.vector import ALL_BITS, ONE_BIT

_LOW_BITS = 0xFFFF_FFFF
_NO_WIDTH = np.int64(1 << 62)


@kernel
def cell_numbers(starts, columns, values, rows, directory, radix, cells):
    """The cell of each row: its codes on the directory's columns, where it asks for one value, as one number.

    `values` has the code of each predicate that asks for one value, else 0.
    """
    for i in range(rows.size):
        cell = np.int64(0)
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            for d in range(directory.size):
                if columns[at] == directory[d]:
                    cell += np.int64(values[at] >> np.uint32(1)) * radix[d]
        cells[i] = cell


@kernel
def leading_codes(starts, columns, low, high, values, tops, rows, is_led, result):
    """The intervals of each row's four narrowest predicates as one number, the narrowest first.

    Rows sorted by it mostly fail together, and match together. Predicates that the cell settles do not count:
    equalities on columns of the directory.
    """
    for i in range(rows.size):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        mixed = np.uint64(0)
        last, last_width = np.int64(-1), np.int64(-1)
        for _ in range(4):
            best, best_width = np.int64(-1), _NO_WIDTH
            for at in range(begin, end):
                if values[at] and is_led[columns[at]]:
                    continue
                width = (((np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS) << 7) // tops[columns[at]]
                is_next = width > last_width or (width == last_width and at > last)
                if is_next and width < best_width:
                    best, best_width = at, width
            mixed <<= np.uint64(16)
            if best >= 0:
                mixed |= np.uint64(min(best - begin, 3)) << np.uint64(14)
                mixed |= np.uint64(low[best]) << np.uint64(7) | np.uint64(high[best])
            last, last_width = best, best_width
        result[i] = mixed


@kernel
def choose_block_columns(starts, columns, rows, cells, directory, radix, bases, counts, block_columns, block_ends):
    """For every block the columns that need bitmaps.

    Where all rows of a block are of one cell, and its rows ask for one value of a column of the directory, that column
    is settled. `counts` is room for a number by column.
    """
    slots = rows.size
    count = 0
    for block in range(block_ends.size):
        begin = block << BLOCK_BITS
        end = min(slots, begin + BLOCK)
        counts[:] = 0
        for slot in range(begin, end):
            for at in range(starts[rows[slot]], starts[rows[slot] + 1]):
                counts[columns[at]] += 1
        if cells[begin] == cells[end - 1]:
            for d in range(directory.size):
                if cells[begin] // radix[d] % bases[d] != 0:
                    counts[directory[d]] = 0
        for column in range(counts.size):
            if counts[column]:
                block_columns[count] = column
                count += 1
        block_ends[block] = count


@kernel
def fill_bitmaps(
    starts,
    columns,
    low,
    high,
    rows,
    block_starts,
    block_columns,
    block_bitmaps,
    class_counts,
    code_starts,
    codes,
    place,
    bitmaps,
):
    """Fill the bitmaps of all blocks: a slot admits every code of a column, until a predicate of its row says no.

    `codes[code_starts[c] + k]` is a code of class k of column c; `place` is room for a number by column.
    """
    slots = rows.size
    for block in range(block_starts.size - 1):
        begin = block << BLOCK_BITS
        place[:] = -1
        for i in range(block_starts[block], block_starts[block + 1]):
            place[block_columns[i]] = block_bitmaps[i]
            for w in range(class_counts[block_columns[i]] * WORDS):
                bitmaps[block_bitmaps[i] + w] = ALL_BITS
        for slot in range(begin, min(slots, begin + BLOCK)):
            word = (slot - begin) >> 6
            others = ~(ONE_BIT << np.uint64((slot - begin) & 63))
            for at in range(starts[rows[slot]], starts[rows[slot] + 1]):
                column = columns[at]
                if place[column] < 0:
                    continue
                span = (np.int64(high[at]) - np.int64(low[at])) & _LOW_BITS
                for k in range(class_counts[column]):
                    code = np.int64(codes[code_starts[column] + k])
                    if code == 0 or (code - np.int64(low[at])) & _LOW_BITS > span:
                        bitmaps[place[column] + k * WORDS + word] &= others
