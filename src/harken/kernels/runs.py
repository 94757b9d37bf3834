"""Finds the runs of ids that the clusters have for each event of a chunk.

Clusters are searched one by one, each step by step for all events that it applies to: a step prefetches what the next
one reads, so that the processor waits for many places in memory at once, not for one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.clusters import (
    BOUND_START,
    BOUND_WIDE,
    FILTER_BITS,
    FILTER_COLUMNS,
    FILTER_COUNT,
    FILTER_START,
    HASH_BITS,
    HASH_START,
    KEY_COLUMN,
    KEY_START,
    LIST_START,
    MASK_COUNT,
    MASK_START,
    NONE,
    RANGE_CLASS,
    RANGE_COLUMN,
    RANGE_SPAN,
    REST_COUNT,
    REST_LOW,
    REST_SPAN,
    REST_START,
    REST_WIDE,
    SLOT_COUNT,
    SLOT_START,
    TILE_BYTES,
    TILE_START,
    WORD_BITS,
    Clusters,
    hashed_place,
    mixed_with,
)
from harken.kernels.compile import inlined, inner
from harken.kernels.deletes import COMPACT, NONE_DELETED, Deleted, live_place
from harken.kernels.frozen import Grid, thawing
from harken.kernels.presence import PresentBits, mark_present
from harken.kernels.rows import UP_TO
from harken.kernels.sifting import check_run, compare_run, compare_word, first_of_run, keep_word, sift_run
from harken.kernels.stages import Batch
from harken.kernels.vector import (
    NO_BITS,
    ONE_BIT,
    ROWS,
    below,
    borrowed,
    first_bits,
    ones,
    pointer,
    prefetch_read,
    row_pointer,
    spread_word,
)

_LINE = 16
_TILES_AHEAD = 8
"""Prefetch distance for tiles, in events."""
_DENSE = 8
"""If fewer than 1/8 of the slots pass, they are listed one by one; else as bits."""
_MARGIN = 4
"""Elements of `passed` that a run takes besides one per slot or per 64 slots: a slot in front, and partial words."""
_FETCHED = 128
"""Bounds prefetched at the start of a run; the search of a longer run fetches the others."""


class Runs(NamedTuple):
    """Runs of ids to copy: all ids of some slots, or of those that passed a comparison."""

    of_event: Grid[np.uint64]
    """The runs of each event, a column of room for each: where one begins and, above 32 bits, how many ids it has.

    Runs of which all ids are copied stand in the first rows: one begins at a slot (a place in `live`, where deleted
    slots are left out).
    What passed a comparison stands in the last rows, the first one last: it begins in `passed` or, behind that, as bits
    there. Rows that no event needs are not touched: where events have few runs these are near each other.
    """
    whole: NDArray[np.int64]
    part: NDArray[np.int64]
    """By event: the number of runs in the first rows, and in the last."""
    passed: NDArray[np.uint64]
    """What passed a comparison: slots; or bits, which are a slot, then a word with bits for 64 slots from there, one
    for the next 64, and so on."""
    numbers: NDArray[np.int32]
    """0, 1, 2 and so on, for all events."""
    active: NDArray[np.int32]
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]
    """Room for the events that a cluster applies to, and where the slots of each begin and stop."""


class ClusterSearch(NamedTuple):
    """The arrays of `find_runs`."""

    clusters: Clusters
    ids: NDArray[np.int32]
    runs: Runs
    presence: PresentBits
    counts: NDArray[np.int64]
    """By event of a chunk: how many ids it has."""
    seen: NDArray[np.int64]
    """By cluster: the slots examined."""


_thawed, _thawed_deleted, _thawed_batch = thawing(ClusterSearch), thawing(Deleted), thawing(Batch)


@inner
def find_runs(search, deletions, batch, codes, out, first, events):
    """A stage: find the runs of each event, and count its ids and the slots examined.

    Returns -1 if `passed` is too small for so large a chunk.
    """
    searched, deleted, events_of = _thawed(search), _thawed_deleted(deletions), _thawed_batch(batch)
    index, runs, presence = searched.clusters, searched.runs, searched.presence
    mark_present(codes, events_of.has_value, first, events, events_of.skipped, presence)
    clusters, compared, of_event, present = index.clusters, index.rest, runs.of_event, presence.bits
    masks, starts, hashed = pointer(index.masks), pointer(index.starts), pointer(index.hashed)
    narrow, wide = pointer(index.narrow), pointer(index.wide)
    tiles, filters, any_event = pointer(index.tiles), pointer(index.filters), presence.any_event
    list_starts, list_columns = pointer(index.list_starts), pointer(index.list_columns)
    list_low, list_span = pointer(index.list_low), pointer(index.list_span)
    dead, before = pointer(deleted.bitmap), pointer(deleted.before)
    has_dead, is_compact = deleted.state != NONE_DELETED, deleted.state == COMPACT
    copies_runs = is_compact or not has_dead
    whole, part, passed, room = pointer(runs.whole), pointer(runs.part), pointer(runs.passed), runs.passed.size
    numbers, active = pointer(runs.numbers), pointer(runs.active)
    begins, stops = pointer(runs.begins), pointer(runs.stops)
    ids, codes = pointer(searched.ids), borrowed(codes)
    counts, candidates, seen = pointer(searched.counts), pointer(events_of.candidates), pointer(searched.seen)
    back = of_event.shape[0] - 1
    for event in range(events):
        whole[event] = part[event] = 0
    end_of_passed = 0
    for number in range(clusters.shape[0]):
        cluster = row_pointer(clusters, number)
        count = _applicable(cluster, masks, present, any_event, events, numbers, active)
        if cluster[FILTER_START] != NONE:
            count = _filtered(cluster, masks, filters, codes, first, count, active, begins)
        if count == 0:
            continue
        if cluster[KEY_COLUMN] != NONE:
            count = _by_key(cluster, starts, hashed, codes, first, count, active, begins, stops)
        else:
            for i in range(count):
                begins[i], stops[i] = 0, cluster[SLOT_COUNT]
        if cluster[RANGE_COLUMN] != NONE:
            count = _cut_short(cluster, narrow, wide, codes, first, count, active, begins, stops)
        examined = passed_here = np.int64(0)
        if cluster[REST_COUNT] == 0 and cluster[LIST_START] == NONE and copies_runs:
            slots = cluster[SLOT_START]
            for k in range(count):
                start, end = slots + begins[k], slots + stops[k]
                examined += end - start
                if is_compact:
                    start, end = live_place(dead, before, start), live_place(dead, before, end)
                _add(of_event, whole, counts, np.int64(active[k]), start, end - start)
            seen[number] += examined
            continue
        if cluster[TILE_START] == NONE and cluster[KEY_COLUMN] != NONE:
            _fetch(cluster, ids, compared, narrow, wide, count, begins)
        for k in range(count):
            event, start, end = np.int64(active[k]), begins[k], stops[k]
            examined += end - start
            # Where few slots pass they are listed, and their ids fetched; where many do, their bits are kept.
            as_slots = cluster[LIST_START] != NONE or passed_here * _DENSE < examined - (end - start)
            if end_of_passed + (end - start if as_slots else (end - start) // ROWS) + _MARGIN > room:
                return np.int64(-1)
            origin = end_of_passed if as_slots else end_of_passed + room
            is_whole = False
            if cluster[TILE_START] != NONE:
                if k + _TILES_AHEAD < count:
                    _fetch_tiles(cluster, tiles, begins[k + _TILES_AHEAD], stops[k + _TILES_AHEAD])
                matched, end_of_passed = sift_run(
                    cluster, tiles, narrow, wide, compared, ids, dead, has_dead, codes, first + event, start, end,
                    as_slots, passed, end_of_passed,
                )  # fmt: skip
            elif cluster[LIST_START] == NONE and end - start <= ROWS:
                word = compare_word(
                    cluster, narrow, wide, compared, dead, has_dead, codes, first + event, start,
                    first_bits(end - start),
                )  # fmt: skip
                matched, first_bit = ones(word), first_of_run(word)
                is_whole = first_bit >= 0
                if is_whole:
                    origin = cluster[SLOT_START] + start + first_bit
                else:
                    end_of_passed = keep_word(word, cluster[SLOT_START] + start, ids, as_slots, passed, end_of_passed)
            elif cluster[LIST_START] == NONE:
                matched, end_of_passed = compare_run(
                    cluster, narrow, wide, compared, ids, dead, has_dead, codes, first + event, start, end,
                    as_slots, passed, end_of_passed,
                )  # fmt: skip
            else:
                matched, end_of_passed = check_run(
                    cluster, list_starts, list_columns, list_low, list_span, ids, dead, has_dead, codes, first + event,
                    start, end, passed, end_of_passed,
                )  # fmt: skip
            passed_here += matched
            candidates[first + event] += end - start - matched
            if is_whole:
                if is_compact:
                    origin = live_place(dead, before, origin)
                _add(of_event, whole, counts, event, origin, matched)
            elif matched:
                of_event[back - part[event], event] = _run(origin, matched)
                part[event] += 1
                counts[event] += matched
        seen[number] += examined
    for event in range(events):
        candidates[first + event] += counts[event]
    return np.int64(0)


@inlined
def _add(of_event, whole, counts, event, start, length):
    """Add a run of which all ids are copied, unless it is empty. No branch: it would be unpredictable."""
    of_event[whole[event], event] = _run(start, length)
    whole[event] += np.int64(length > 0)
    counts[event] += length


@inlined
def _run(start, length):
    return np.uint64(start) | np.uint64(length) << np.uint64(32)


@inlined
def _applicable(cluster, masks, present, any_event, events, numbers, active):
    """The events that have a value in every column that a cluster asks for. Returns their number."""
    mask, mask_count = cluster[MASK_START], cluster[MASK_COUNT]
    for i in range(mask_count):
        if not any_event[masks[mask + i]]:
            return 0
    everyone = present.shape[0] - 1
    count = 0
    for word_number in range((events + 63) >> 6):
        applicable = present[everyone, word_number]
        for i in range(mask_count):
            applicable &= present[masks[mask + i], word_number]
        if applicable != NO_BITS:
            count = spread_word(numbers, word_number << 6, applicable, active, count)
    return count


@inlined
def _filtered(cluster, masks, filters, codes, first, count, active, places):
    """Drop the events whose bit in the filter is not set. Returns the number left. `places` is room."""
    key, columns, start = cluster[KEY_COLUMN], cluster[FILTER_COLUMNS], cluster[FILTER_START]
    second, past = masks[columns], columns + cluster[FILTER_COUNT]
    shift = np.uint64(WORD_BITS - cluster[FILTER_BITS])
    for i in range(count):
        event = first + active[i]
        mixed = mixed_with(mixed_with(NO_BITS, codes[key, event]), codes[second, event])
        for k in range(columns + 1, past):
            mixed = mixed_with(mixed, codes[masks[k], event])
        places[i] = np.int64(mixed >> shift)
        prefetch_read(filters, start + (places[i] >> 6))
    kept = 0
    for i in range(count):
        word = filters[start + (places[i] >> 6)]
        active[kept] = active[i]
        kept += np.int64(word >> np.uint64(places[i] & 63) & ONE_BIT)  # no branch: it would be unpredictable
    return kept


@inlined
def _by_key(cluster, starts, hashed, codes, first, count, active, begins, stops):
    """Look up the slots of each event's key. Returns the number of events that have any."""
    key_column, key_start, table = cluster[KEY_COLUMN], cluster[KEY_START], cluster[HASH_START]
    kept = 0
    for i in range(count):
        code = codes[key_column, first + active[i]]
        is_there = (code & np.uint32(1)) == 0  # else it is a gap: no constant is equal
        place = np.int64(code >> np.uint32(1)) - 1
        if table != NONE:
            place = hashed_place(hashed, table, cluster[HASH_BITS], code) if is_there else np.int64(-1)
            is_there = place >= 0
        active[kept], begins[kept] = active[i], key_start + place
        prefetch_read(starts, begins[kept])
        kept += np.int64(is_there)  # no branch here and below: it would be unpredictable
    count, kept = kept, 0
    for i in range(count):
        start, end = np.int64(starts[begins[i]]), np.int64(starts[begins[i] + 1])
        active[kept], begins[kept], stops[kept] = active[i], start, end
        kept += np.int64(start < end)
    return kept


@inlined
def _cut_short(cluster, narrow, wide, codes, first, count, active, begins, stops):
    """Drop the slots whose range excludes an event's value. Returns the number of events that have any left."""
    column, offset, is_keyed = cluster[RANGE_COLUMN], cluster[BOUND_START], cluster[KEY_COLUMN] != NONE
    is_wide = cluster[BOUND_WIDE] != 0
    if is_keyed:  # without a key all events search the same bounds
        for i in range(count):
            for at in range(begins[i], min(stops[i], begins[i] + _FETCHED), _LINE):
                if is_wide:
                    prefetch_read(wide, offset + at)
                else:
                    prefetch_read(narrow, offset + at)
    kept = 0
    for i in range(count):
        start, end = begins[i], stops[i]
        code = np.int64(codes[column, first + active[i]])
        if cluster[RANGE_CLASS] == UP_TO:
            start = _first_from(narrow, wide, is_wide, offset, start, end, is_keyed, code)
        else:
            end = _first_from(narrow, wide, is_wide, offset, start, end, is_keyed, code + 1)
            # An interval with two ends begins at most the longest interval's length before the code.
            lowest = code - cluster[RANGE_SPAN]
            if lowest > 1:
                start = _first_from(narrow, wide, is_wide, offset, start, stops[i], is_keyed, lowest)
        active[kept], begins[kept], stops[kept] = active[i], start, end
        kept += np.int64(start < end)
    return kept


@inlined
def _fetch(cluster, ids, compared, narrow, wide, count, begins):
    """Prefetch the first ids of all runs, and the first codes to compare."""
    rest = cluster[REST_START]
    for k in range(count):
        prefetch_read(ids, cluster[SLOT_START] + begins[k])
        for i in range(rest, rest + cluster[REST_COUNT]):
            low, span = compared[i, REST_LOW] + begins[k], compared[i, REST_SPAN] + begins[k]
            if compared[i, REST_WIDE]:
                prefetch_read(wide, low)
                prefetch_read(wide, span)
                prefetch_read(wide, low + _LINE)
                prefetch_read(wide, span + _LINE)
            else:
                prefetch_read(narrow, low)
                prefetch_read(narrow, span)


@inlined
def _fetch_tiles(cluster, tiles, start, end):
    """Prefetch the tiles of a run."""
    tile_start, tile_bytes = cluster[TILE_START], cluster[TILE_BYTES]
    past = tile_start + ((end - 1) // ROWS + 1) * tile_bytes
    for at in range(tile_start + start // ROWS * tile_bytes, past, ROWS):
        prefetch_read(tiles, at)


@inner
def _first_from(narrow, wide, is_wide, offset, start, end, is_keyed, code):
    """The first slot in start:end whose bound is at least the code, or the end.

    Without a key these are all slots of a cluster, and every 64th bound stands behind the last one.
    """
    if not is_keyed:
        first, blocks = np.int64(0), end // ROWS
        if is_wide:
            start = ROWS * _first_among(wide, offset + end, first, blocks, code)
        else:
            start = ROWS * _first_among(narrow, offset + end, first, blocks, code)
        end = min(end, start + ROWS)
    return _first_among(wide, offset, start, end, code) if is_wide else _first_among(narrow, offset, start, end, code)


@inner
def _first_among(bounds, offset, start, end, code):
    """The first in start:end whose bound is at least the code, or the end."""
    while end - start > ROWS:
        middle = (start + end) >> 1
        if bounds[offset + middle] < code:
            start = middle + 1
        else:
            end = middle
    return start + ones(below(bounds, offset + start, offset + start, np.uint64(code)) & first_bits(end - start))
