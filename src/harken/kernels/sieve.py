"""The sieve: rows of many ranges, in blocks of 512 slots, tested by coarse bitmaps first and exactly where in doubt.

The codes of a column are cut into at most 64 buckets. For each block, column and bucket there is a bitmap of the slots
that may admit a code of the bucket. An event's bitmaps are combined by AND; the few slots that are left are tested
against the row's own bounds. Slots are sorted so that blocks fail as a whole: a summary has for each column and bucket
a bitmap of the blocks with any such slot, and leads an event to the blocks that are worth a look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.deletes import NONE_DELETED, Deleted, is_dead
from harken.kernels.frozen import Grid, thawing
from harken.kernels.pool import BLOCK, BLOCK_BITS, PIECES, STRETCH, STRETCH_BITS, WORDS, Visits
from harken.kernels.presence import PresentBits
from harken.kernels.several import meets_any
from harken.kernels.stages import Batch
from harken.kernels.vector import (
    NO_BITS,
    ONE_BIT,
    ROWS,
    and_bitmaps,
    borrowed,
    fill_block,
    first_bits,
    keep_pieces,
    ones,
    pointer,
    prefetch_read,
    row_pointer,
    trailing_zeros,
)

MOST_BUCKETS = 64
"""Most buckets of a column, with the one for events without a value."""
PREDICATE = 3
"""Words of a predicate in `rows`: its column, its lowest code, and how far it goes from there."""
GROUP = 8
"""Blocks that all events of a chunk go through together, so that most of their bitmaps stay in the cache."""
FEW = 24
"""If more slots of a block are left, bitmaps first decide which of them are not in doubt."""
_STEP = 6
"""Bitmaps combined between two checks whether any slot is left."""
_LOW_BITS = 0xFFFF_FFFF
_LINE = 16
# An entry of `waiting`: a slot, above the place of its word in `kept`, above its bit in that word.
_SLOT_SHIFT, _WORD_SHIFT, _WORD_MASK = 18, 6, 0xFFF


class Sieve(NamedTuple):
    """The sieve of a segment as arrays."""

    first_slot: int
    """Where the slots of block 0 stand in the segment's ids."""
    columns: NDArray[np.int32]
    """All columns that its slots ask for."""
    cut_starts: NDArray[np.int64]
    """By column of the event, and one more: where its cuts stand in `cuts`."""
    cuts: NDArray[np.uint32]
    """The codes with which buckets 2, 3, … of a column begin. Bucket 1 begins with code 1; code 0 is bucket 0."""
    is_whole: NDArray[np.uint8]
    """By bucket from bucket 1 on, those of column c from cut_starts[c] + c: no interval begins or ends within it."""
    summary_bitmaps: NDArray[np.int64]
    """For each 512 blocks and each of `columns`: where the bitmaps of blocks start in `summaries`, in words."""
    summaries: NDArray[np.uint64]
    block_starts: NDArray[np.int64]
    """By block: where its columns start in `block_columns`. One more than there are blocks."""
    block_columns: NDArray[np.int32]
    """The columns with bitmaps. Those by which few slots fail have none."""
    block_bitmaps: NDArray[np.int64]
    """For each column of a block: where its bitmaps start, in words."""
    block_slots: NDArray[np.int32]
    """By block: how many of its slots are taken."""
    bitmaps: NDArray[np.uint64]
    in_doubt: NDArray[np.uint64]
    """A bit for every slot that is always tested: it asks for a column without bitmaps, or for all but an interval."""
    row_starts: NDArray[np.int64]
    """By slot, and one more: where its predicates start in `rows`, in predicates."""
    rows: NDArray[np.uint32]


class SieveRoom(NamedTuple):
    """Working arrays."""

    visits: Visits
    """The pieces of each event, as `write_pieces` takes them."""
    bucket_of: Grid[np.uint32]
    """By event and column, where the bitmap of the event's bucket stands among those of a column, in words."""
    before: Grid[np.uint32]
    after: Grid[np.uint32]
    """The same for the two buckets next to it; its own if no interval begins or ends within it."""
    codes: Grid[np.uint32]
    """By event and column."""
    live: Grid[np.uint64]
    """By event, a bit for each block that is worth a look."""
    waiting: NDArray[np.int64]
    """The slots of an event that are to be tested."""
    kept: NDArray[np.uint64]
    """The words of the blocks in which an event has slots left."""
    kept_blocks: NDArray[np.int64]
    summary_columns: NDArray[np.int32]
    """The columns of the sieve, as often as there are summaries."""
    sure: NDArray[np.uint64]
    """The words of a block."""


@inner
def bucket_of_code(cuts, begin, end, code):
    """The bucket of a code of the column whose cuts are begin:end."""
    if code == 0:
        return np.int64(0)
    low, size = begin, end - begin
    while size > 0:
        half = size >> 1
        if cuts[low + half] <= code:
            low += half + 1
            size -= half + 1
        else:
            size = half
    return low - begin + 1


@inlined
def _find_buckets(index, codes, first, events, room):
    """For every column of the sieve and every event: its code, its bucket, and the buckets next to that."""
    cuts, is_whole, codes = borrowed(index.cuts), borrowed(index.is_whole), borrowed(codes)
    bucket_of, before, after, event_codes = room.bucket_of, room.before, room.after, room.codes
    for i in range(index.columns.size):
        column = index.columns[i]
        begin, end = index.cut_starts[column], index.cut_starts[column + 1]
        for event in range(events):
            code = codes[column, first + event]
            bucket = bucket_of_code(cuts, begin, end, code)
            lower, upper = bucket - 1, bucket + 1
            if bucket == 0 or is_whole[begin + column + bucket - 1]:
                lower = upper = bucket
            elif bucket > end - begin:  # the last bucket: slots that ask for the column are in doubt
                upper = np.int64(0)
            event_codes[event, column] = code
            bucket_of[event, column] = np.uint32(bucket * WORDS)
            before[event, column] = np.uint32(lower * WORDS)
            after[event, column] = np.uint32(upper * WORDS)


class SieveSearch(NamedTuple):
    """The arrays of `sift`."""

    sieve: Sieve
    room: SieveRoom
    presence: PresentBits
    word: NDArray[np.uint64]
    """Room for the words of a block."""
    counts: NDArray[np.int64]
    """By event of a chunk: how many ids it has."""
    seen: NDArray[np.int64]
    """One element: the slots examined."""


_thawed, _thawed_deleted, _thawed_batch = thawing(SieveSearch), thawing(Deleted), thawing(Batch)


@inner
def sift(search, deletions, batch, codes_of_events, out, first, events):
    """A stage: find the slots that hold for each event, as pieces, and count them.

    Returns the number of visits, or -1 without room for them.
    """
    searched, deleted, candidates = _thawed(search), _thawed_deleted(deletions), _thawed_batch(batch).candidates
    index, room, word, seen = searched.sieve, searched.room, searched.word, searched.seen
    dead, has_dead, ends = pointer(deleted.bitmap), deleted.state != NONE_DELETED, pointer(searched.counts)
    visits = room.visits
    _find_buckets(index, borrowed(codes_of_events), first, events, room)
    # The row behind the last column has a bit for every event that is not skipped.
    present = row_pointer(searched.presence.bits, codes_of_events.shape[0])
    bitmaps, block_starts, block_columns = index.bitmaps, pointer(index.block_starts), index.block_columns
    block_bitmaps, block_slots, in_doubt = index.block_bitmaps, pointer(index.block_slots), pointer(index.in_doubt)
    row_starts, rows = pointer(index.row_starts), pointer(index.rows)
    bucket_of, before, after, codes = room.bucket_of, room.before, room.after, room.codes
    live, waiting, sure = room.live, pointer(room.waiting), room.sure
    kept, kept_blocks = pointer(room.kept), pointer(room.kept_blocks)
    pieces, piece_ends = visits.pieces, pointer(visits.ends)
    visit_event, starts = visits.event, visits.starts
    _find_live(index, events, present, room, word)
    end_of_pieces = visited = np.int64(0)
    starts[0] = 0
    for stretch in range(starts.size - 1):
        base = stretch << STRETCH_BITS
        for part in range(0, STRETCH, GROUP):
            shift = np.uint64((stretch & 1) * STRETCH + part)
            for event in range(events):
                left = (live[event, stretch >> 1] >> shift) & np.uint64((1 << GROUP) - 1)
                if left == NO_BITS:
                    continue
                if visited == visit_event.size or end_of_pieces + GROUP * PIECES > pieces.size:
                    return np.int64(-1)
                chosen = bucket_of[event]
                count = blocks = tested = np.int64(0)
                while left != NO_BITS:
                    number = part + trailing_zeros(left)
                    block = base + number
                    left &= left - ONE_BIT
                    if left != NO_BITS:
                        coming = base + part + trailing_zeros(left)
                        for j in range(block_starts[coming], block_starts[coming + 1]):
                            prefetch_read(bitmaps, block_bitmaps[j] + chosen[block_columns[j]])
                    fill_block(word)
                    if has_dead or block_slots[block] < BLOCK:
                        whole = (index.first_slot + (block << BLOCK_BITS)) >> 6
                        for w in range(WORDS):
                            word[w] = first_bits(block_slots[block] - w * ROWS)
                            if has_dead:
                                word[w] &= ~dead[whole + w]
                    seen[0] += block_slots[block]
                    candidates[first + event] += block_slots[block]
                    begin, stop = block_starts[block], block_starts[block + 1]
                    some = np.int64(1)
                    at = begin
                    while at < stop and some:
                        until = min(at + _STEP, stop)
                        some = and_bitmaps(word, bitmaps, block_bitmaps, block_columns, chosen, at, until)
                        at = until
                    if begin == stop:
                        some = block_slots[block]
                    if some == 0:
                        continue
                    is_dense = some > FEW
                    if is_dense:
                        # A slot that admits codes of both buckets next to the event's admits all codes of that one.
                        fill_block(sure)
                        and_bitmaps(sure, bitmaps, block_bitmaps, block_columns, before[event], begin, stop)
                        and_bitmaps(sure, bitmaps, block_bitmaps, block_columns, after[event], begin, stop)
                    for w in range(WORDS):
                        rest = word[w]
                        kept[blocks * WORDS + w] = rest
                        if is_dense:
                            rest &= ~sure[w] | in_doubt[block * WORDS + w]
                        while rest != NO_BITS:
                            bit = trailing_zeros(rest)
                            slot = (block << BLOCK_BITS) + w * ROWS + bit
                            rest &= rest - ONE_BIT
                            prefetch_read(row_starts, slot)
                            waiting[tested] = slot << _SLOT_SHIFT | (blocks * WORDS + w) << _WORD_SHIFT | bit
                            tested += 1
                    kept_blocks[blocks] = number
                    blocks += 1
                for i in range(tested):
                    at = row_starts[waiting[i] >> _SLOT_SHIFT] * PREDICATE
                    prefetch_read(rows, at)
                    prefetch_read(rows, at + _LINE)
                event_codes = codes[event]
                for i in range(tested):
                    slot = waiting[i] >> _SLOT_SHIFT
                    for at in range(row_starts[slot] * PREDICATE, row_starts[slot + 1] * PREDICATE, PREDICATE):
                        code = np.int64(event_codes[rows[at]])
                        if code == 0 or (code - np.int64(rows[at + 1])) & _LOW_BITS > np.int64(rows[at + 2]):
                            mask = ~(ONE_BIT << np.uint64(waiting[i] & (ROWS - 1)))
                            kept[waiting[i] >> _WORD_SHIFT & _WORD_MASK] &= mask
                            break
                begin = end_of_pieces
                for i in range(blocks):
                    for w in range(WORDS):
                        word[w] = kept[i * WORDS + w]
                        count += ones(word[w])
                    end_of_pieces = keep_pieces(word, kept_blocks[i] * PIECES, pieces, end_of_pieces)
                if end_of_pieces > begin:
                    visit_event[visited] = event
                    piece_ends[visited] = end_of_pieces
                    visited += 1
                    ends[event] += count
        starts[stretch + 1] = visited
    return np.int64(visited)


@inlined
def _find_live(index, events, present, room, word):
    """For every event the blocks that are worth a look."""
    summaries, summary_bitmaps = borrowed(index.summaries), borrowed(index.summary_bitmaps)
    summary_columns, bucket_of, live = borrowed(room.summary_columns), borrowed(room.bucket_of), borrowed(room.live)
    word, columns = borrowed(word), index.columns.size
    for event in range(events):
        if (present[event >> 6] >> np.uint64(event & 63)) & ONE_BIT == NO_BITS:
            live[event] = NO_BITS
            continue
        for number in range(live.shape[1] // WORDS):
            fill_block(word)
            begin = number * columns
            and_bitmaps(word, summaries, summary_bitmaps, summary_columns, bucket_of[event], begin, begin + columns)
            for w in range(WORDS):
                live[event, number * WORDS + w] = word[w]


@kernel
def find_in_sieve(index, ids, dead, event_codes, place, admitted, words, out, end):
    """Append the ids of the slots that may match the event with several values at a place.

    `admitted` is room for a word by column, `words` for 16 words. Returns the end of the ids, or -1 without room.
    """
    starts, values = event_codes.starts, event_codes.values
    first = place * event_codes.columns
    for i in range(index.columns.size):
        column = index.columns[i]
        begin, stop = index.cut_starts[column], index.cut_starts[column + 1]
        buckets = NO_BITS
        for at in range(starts[first + column], starts[first + column + 1]):
            buckets |= ONE_BIT << np.uint64(bucket_of_code(index.cuts, begin, stop, values[at]))
        admitted[column] = ONE_BIT if buckets == NO_BITS else buckets
    for block in range(index.block_slots.size):
        for w in range(WORDS):
            words[w] = first_bits(index.block_slots[block] - w * ROWS)
        for j in range(index.block_starts[block], index.block_starts[block + 1]):
            words[WORDS:] = NO_BITS
            buckets = admitted[index.block_columns[j]]
            while buckets != NO_BITS:
                at = index.block_bitmaps[j] + trailing_zeros(buckets) * WORDS
                buckets &= buckets - ONE_BIT
                for w in range(WORDS):
                    words[WORDS + w] |= index.bitmaps[at + w]
            for w in range(WORDS):
                words[w] &= words[WORDS + w]
        for w in range(WORDS):
            left = words[w]
            while left != NO_BITS:
                slot = (block << BLOCK_BITS) + w * ROWS + trailing_zeros(left)
                left &= left - ONE_BIT
                met = not is_dead(dead, index.first_slot + slot)
                for at in range(index.row_starts[slot] * PREDICATE, index.row_starts[slot + 1] * PREDICATE, PREDICATE):
                    if not met:
                        break
                    column, low = first + np.int64(index.rows[at]), np.int64(index.rows[at + 1])
                    high = (low + np.int64(index.rows[at + 2])) & _LOW_BITS
                    met = meets_any(values, starts[column], starts[column + 1], low, high)
                if met:
                    if end == out.size:
                        return -1
                    out[end] = ids[index.first_slot + slot]
                    end += 1
    return end
