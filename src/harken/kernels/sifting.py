"""Which slots of a run an event matches: compared column by column, by a sketch, or predicate by predicate.

Slots that pass are appended to a list, as slots or as bits for 64 slots each; see `Runs.passed`.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.clusters import (
    LIST_START,
    NONE,
    REST_COLUMN,
    REST_COUNT,
    REST_LOW,
    REST_PLANE,
    REST_SHIFT,
    REST_SPAN,
    REST_START,
    REST_WIDE,
    SLOT_START,
    TILE_BYTES,
    TILE_START,
    rest_interval,
)
from harken.kernels.compile import inlined, inner
from harken.kernels.deletes import is_dead, live_word
from harken.kernels.vector import (
    NO_BITS,
    ONE_BIT,
    ROWS,
    admitted_by_end,
    at_an_end,
    first_bits,
    level_with_end,
    ones,
    prefetch_read,
    trailing_zeros,
    within,
)

_LOW_BITS = 0xFFFF_FFFF
_LAST_BIT = ONE_BIT << np.uint64(63)


@inlined
def compare_run(
    cluster, narrow, wide, compared, ids, dead, has_dead, codes, event, start, end, as_slots, passed, at
):  # fmt: skip
    """Append those slots of a run that an event matches, compared column by column, or their bits, behind passed[at].

    Returns the number of slots, and the new end: the old one if there are none.
    """
    slots = cluster[SLOT_START]
    matched, old_at = np.int64(0), at
    at = _begin(slots + start, as_slots, passed, at)
    for slot in range(start, end, ROWS):
        word = compare_word(cluster, narrow, wide, compared, dead, has_dead, codes, event, slot, first_bits(end - slot))
        matched += ones(word)
        at = _keep(word, slots + slot, ids, as_slots, passed, at)
    return matched, (at if matched else old_at)


@inlined
def compare_word(cluster, narrow, wide, compared, dead, has_dead, codes, event, slot, word):
    """Those bits of a word that stand for a slot which an event matches; the first is for `slot`."""
    rest = cluster[REST_START]
    if has_dead:
        word &= live_word(dead, cluster[SLOT_START] + slot)
    for i in range(rest, rest + cluster[REST_COUNT]):
        code = np.uint64(codes[compared[i, REST_COLUMN], event])
        low, span = compared[i, REST_LOW] + slot, compared[i, REST_SPAN] + slot
        if compared[i, REST_WIDE]:
            word &= within(wide, low, span, code)
        else:
            word &= within(narrow, low, span, code)
        if word == NO_BITS:
            break
    return word


@inlined
def first_of_run(word):
    """The first bit of a word that is set, the last one if there is none; or -1 if a bit is missing between two."""
    first = trailing_zeros(word | _LAST_BIT)  # of no bits there is no first one
    return first if word >> np.uint64(first) == first_bits(ones(word)) else np.int64(-1)


@inlined
def keep_word(word, slot, ids, as_slots, passed, at):
    """Append those of 64 slots that passed, as slots or as their bits. Returns the new end."""
    return _keep(word, slot, ids, as_slots, passed, _begin(slot, as_slots, passed, at))


@inlined
def sift_run(
    cluster, tiles, narrow, wide, compared, ids, dead, has_dead, codes, event, start, end, as_slots, passed, at
):  # fmt: skip
    """`compare_run` by the sketch of a cluster."""
    slots, rest, rest_count = cluster[SLOT_START], cluster[REST_START], cluster[REST_COUNT]
    matched, old_at = np.int64(0), at
    first = start // ROWS * ROWS
    at = _begin(slots + first, as_slots, passed, at)
    for slot in range(first, end, ROWS):
        tile = cluster[TILE_START] + slot // ROWS * cluster[TILE_BYTES]
        word = first_bits(end - slot) & ~first_bits(start - slot)
        if has_dead:
            word &= live_word(dead, slots + slot)
        word = _sift(word, tiles, narrow, wide, compared, rest, rest_count, tile, slot, codes, event)
        matched += ones(word)
        at = _keep(word, slots + slot, ids, as_slots, passed, at)
    return matched, (at if matched else old_at)


@inlined
def check_run(
    cluster, list_starts, list_columns, list_low, list_span, ids, dead, has_dead, codes, event, start, end, passed, at
):  # fmt: skip
    """`compare_run` by lists, predicate by predicate. It always appends slots."""
    slots, lists = cluster[SLOT_START], cluster[LIST_START]
    old_at = at
    for slot in range(start, end):
        met = not (has_dead and is_dead(dead, slots + slot))
        for i in range(list_starts[lists + slot], list_starts[lists + slot + 1]):
            if not met:
                break
            code = codes[list_columns[i], event]
            met = code != 0 and (np.int64(code) - np.int64(list_low[i])) & _LOW_BITS <= list_span[i]
        if met:
            passed[at] = slots + slot
            prefetch_read(ids, slots + slot)
            at += 1
    return at - old_at, at


@inlined
def _begin(slot, as_slots, passed, end):
    """Append the slot of the first bit of the words to come, if words are kept. Returns the new end.

    No branch: if slots are kept, the first of them overwrites it.
    """
    passed[end] = slot
    return end + np.int64(not as_slots)


@inlined
def _keep(word, slot, ids, as_slots, passed, end):
    """Append the slots whose bits are set, and prefetch their ids; or append the word. Returns the new end."""
    if not as_slots:
        passed[end] = word
        return end + 1
    while word != NO_BITS:
        chosen = slot + trailing_zeros(word)
        passed[end] = chosen
        prefetch_read(ids, chosen)
        end += 1
        word &= word - ONE_BIT
    return end


@inner
def _sift(word, tiles, narrow, wide, compared, rest, rest_count, at, slot, codes, event):
    """Those bits of a word that stand for a slot which an event matches, of the tile at `at`, whose first is `slot`."""
    doubted = NO_BITS
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
            word &= within(tiles, plane, plane + ROWS, code)
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


@inner
def _is_between(code, low, high):
    """Whether a code lies in an interval, which is wrapped if its low end is above the high one."""
    return low <= code <= high if low <= high else code >= low or code <= high
