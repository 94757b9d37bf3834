"""Matching a batch against an index: chunk by chunk, clusters, pools and sieve, first the counts, then the ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.clusters import Clusters
from harken.kernels.compile import kernel
from harken.kernels.copying import copy_runs
from harken.kernels.deletes import NONE_DELETED, Deleted
from harken.kernels.frozen import Grid, thawing
from harken.kernels.pool import Pools, Unwritten, Visits, find_bitmaps, find_pieces, find_visits, write_pieces
from harken.kernels.presence import PresentBits, mark_present
from harken.kernels.runs import Runs, find_runs
from harken.kernels.sieve import Sieve, SieveRoom, find_buckets, sift

_CACHED = 1 << 20
"""A chunk of more ids than this is written past the cache."""


class Room(NamedTuple):
    """Space to work in."""

    runs: Runs
    visits: Visits
    word: NDArray[np.uint64]
    staged: NDArray[np.int32]
    unwritten: Unwritten
    presence: PresentBits
    bitmap_of: Grid[np.uint32]
    ends: NDArray[np.int64]
    looked_at: NDArray[np.int64]
    pending: NDArray[np.int64]
    """Of a chunk whose ids did not fit: its visits, those of the sieve, and its events, 0 if there is none."""
    sieve: SieveRoom


class One(NamedTuple):
    """What a batch of one event brings along, made once."""

    has_value: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    reserved: NDArray[np.int64]
    offsets: NDArray[np.int64]
    candidates: NDArray[np.int64]


class IndexSearch(NamedTuple):
    """An index, and what one thread needs to search it."""

    clusters: Clusters
    pools: Pools
    sieve: Sieve
    ids: NDArray[np.int32]
    room: Room
    one: One
    seen: NDArray[np.int64]
    """By cluster, then by pool, and of the sieve: the slots that were looked at so far."""


_thawed_search, _thawed_deleted = thawing(IndexSearch), thawing(Deleted)


@kernel
def match_one(search, deleted, codes, out):
    """Write the ids of one event. Returns how many there are, and the slots that were looked at.

    Without room for them it returns less than 0: the room that they need, negated.
    """
    searched = _thawed_search(search)
    one = searched.one
    searched.room.pending[:] = 0
    one.offsets[0] = 0
    # Not as literals: Numba would compile all of it once more for these.
    first, last, chunk = np.int64(0), np.int64(1), np.int64(1)
    done, needed = _match(
        searched, _thawed_deleted(deleted), codes, one.has_value, one.skipped, first, last, chunk, one.reserved,
        one.offsets, one.candidates, out,
    )  # fmt: skip
    return (one.offsets[1] if done else -needed), one.candidates[0]


@kernel
def match_codes(
    search, deleted, codes, has_value, skipped, first, last, chunk, reserved, offsets, candidates, out
):  # fmt: skip
    """Write the ids of the events first:last behind each other, from offsets[first] on, and where each event's end.

    `search` and `deleted` are frozen. Each event's ids begin with as many places as `reserved` says, which are left for
    others to fill.

    Returns the first event that was not done for lack of space in `out`, and the space that its chunk needs; or `last`.
    Called again with as much space, it goes on with what was found.
    """
    return _match(
        _thawed_search(search), _thawed_deleted(deleted), codes, has_value, skipped, first, last, chunk, reserved,
        offsets, candidates, out,
    )  # fmt: skip


@kernel
def _match(search, deleted, codes, has_value, skipped, first, last, chunk, reserved, offsets, candidates, out):
    clusters, pools, ids, room, seen = search.clusters, search.pools, search.ids, search.room, search.seen
    sieve = search.sieve
    presence, ends, looked_at, pending = room.presence, room.ends, room.looked_at, room.pending
    event = first
    while event < last:
        visited, sifted, events = pending[0], pending[1], pending[2]
        if events == 0:
            events = min(chunk, last - event)
            mark_present(codes, has_value, event, events, skipped, presence)
            ends[:events] = 0
            looked_at[:] = 0
            candidates[event : event + events] = 0
            fits = find_runs(
                clusters, ids, deleted, codes, event, events, presence, room.runs, ends, candidates, looked_at
            )
            visited = sifted = np.int64(0)
            has_dead = deleted.state != NONE_DELETED
            if fits and pools.pools.shape[0]:
                visited = find_visits(
                    pools, codes, event, events, presence, room.visits, looked_at[clusters.clusters.shape[0] :]
                )
            if fits and visited >= 0 and sieve.block_slots.size:
                find_buckets(sieve, codes, event, events, room.sieve)
                sifted = sift(
                    sieve, deleted.bitmap, has_dead, event, events, presence.bits[codes.shape[0]], room.sieve,
                    room.word, ends, candidates, looked_at[looked_at.size - 1 :],
                )  # fmt: skip
            if not fits or visited < 0 or sifted < 0:
                chunk = (events + 1) // 2
                continue
            if visited:
                find_bitmaps(pools, codes, event, events, room.bitmap_of)
                find_pieces(
                    pools, deleted.bitmap, has_dead, event, room.visits, room.bitmap_of, room.word, ends, candidates
                )
            position = offsets[event]
            for i in range(events):
                count = ends[i] + reserved[event + i]
                ends[i] = position + reserved[event + i]
                position += count
                offsets[event + i + 1] = position
            if position > out.size:
                pending[0], pending[1], pending[2] = visited, sifted, events
                return event, position
        pending[2] = 0
        streaming = offsets[event + events] - offsets[event] > _CACHED
        copy_runs(room.runs, events, ids, deleted.live, deleted.step_live, ends, room.staged, out, streaming)
        if visited:
            write_pieces(pools.first_slot, ids, events, room.visits, room.staged, room.unwritten, ends, out, streaming)
        if sifted:
            write_pieces(
                sieve.first_slot, ids, events, room.sieve.visits, room.staged, room.unwritten, ends, out, streaming
            )
        for i in range(seen.size):
            seen[i] += looked_at[i]
        event += events
    return last, np.int64(0)


@kernel
def fill_reserved(offsets, filled, part_offsets, part_numbers, out):
    """Write the numbers of a part into the places that were reserved at the start of each event's ids.

    `filled` says how many of these are taken already.
    """
    for event in range(filled.size):
        at = offsets[event] + filled[event]
        for i in range(part_offsets[event], part_offsets[event + 1]):
            out[at] = part_numbers[i]
            at += 1
        filled[event] = at - offsets[event]
