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

from harken.kernels.compile import inlined, inner
from harken.kernels.deletes import NONE_DELETED, Deleted
from harken.kernels.frozen import Grid, thawing
from harken.kernels.presence import PresentBits
from harken.kernels.stages import Batch
from harken.kernels.vector import (
    LANES,
    NO_BITS,
    ONE_BIT,
    ROWS,
    and_bitmaps,
    borrowed,
    copy_line,
    fill_block,
    first_bits,
    keep_pieces,
    pointer,
    prefetch_later,
    prefetch_read,
    spread_pieces,
    trailing_zeros,
    write_lines,
)

BLOCK = 512
BLOCK_BITS = 9
WORDS = BLOCK // ROWS
PIECES = BLOCK // LANES
STRETCH_BITS = 5
STRETCH = 1 << STRETCH_BITS
"""A stretch is 32 blocks: their ids and bitmaps fit into the second-level cache. While one is searched, the next is
prefetched, line by line in the order of memory."""
STRETCH_SLOTS = STRETCH << BLOCK_BITS
_MANY_VISITS = 32
"""Visits of a stretch from which on all ids of the next stretch are prefetched."""
STAGED = 128
"""Pieces written at a time: their ids fit into the first-level cache."""


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
    """The pools of a segment as arrays."""

    pools: Grid[np.int64]
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
    """By column of `directory`: the number of cells that one step of its code skips."""
    cell_starts: NDArray[np.int64]
    """By cell: its first slot, from block 0 on. Every pool has one more than it has cells."""


class Visits(NamedTuple):
    """Which events look at which blocks: runs of blocks, sorted by stretch and, within a stretch, by event."""

    starts: NDArray[np.int64]
    """By stretch, one more than there are stretches."""
    event: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    pending: Grid[np.int32]
    """Room for the runs before they are sorted: event, first and last block of each."""
    ends: NDArray[np.int64]
    """By run: where its pieces end."""
    pieces: NDArray[np.uint32]
    """Sixteen slots of a block of which some match: their bits, and above these its number within the stretch."""


class Unwritten(NamedTuple):
    """The ids of each event that do not fill a line yet."""

    lines: NDArray[np.int32]
    """Sixteen places for each event."""
    waiting: NDArray[np.int64]
    """By event: how many of them are taken."""


class PoolSearch(NamedTuple):
    """The arrays of `find_visits` and `find_pieces`."""

    pools: Pools
    visits: Visits
    presence: PresentBits
    bitmap_of: Grid[np.uint32]
    """By event and column: which of the column's bitmaps is the event's, in words."""
    word: NDArray[np.uint64]
    """Room for the words of a block."""
    counts: NDArray[np.int64]
    """By event of a chunk: how many ids it has."""
    seen: NDArray[np.int64]
    """By pool: the slots examined."""


class PieceWriting(NamedTuple):
    """The arrays of `write_pieces`, for pools or a sieve."""

    first_slot: int
    """Where block 0 starts."""
    ids: NDArray[np.int32]
    visits: Visits
    staged: NDArray[np.int32]
    """Room for the ids of as many pieces as are written at a time."""
    unwritten: Unwritten
    ends: NDArray[np.int64]
    """By event of a chunk: where its ids end so far."""
    cached: int
    """Chunks with more ids than this are written past the cache."""


_thawed_search, _thawed_writing = thawing(PoolSearch), thawing(PieceWriting)
_thawed_deleted, _thawed_batch = thawing(Deleted), thawing(Batch)


@inner
def find_visits(search, deletions, batch, codes, out, first, events):
    """A stage: find the blocks that each event has to look at. Returns the number of runs of blocks.

    Returns -1 without room for the runs, or for all pieces of their blocks.
    """
    searched = _thawed_search(search)
    index, visits, presence, seen = searched.pools, searched.visits, searched.presence, searched.seen
    pools, columns, cell_starts = index.pools, pointer(index.columns), pointer(index.cell_starts)
    present, any_event, codes = presence.bits, presence.any_event, borrowed(codes)
    directory, radix = pointer(index.directory), pointer(index.radix)
    starts, pending = visits.starts, visits.pending
    for stretch in range(starts.size):
        starts[stretch] = 0
    room, unseen = pending.shape[0], visits.pieces.size // PIECES
    runs = 0
    for number in range(pools.shape[0]):
        depth, begin_columns = pools[number, DIRECTORY_COUNT], pools[number, COLUMN_START]
        end_columns = begin_columns + pools[number, COLUMN_COUNT]
        has_any = False
        for i in range(begin_columns, end_columns):
            has_any |= any_event[columns[i]]
        if not has_any:
            continue
        for word in range((events + 63) >> 6):
            touched = NO_BITS  # a bit for each of 64 events that has any of the pool's columns
            for i in range(begin_columns, end_columns):
                touched |= present[columns[i], word]
            while touched != NO_BITS:
                event = (word << 6) + trailing_zeros(touched)
                touched &= touched - ONE_BIT
                last = np.int64(-1)
                for combination in range(1 << depth):
                    cell = _cell(pools[number], directory, radix, combination, codes, first + event)
                    if cell < 0 or cell_starts[cell] == cell_starts[cell + 1]:
                        continue
                    begin = max(cell_starts[cell] >> BLOCK_BITS, last + 1)
                    end = (cell_starts[cell + 1] - 1) >> BLOCK_BITS
                    while begin <= end:  # a run ends where its stretch does
                        stretch = begin >> STRETCH_BITS
                        final = min(end, ((stretch + 1) << STRETCH_BITS) - 1)
                        unseen -= final - begin + 1
                        if runs == room or unseen < 0:
                            return np.int64(-1)
                        pending[runs, 0] = event
                        pending[runs, 1] = begin
                        pending[runs, 2] = final
                        runs += 1
                        starts[stretch + 1] += 1
                        seen[number] += (final - begin + 1) << BLOCK_BITS
                        begin = final + 1
                        last = final
    for stretch in range(starts.size - 1):
        starts[stretch + 1] += starts[stretch]
    for i in range(runs - 1, -1, -1):  # from the back, so that the order of events is kept
        stretch = pending[i, 1] >> STRETCH_BITS
        starts[stretch + 1] -= 1
        at = starts[stretch + 1]
        visits.event[at] = pending[i, 0]
        visits.first[at] = pending[i, 1]
        visits.last[at] = pending[i, 2]
    for stretch in range(starts.size - 1):
        starts[stretch] = starts[stretch + 1]
    starts[starts.size - 1] = runs
    return np.int64(runs)


@inlined
def _cell(pool, directory, radix, combination, codes, event):
    """The cell of a pool that an event comes to by some of the directory's columns, a bit of `combination` for each, or
    -1 if it has no constant there.
    """
    cell, depth = pool[CELL_START], pool[DIRECTORY_COUNT]
    for i in range(depth):
        if combination >> (depth - 1 - i) & 1:
            at = pool[DIRECTORY_START] + i
            code = codes[directory[at], event]
            if code == 0 or code & np.uint32(1):
                return np.int64(-1)
            cell += np.int64(code >> np.uint32(1)) * radix[at]
    return cell


@inlined
def _find_bitmaps(index, codes, first, events, bitmap_of):
    """For every column of the pools and every event, which of the column's bitmaps is the event's, in words."""
    columns, class_starts, classes = pointer(index.columns), pointer(index.class_starts), pointer(index.classes)
    for i in range(index.columns.size):
        column = columns[i]
        for event in range(events):
            number = np.int64(classes[class_starts[column] + codes[column, first + event]])
            bitmap_of[event, column] = np.uint32(number * WORDS)


@inner
def find_pieces(search, deletions, batch, codes, out, first, events):
    """A stage: combine the bitmaps of every block that is visited into pieces, and count each event's matches."""
    searched, deleted, candidates = _thawed_search(search), _thawed_deleted(deletions), _thawed_batch(batch).candidates
    index, visits, bitmap_of, word = searched.pools, searched.visits, searched.bitmap_of, searched.word
    dead, has_dead, ends = pointer(deleted.bitmap), deleted.state != NONE_DELETED, pointer(searched.counts)
    _find_bitmaps(index, borrowed(codes), first, events, bitmap_of)
    bitmaps = index.bitmaps
    block_starts, block_columns = index.block_starts, borrowed(index.block_columns)
    block_bitmaps, block_slots = index.block_bitmaps, pointer(index.block_slots)
    starts, visit_event = visits.starts, pointer(visits.event)
    visit_first, visit_last = pointer(visits.first), pointer(visits.last)
    pieces, piece_ends = visits.pieces, pointer(visits.ends)
    end_of_pieces, visited = np.int64(0), starts[starts.size - 1]
    is_fetched = False
    for stretch in range(starts.size - 1):
        begin, end = starts[stretch], starts[stretch + 1]
        coming = _first_bitmap(block_starts, block_bitmaps, bitmaps, stretch + 1)
        past = _first_bitmap(block_starts, block_bitmaps, bitmaps, stretch + 2)
        was_fetched, is_fetched = is_fetched, False
        if begin < end and stretch + 2 < starts.size:
            read = _bitmaps_read(block_starts, visit_first, visit_last, end, starts[stretch + 2])
            is_fetched = read * WORDS > past - coming  # each bitmap is read more than once, on average
        pace = _pace(coming, past, WORDS, end - begin) if is_fetched else np.int64(0)
        for i in range(begin, end):
            event, last = np.int64(visit_event[i]), np.int64(visit_last[i])
            chosen = bitmap_of[event]
            # Prefetch the bitmaps of the next run, unless those of its whole stretch are prefetched.
            if i + 1 < visited and not (was_fetched if i + 1 < end else is_fetched):
                next_chosen = bitmap_of[visit_event[i + 1]]
                for j in range(block_starts[visit_first[i + 1]], block_starts[visit_last[i + 1] + 1]):
                    prefetch_read(bitmaps, block_bitmaps[j] + next_chosen[block_columns[j]])
            for at in range(coming, min(past, coming + pace), WORDS):
                prefetch_later(bitmaps, at)
            coming += pace
            count = np.int64(0)
            for block in range(np.int64(visit_first[i]), last + 1):
                fill_block(word)
                if has_dead or block_slots[block] < BLOCK:
                    whole = (index.first_slot + (block << BLOCK_BITS)) >> 6
                    for w in range(WORDS):
                        word[w] = first_bits(block_slots[block] - w * ROWS)
                        if has_dead:
                            word[w] &= ~dead[whole + w]
                count += and_bitmaps(
                    word, bitmaps, block_bitmaps, block_columns, chosen, block_starts[block], block_starts[block + 1]
                )
                end_of_pieces = keep_pieces(word, (block & (STRETCH - 1)) * PIECES, pieces, end_of_pieces)
            piece_ends[i] = end_of_pieces
            ends[event] += count
            candidates[first + event] += (last - visit_first[i]) * BLOCK + block_slots[last]  # others are full
    return np.int64(0)


@inner
def _first_bitmap(block_starts, block_bitmaps, bitmaps, stretch):
    """Where the bitmaps of a stretch start, or those of the last one end."""
    at = block_starts[min(stretch << STRETCH_BITS, block_starts.size - 1)]
    return block_bitmaps[at] if at < block_bitmaps.size else np.int64(bitmaps.size)


@inner
def _bitmaps_read(block_starts, visit_first, visit_last, begin, end):
    """The number of bitmaps that the visits begin:end read."""
    read = np.int64(0)
    for i in range(begin, end):
        read += block_starts[visit_last[i] + 1] - block_starts[visit_first[i]]
    return read


@inner
def _pace(begin, end, line, steps):
    """Elements to prefetch per step, in whole lines."""
    return ((end - begin) // line // steps + 1) * line


@inner
def write_pieces(writing, deletions, batch, codes, out, first, events):
    """A stage: append the ids of every event's pieces to its ids.

    Whole lines are written: ids that do not fill one wait for the event's next run of blocks. Meanwhile the ids of the
    next stretch are prefetched.
    """
    given, offsets = _thawed_writing(writing), _thawed_batch(batch).offsets
    streaming = offsets[first + events] - offsets[first] > given.cached
    first_slot, ids, visits, staged = given.first_slot, given.ids, given.visits, given.staged
    lines, waiting = pointer(given.unwritten.lines), pointer(given.unwritten.waiting)
    ends, out = pointer(given.ends), borrowed(out)
    starts, visit_event = visits.starts, pointer(visits.event)
    pieces, piece_ends = visits.pieces, pointer(visits.ends)
    for event in range(events):
        waiting[event] = 0
    piece = np.int64(0)
    for stretch in range(starts.size - 1):
        begin, end = starts[stretch], starts[stretch + 1]
        base = first_slot + stretch * STRETCH_SLOTS
        coming, past, pace = base + STRETCH_SLOTS, min(ids.size, base + 2 * STRETCH_SLOTS), np.int64(0)
        if end - begin >= _MANY_VISITS:
            pace = _pace(coming, past, LANES, end - begin)
        for i in range(begin, end):
            for at in range(coming, min(past, coming + pace), LANES):
                prefetch_later(ids, at)
            coming += pace
            event = np.int64(visit_event[i])
            filled, position = waiting[event], ends[event]
            copy_line(lines, event * LANES, staged, 0)
            while piece < piece_ends[i]:
                stop = min(piece_ends[i], piece + STAGED)
                filled = spread_pieces(ids, base, pieces, piece, stop, staged, filled)
                written = write_lines(staged, filled, out, position, streaming)
                copy_line(staged, written, staged, 0)
                filled -= written
                position += written
                piece = stop
            copy_line(staged, 0, lines, event * LANES)
            waiting[event], ends[event] = filled, position
    for event in range(events):
        for i in range(waiting[event]):
            out[ends[event] + i] = lines[event * LANES + i]
        ends[event] += waiting[event]
    return np.int64(0)
