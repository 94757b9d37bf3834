"""Keyed clusters: for every event the runs of slots that it can match (Le Subscribe's equality-preferred algorithm with
quarantine, sections 4.3 and 4.4, generalised to any key and to a range within it).

The slots of a cluster are sorted by the code of the key and, under one key, by the bound of the range. So an event's
key leads to a run of slots, and its value on the range attribute cuts that run short. What the cluster asks beyond
that is compared 64 slots at a time. A run of which nothing more is asked is not looked at: its ids are copied.

A cluster that no cache holds has a sketch: tiles of 64 slots, in which every column that is compared takes one byte a
slot, or two, of the upper bits of its codes. These settle nearly all slots; only where the upper bits of an event's
code are those of a bound are the bounds themselves read. What an event reads then lies together, and is a quarter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.rows import UP_TO
from harken.kernels.vector import (
    ALL_BITS,
    NO_BITS,
    ONE_BIT,
    ROWS,
    admitted_by_end,
    at_an_end,
    borrowed,
    first_bits,
    level_with_end,
    prefetch_read,
    spread,
    trailing_zeros,
    within_bytes,
    within_narrow,
    within_wide,
    write_run,
)

# The fields of a cluster.
(
    MASK_START,
    MASK_COUNT,
    KEY_COLUMN,
    KEY_START,
    KEY_COUNT,
    HASH_START,
    HASH_BITS,
    RANGE_COLUMN,
    RANGE_CLASS,
    BOUND_START,
    BOUND_WIDE,
    SLOT_START,
    SLOT_COUNT,
    REST_START,
    REST_COUNT,
    LIST_START,
    RANGE_SPAN,
    TILE_START,
    TILE_BYTES,
) = range(19)
CLUSTER_FIELDS = 19
# The fields of a column that is compared: the column of the event, whether it is wide, where its low codes and spans
# stand, where its bytes stand in a tile, and by how many bits codes are shifted there. Where all intervals of a column
# have one end there are no spans: in place of a low code stands twice the highest code that is admitted or, of an
# interval without a high end, twice the code before the lowest, and one more.
REST_COLUMN, REST_WIDE, REST_LOW, REST_SPAN, REST_PLANE, REST_SHIFT = range(6)
REST_FIELDS = 6
NONE = -1
# Multiplying by this and keeping the upper bits spreads codes over a table (Fibonacci hashing).
_SCATTER = np.uint64(2654435769)
_WORD = np.uint64(0xFFFF_FFFF)
_WORD_BITS = 32
_LOW_BITS = 0xFFFF_FFFF
_NARROW = 0xFFFF
_LINEAR = 16
_LINE = 16
_AHEAD = 6
_TILES_AHEAD = 8
"""So many events before its tiles are looked at they are fetched."""
_DENSE = 8
"""Where more than one in so many slots passes, their ids are taken at once."""
_FETCHED = 128
"""Of a long run only the first bounds are fetched ahead; searching it does the rest."""


class Clusters(NamedTuple):
    """All clusters of a segment, as arrays."""

    clusters: NDArray[np.int64]
    """A row of fields for each."""
    masks: NDArray[np.int32]
    """The columns in which an event has to have a value."""
    starts: NDArray[np.int32]
    """By key: where its slots start, from the cluster's first slot. One more than there are keys."""
    hashed: NDArray[np.uint32]
    """Open addressing: pairs of a key's code and its place; a code of 0 is an empty place."""
    narrow: NDArray[np.uint16]
    wide: NDArray[np.uint32]
    """Bounds of ranges, and low codes and spans of what is compared, by the width of their column's codes."""
    rest: NDArray[np.int64]
    """What is compared, a row of fields for each column."""
    tiles: NDArray[np.uint8]
    """The sketches."""
    list_starts: NDArray[np.int32]
    list_columns: NDArray[np.int32]
    list_low: NDArray[np.uint32]
    list_span: NDArray[np.uint32]
    """Where rows of a cluster ask for unlike attributes: their predicates, row by row."""


class Runs(NamedTuple):
    """Runs of ids to copy: from the ids of the segment, or from ids that passed a comparison."""

    event: NDArray[np.int32]
    start: NDArray[np.int64]
    length: NDArray[np.int32]
    passed: NDArray[np.int32]
    """The ids that passed a comparison. A run that starts at s < 0 begins at passed[-s - 1]; from -s - 1 = passed.size
    on it begins as much before, and has slots, whose ids are being fetched, in place of ids."""
    who: NDArray[np.int64]
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]
    """Room for the events that a cluster applies to, and the slots that each has to look at."""
    order: NDArray[np.int32]
    firsts: NDArray[np.int64]
    """Room for sorting the runs by event."""


@kernel
def is_dead(dead, slot):
    """Whether a slot is deleted."""
    return (dead[slot >> 6] >> np.uint64(slot & 63)) & ONE_BIT != NO_BITS


@kernel
def live_word(dead, slot):
    """The bits of 64 slots from this one on that are not deleted."""
    shift = np.uint64(slot & 63)
    word = dead[slot >> 6] >> shift
    if shift != NO_BITS:
        word |= dead[(slot >> 6) + 1] << (np.uint64(64) - shift)
    return ~word


@kernel
def rest_interval(rest, i, slot, narrow, wide, top):
    """The lowest and the highest code that a slot admits in a column that is compared; the low one is above the high
    one where the interval is wrapped.
    """
    width, low = np.int64(_NARROW), np.int64(0)
    if rest[i, REST_WIDE]:
        width, low = np.int64(_LOW_BITS), np.int64(wide[rest[i, REST_LOW] + slot])
    else:
        low = np.int64(narrow[rest[i, REST_LOW] + slot])
    if rest[i, REST_SPAN] == NONE:
        return ((low >> 1) + 1, np.int64(top)) if low & 1 else (np.int64(1), low >> 1)
    span = np.int64(wide[rest[i, REST_SPAN] + slot] if rest[i, REST_WIDE] else narrow[rest[i, REST_SPAN] + slot])
    return low, (low + span) & width


@kernel
def _sift(tiles, narrow, wide, compared, rest, rest_count, at, slot, codes, event):
    """A bit for each slot of a tile, which stands at `at` and begins with `slot`, that an event matches."""
    word, doubted = ALL_BITS, NO_BITS
    for i in range(rest, rest + rest_count):
        code = np.uint64(codes[compared[i, REST_COLUMN], event]) >> np.uint64(compared[i, REST_SHIFT])
        plane = at + compared[i, REST_PLANE]
        edge = NO_BITS
        if compared[i, REST_SPAN] == NONE:
            code <<= ONE_BIT
            if compared[i, REST_SHIFT]:
                edge = level_with_end(tiles, plane, plane, code)
            word &= admitted_by_end(tiles, plane, plane, code) | edge
        else:
            if compared[i, REST_SHIFT]:
                edge = at_an_end(tiles, plane, plane + ROWS, code)
            word &= within_bytes(tiles, plane, plane + ROWS, code)
        doubted |= edge
        if word == NO_BITS:
            return word
    doubted &= word
    while doubted != NO_BITS:
        bit = trailing_zeros(doubted)
        for i in range(rest, rest + rest_count):
            code = np.int64(codes[compared[i, REST_COLUMN], event])
            low, high = rest_interval(compared, i, slot + bit, narrow, wide, _LOW_BITS)
            if not _is_between(code, low, high):
                word &= ~(ONE_BIT << np.uint64(bit))
                break
        doubted &= doubted - ONE_BIT
    return word


@kernel
def _is_between(code, low, high):
    """Whether a code lies in an interval, which is wrapped if its low end is above the high one."""
    return low <= code <= high if low <= high else code >= low or code <= high


@kernel
def find_runs(index, ids, dead, has_dead, codes, first, events, present, runs, counts, candidates, seen):
    """Find the runs of `events` events from `first` on; add to each event's count of ids and of slots looked at.

    `present` has, for every column, a bit for each of these events, and in a last row a bit for each that is to be
    matched. Returns how many runs there are, or -1 if the ids that passed do not fit: then fewer events have to be
    taken at once.
    """
    # A tuple's arrays are named once: each time that one is taken out of its tuple costs a reference count.
    clusters, masks, starts, hashed = borrowed(index.clusters), index.masks, index.starts, borrowed(index.hashed)
    narrow, wide, compared = borrowed(index.narrow), borrowed(index.wide), borrowed(index.rest)
    tiles = borrowed(index.tiles)
    list_starts, list_columns = index.list_starts, index.list_columns
    list_low, list_span = index.list_low, index.list_span
    run_event, run_start, run_length, passed_ids = runs.event, runs.start, runs.length, borrowed(runs.passed)
    ids, dead, starts, codes = borrowed(ids), borrowed(dead), borrowed(starts), borrowed(codes)
    who, begins, stops = borrowed(runs.who), borrowed(runs.begins), borrowed(runs.stops)
    found = 0
    passed = 0
    room = passed_ids.size
    words = (events + 63) >> 6
    for number in range(clusters.shape[0]):
        cluster = clusters[number]
        mask = cluster[MASK_START]
        mask_count = cluster[MASK_COUNT]
        key_column = cluster[KEY_COLUMN]
        range_column = cluster[RANGE_COLUMN]
        slots = cluster[SLOT_START]
        rest = cluster[REST_START]
        rest_count = cluster[REST_COUNT]
        lists = cluster[LIST_START]
        tile_start, tile_bytes = cluster[TILE_START], cluster[TILE_BYTES]
        looked_at = np.int64(0)
        passed_here = np.int64(0)
        # Step by step for all events that the cluster applies to, each step fetching what the next one will read: so
        # that the processor waits for many places in memory at once, and not for one after the other.
        count = 0
        for word_number in range(words):
            applicable = present[present.shape[0] - 1, word_number]
            for i in range(mask_count):
                applicable &= present[masks[mask + i], word_number]
            while applicable != NO_BITS:
                who[count] = (word_number << 6) + trailing_zeros(applicable)
                begins[count] = 0
                stops[count] = cluster[SLOT_COUNT]
                count += 1
                applicable &= applicable - np.uint64(1)
        if key_column != NONE:
            kept = 0
            for i in range(count):
                code = codes[key_column, first + who[i]]
                if code & np.uint32(1):
                    continue  # a gap: no constant is equal
                place = np.int64(code >> np.uint32(1)) - 1
                if cluster[HASH_START] != NONE:
                    place = hashed_place(hashed, cluster[HASH_START], cluster[HASH_BITS], code)
                    if place < 0:
                        continue
                who[kept] = who[i]
                begins[kept] = cluster[KEY_START] + place
                prefetch_read(starts, begins[kept])
                kept += 1
            count, kept = kept, 0
            for i in range(count):
                start, end = np.int64(starts[begins[i]]), np.int64(starts[begins[i] + 1])
                if start == end:
                    continue
                who[kept], begins[kept], stops[kept] = who[i], start, end
                kept += 1
                if range_column != NONE:
                    for at in range(start, min(end, start + _FETCHED), _LINE):
                        if cluster[BOUND_WIDE]:
                            prefetch_read(wide, cluster[BOUND_START] + at)
                        else:
                            prefetch_read(narrow, cluster[BOUND_START] + at)
            count = kept
        if range_column != NONE:
            kept = 0
            for i in range(count):
                start, end = begins[i], stops[i]
                code = codes[range_column, first + who[i]]
                bounds = cluster[BOUND_START]
                if cluster[RANGE_CLASS] == UP_TO:
                    if cluster[BOUND_WIDE]:
                        start = _first_from(wide, bounds, start, end, code)
                    else:
                        start = _first_from(narrow, bounds, start, end, code)
                else:
                    # Of an interval with two ends the low one is at most as far away as the longest is long.
                    lowest = np.int64(code) - cluster[RANGE_SPAN]
                    if cluster[BOUND_WIDE]:
                        end = _first_from(wide, bounds, start, end, code + np.uint32(1))
                        if lowest > 1:
                            start = _first_from(wide, bounds, start, end, np.uint32(lowest))
                    else:
                        end = _first_from(narrow, bounds, start, end, code + np.uint32(1))
                        if lowest > 1:
                            start = _first_from(narrow, bounds, start, end, np.uint32(lowest))
                if start >= end:
                    continue
                who[kept], begins[kept], stops[kept] = who[i], start, end
                kept += 1
                if tile_start != NONE:
                    continue
                prefetch_read(ids, slots + start)
                for j in range(rest, rest + rest_count):
                    if compared[j, REST_WIDE]:
                        prefetch_read(wide, compared[j, REST_LOW] + start)
                        prefetch_read(wide, compared[j, REST_SPAN] + start)
                        prefetch_read(wide, compared[j, REST_LOW] + start + _LINE)
                        prefetch_read(wide, compared[j, REST_SPAN] + start + _LINE)
                    else:
                        prefetch_read(narrow, compared[j, REST_LOW] + start)
                        prefetch_read(narrow, compared[j, REST_SPAN] + start)
            count = kept
        for k in range(count):
            event, start, end = who[k], begins[k], stops[k]
            candidates[first + event] += end - start
            looked_at += end - start
            if rest_count == 0 and lists == NONE and not has_dead:
                run_event[found] = event
                run_start[found] = slots + start
                run_length[found] = end - start
                found += 1
                counts[event] += end - start
                continue
            if passed + (end - start) + ROWS > room:
                return -1
            before = passed
            as_slots = False
            if tile_start != NONE:
                if k + _TILES_AHEAD < count:
                    ahead = k + _TILES_AHEAD
                    last = tile_start + ((stops[ahead] - 1) // ROWS + 1) * tile_bytes
                    for at in range(tile_start + begins[ahead] // ROWS * tile_bytes, last, ROWS):
                        prefetch_read(tiles, at)
                as_slots = passed_here * _DENSE <= looked_at
                for slot in range(start // ROWS * ROWS, end, ROWS):
                    at = tile_start + slot // ROWS * tile_bytes
                    word = _sift(tiles, narrow, wide, compared, rest, rest_count, at, slot, codes, first + event)
                    word &= first_bits(end - slot) & ~first_bits(start - slot)
                    if has_dead:
                        word &= live_word(dead, slots + slot)
                    if not as_slots:
                        passed = spread(ids, slots + slot, word, passed_ids, passed, room)
                        continue
                    while word != NO_BITS:
                        passed_ids[passed] = slots + slot + trailing_zeros(word)
                        prefetch_read(ids, np.int64(passed_ids[passed]))
                        passed += 1
                        word &= word - ONE_BIT
                passed_here += passed - before
            elif lists == NONE:
                for slot in range(start, end, ROWS):
                    word = first_bits(end - slot)
                    if has_dead:
                        word &= live_word(dead, slots + slot)
                    for i in range(rest, rest + rest_count):
                        code = codes[compared[i, REST_COLUMN], first + event]
                        low = compared[i, REST_LOW] + slot
                        span = compared[i, REST_SPAN] + slot
                        if compared[i, REST_WIDE]:
                            word &= within_wide(wide, low, span, np.uint64(code))
                        else:
                            word &= within_narrow(narrow, low, span, np.uint64(code))
                        if word == NO_BITS:
                            break
                    if word == ALL_BITS:
                        for i in range(ROWS):
                            passed_ids[passed + i] = ids[slots + slot + i]
                        passed += ROWS
                    elif word != NO_BITS:
                        passed = spread(ids, slots + slot, word, passed_ids, passed, room)
            else:
                for slot in range(start, end):
                    met = not (has_dead and is_dead(dead, slots + slot))
                    for i in range(list_starts[lists + slot], list_starts[lists + slot + 1]):
                        if not met:
                            break
                        code = codes[list_columns[i], first + event]
                        met = code != 0 and (np.int64(code) - np.int64(list_low[i])) & _LOW_BITS <= list_span[i]
                    if met:
                        passed_ids[passed] = ids[slots + slot]
                        passed += 1
            if passed > before:
                run_event[found] = event
                run_start[found] = -before - 1 - (room if as_slots else 0)
                run_length[found] = passed - before
                found += 1
                counts[event] += passed - before
        seen[number] += looked_at
    return found


@kernel
def copy_runs(runs, found, events, ids, ends, out, streaming):
    """Append the runs to their events' ids; `ends` says where each event's ids end so far.

    Events are taken one after the other, so that what is written is written in one go.
    """
    run_event, run_start, run_length, order = runs.event, runs.start, runs.length, runs.order
    ids, passed, out, firsts = borrowed(ids), borrowed(runs.passed), borrowed(out), runs.firsts
    firsts[: events + 1] = 0
    for i in range(found):
        firsts[run_event[i] + 1] += 1
    for event in range(events):
        firsts[event + 1] += firsts[event]
    for i in range(found - 1, -1, -1):
        firsts[run_event[i] + 1] -= 1
        order[firsts[run_event[i] + 1]] = i
    for i in range(found):
        if i + _AHEAD < found:
            ahead = run_start[order[i + _AHEAD]]
            if ahead >= 0:
                prefetch_read(ids, ahead)
        run = order[i]
        event = run_event[run]
        length = run_length[run]
        end = ends[event]
        start = run_start[run]
        if start >= 0:
            write_run(ids, start, length, out, end, streaming)
        elif -start > passed.size:
            begin = -start - 1 - passed.size
            for at in range(length):
                out[end + at] = ids[passed[begin + at]]
        else:
            write_run(passed, -start - 1, length, out, end, streaming)
        ends[event] = end + length


@kernel
def _first_from(bounds, offset, start, end, code):
    """The first slot in start:end whose bound is at least the code, or the end."""
    while end - start > _LINEAR:
        middle = (start + end) >> 1
        if bounds[offset + middle] < code:
            start = middle + 1
        else:
            end = middle
    below = 0
    for slot in range(start, end):
        below += bounds[offset + slot] < code
    return start + below


@kernel
def hashed_place(hashed, start, bits, code):
    """The place of a key in its cluster's table, or -1."""
    mask = (np.int64(1) << bits) - 1
    at = np.int64((np.uint64(code) * _SCATTER & _WORD) >> np.uint64(_WORD_BITS - bits))
    while True:
        there = hashed[start + 2 * at]
        if there == code:
            return np.int64(hashed[start + 2 * at + 1])
        if there == 0:
            return np.int64(-1)
        at = (at + 1) & mask


@kernel
def fill_table(keys, bits, table):
    """Enter every key with its place into an empty table of 2**bits pairs."""
    mask = (np.int64(1) << bits) - 1
    for place in range(keys.size):
        at = np.int64((np.uint64(keys[place]) * _SCATTER & _WORD) >> np.uint64(_WORD_BITS - bits))
        while table[2 * at] != 0:
            at = (at + 1) & mask
        table[2 * at] = keys[place]
        table[2 * at + 1] = place
