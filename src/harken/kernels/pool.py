"""The bit-sliced pool: blocks of 512 slots, and for each block, column and code a bitmap of the slots that admit it.

An event's bitmaps are combined by AND, and the bits that are left are its matches. A directory on popular equality
attributes (factoring, in Aguilera et al., section 4) leads to the blocks that are worth a look: the pool is sorted by
the values that slots ask of these attributes, or by a wildcard where they ask none, into cells; an event comes to the
cells of its own values, with the wildcard in every combination.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.vector import (
    ALL_BITS,
    CAN_COMPRESS,
    NO_BITS,
    ONE_BIT,
    ROWS,
    and_bitmaps,
    borrowed,
    compressed,
    fill_block,
    first_bits,
    prefetch_read,
    prefetch_write,
    spread,
    write_run,
)

BLOCK = 512
BLOCK_BITS = 9
WORDS = BLOCK // ROWS
_FEW = 24
"""With as few ids in a block as this, going from bit to bit is quicker than compressing all of it."""
STRETCH_BITS = 5
"""A stretch is 32 blocks: their ids and bitmaps fit into the second level cache."""
_LOW_BITS = 0xFFFF_FFFF


# The fields of a pool: its blocks, its cells, the columns of its directory, and all columns that its slots ask for.
(
    BLOCK_START,
    BLOCK_END,
    CELL_START,
    CELL_COUNT,
    DIRECTORY_START,
    DIRECTORY_COUNT,
    COLUMN_START,
    COLUMN_COUNT,
) = range(8)
POOL_FIELDS = 8


class Pools(NamedTuple):
    """The pools of a segment as arrays. Slots of a pool ask for no column that another pool's ask for."""

    pools: NDArray[np.int64]
    """A row of fields for each."""
    first_slot: int
    """Where the slots of block 0 stand in the segment's ids."""
    class_starts: NDArray[np.int64]
    """By column of the event: where the classes of its codes stand in `classes`."""
    classes: NDArray[np.uint8]
    """By code, its class: codes that the same slots admit share one, and so a bitmap."""
    block_starts: NDArray[np.int64]
    """By block: where its columns start in `block_columns`. One more than there are blocks."""
    block_columns: NDArray[np.int32]
    block_bitmaps: NDArray[np.int64]
    """For each column of a block: where its bitmaps start, in words."""
    block_slots: NDArray[np.int32]
    """By block: how many of its slots are taken."""
    bitmaps: NDArray[np.uint64]
    columns: NDArray[np.int32]
    directory: NDArray[np.int32]
    """The columns of the directories, the most significant first."""
    radix: NDArray[np.int64]
    """For each of them the number of cells that one step of its code is worth."""
    cell_starts: NDArray[np.int64]
    """By cell: its first slot, from block 0 on. Every pool has one more than it has cells."""


class Visits(NamedTuple):
    """Which events look at which blocks: runs of blocks, sorted by stretch and, within a stretch, by event."""

    starts: NDArray[np.int64]
    """By stretch, one more than there are stretches."""
    event: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    pending: NDArray[np.int32]
    """Room for the runs as they are found: event, first and last block of each."""


@kernel
def find_visits(index, codes, first, events, present, visits, seen):
    """Find the blocks that each event has to look at. Returns how many runs of blocks there are, or -1 without room."""
    pools, columns, directory = index.pools, index.columns, index.directory
    radix, cell_starts = index.radix, index.cell_starts
    starts, pending = visits.starts, visits.pending
    starts[:] = 0
    room = pending.shape[0]
    found = 0
    for number in range(pools.shape[0]):
        depth = pools[number, DIRECTORY_COUNT]
        touched = NO_BITS
        for event in range(events):
            if event & 63 == 0:  # which of the next 64 events have any of the pool's columns
                touched = NO_BITS
                for i in range(pools[number, COLUMN_START], pools[number, COLUMN_START] + pools[number, COLUMN_COUNT]):
                    touched |= present[columns[i], event >> 6]
            is_touched = touched & ONE_BIT
            touched >>= ONE_BIT
            if is_touched == NO_BITS:
                continue
            last = np.int64(-1)
            for combination in range(1 << depth):
                cell = pools[number, CELL_START]
                for i in range(depth):
                    if combination >> (depth - 1 - i) & 1:
                        at = pools[number, DIRECTORY_START] + i
                        code = codes[directory[at], first + event]
                        if code == 0 or code & np.uint32(1):
                            cell = np.int64(-1)
                            break
                        cell += np.int64(code >> np.uint32(1)) * radix[at]
                if cell < 0:
                    continue
                begin = max(cell_starts[cell] >> BLOCK_BITS, last + 1)
                end = (cell_starts[cell + 1] - 1) >> BLOCK_BITS
                if cell_starts[cell] == cell_starts[cell + 1]:
                    continue
                while begin <= end:  # a run ends where its stretch does
                    stretch = begin >> STRETCH_BITS
                    final = min(end, ((stretch + 1) << STRETCH_BITS) - 1)
                    if found == room:
                        return -1
                    pending[found, 0] = event
                    pending[found, 1] = begin
                    pending[found, 2] = final
                    found += 1
                    starts[stretch + 1] += 1
                    seen[number] += (final - begin + 1) << BLOCK_BITS
                    begin = final + 1
                    last = final
    for stretch in range(starts.size - 1):
        starts[stretch + 1] += starts[stretch]
    for i in range(found - 1, -1, -1):  # from the back, so that the order of events is kept
        stretch = pending[i, 1] >> STRETCH_BITS
        starts[stretch + 1] -= 1
        at = starts[stretch + 1]
        visits.event[at] = pending[i, 0]
        visits.first[at] = pending[i, 1]
        visits.last[at] = pending[i, 2]
    for stretch in range(starts.size - 1):
        starts[stretch] = starts[stretch + 1]
    starts[starts.size - 1] = found
    return found


@kernel
def find_bitmaps(index, codes, first, events, bitmap_of):
    """For every column of the pools and every event, which of the column's bitmaps is the event's, in words."""
    columns, class_starts, classes = index.columns, index.class_starts, index.classes
    for i in range(columns.size):
        column = columns[i]
        for event in range(events):
            bitmap_of[event, column] = np.uint32(classes[class_starts[column] + codes[column, first + event]] * WORDS)


@kernel
def pool_matches(
    index,
    ids,
    dead,
    has_dead,
    first,
    visits,
    visited,
    bitmap_of,
    word,
    staged,
    ends,
    candidates,
    out,
    writing,
    streaming,
):
    """Count the matches of every event in `ends`, or, writing, append their ids where `ends` says.

    `word` has space for the words of a block, `staged` for the ids of a stretch. Within a stretch an event goes through
    all of its blocks before the next event does: its ids are written in long runs, while the blocks stay in the cache.
    """
    ids, out, word, staged = borrowed(ids), borrowed(out), borrowed(word), borrowed(staged)
    bitmaps, bitmap_of = borrowed(index.bitmaps), borrowed(bitmap_of)
    block_starts, block_columns = borrowed(index.block_starts), borrowed(index.block_columns)
    block_bitmaps, block_slots = borrowed(index.block_bitmaps), borrowed(index.block_slots)
    visit_event, visit_first, visit_last = borrowed(visits.event), borrowed(visits.first), borrowed(visits.last)
    for i in range(visited):
        event = np.int64(visit_event[i])
        position = ends[event]
        chosen = bitmap_of[event]
        held = np.int64(0)
        if writing:
            prefetch_write(out, position)
        for block in range(visit_first[i], visit_last[i] + 1):
            base = index.first_slot + (np.int64(block) << BLOCK_BITS)
            if block_slots[block] == BLOCK:
                fill_block(word)
            else:
                for w in range(WORDS):
                    word[w] = first_bits(block_slots[block] - w * ROWS)
            if has_dead:
                for w in range(WORDS):
                    word[w] &= ~dead[(base >> 6) + w]
            if block < visit_last[i]:  # while this block is worked on, the bitmaps of the next are fetched
                for j in range(block_starts[block + 1], block_starts[block + 2]):
                    prefetch_read(bitmaps, block_bitmaps[j] + chosen[block_columns[j]])
            count = and_bitmaps(
                word, bitmaps, block_bitmaps, block_columns, chosen, block_starts[block], block_starts[block + 1]
            )
            if count == 0 and writing:
                continue
            if writing:
                if CAN_COMPRESS and count > _FEW:
                    for w in range(WORDS):
                        if word[w] != NO_BITS:
                            held = compressed(ids, base + w * ROWS, word[w], staged, held)
                else:
                    for w in range(WORDS):
                        held = spread(ids, base + w * ROWS, word[w], staged, held, staged.size)
            else:
                position += count
                candidates[first + event] += block_slots[block]
        if writing:
            write_run(staged, 0, held, out, position, streaming)
            position += held
        ends[event] = position


@kernel
def cell_numbers(starts, columns, asked, rows, directory, radix, cells):
    """The cell of each row: its codes on the directory's columns, where it asks for one value, as one number."""
    for i in range(rows.size):
        cell = np.int64(0)
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            for d in range(directory.size):
                if columns[at] == directory[d]:
                    cell += np.int64(asked[at] >> np.uint32(1)) * radix[d]
        cells[i] = cell


@kernel
def leading_codes(starts, columns, low, high, rows, result):
    """The intervals of each row's first four predicates as one number, by which rows that ask alike come together."""
    for i in range(rows.size):
        mixed = np.uint64(0)
        begin = starts[rows[i]]
        count = min(4, starts[rows[i] + 1] - begin)
        for j in range(4):
            mixed <<= np.uint64(14)
            if j < count:
                mixed |= np.uint64(low[begin + j]) << np.uint64(7) | np.uint64(high[begin + j])
        result[i] = mixed


@kernel
def choose_block_columns(starts, columns, rows, cells, directory, radix, bases, counts, block_columns, block_ends):
    """For every block the columns that need bitmaps.

    Where all rows of a block are of one cell, and its rows ask for one value of a column of the directory, that column
    is settled. `counts` is room for a number by column.
    """
    slots = rows.size
    found = 0
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
                block_columns[found] = column
                found += 1
        block_ends[block] = found


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
