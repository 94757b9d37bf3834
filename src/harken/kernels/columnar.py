"""Matching a batch against a segment: chunk by chunk, clusters and pools, first the counts and then the ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.copying import copy_runs
from harken.kernels.pool import Unwritten, Visits, find_bitmaps, find_pieces, find_visits, write_pieces
from harken.kernels.presence import Presence, mark_present
from harken.kernels.runs import Runs, find_runs

CHUNK = 2_048
"""Events that are taken through an index together, at most: what one brings to the cache serves others."""
_CACHED = 1 << 20
"""A chunk of more ids than this is written past the cache."""


class Room(NamedTuple):
    """Space to work in."""

    runs: Runs
    visits: Visits
    word: NDArray[np.uint64]
    staged: NDArray[np.int32]
    unwritten: Unwritten
    presence: Presence
    bitmap_of: NDArray[np.uint32]
    ends: NDArray[np.int64]
    looked_at: NDArray[np.int64]
    pending: NDArray[np.int64]
    """Of a chunk whose ids did not fit: its visits and its events, which are 0 if there is none."""


@kernel
def match_codes(
    clusters,
    pools,
    ids,
    dead,
    has_dead,
    codes,
    given,
    skipped,
    first,
    last,
    chunk,
    room,
    reserved,
    offsets,
    candidates,
    seen,
    out,
):
    """Write the ids of the events first:last behind each other, from offsets[first] on, and where each event's end.

    Each event's ids begin with as many places as `reserved` says, which are left for others to fill. `seen` counts, by
    cluster and then by pool, the slots that were looked at.

    Returns the first event that was not done for lack of space in `out`, and the space that its chunk needs; or `last`.
    Called again with as much space, it goes on with what was found.
    """
    presence, ends, looked_at, pending = room.presence, room.ends, room.looked_at, room.pending
    event = first
    while event < last:
        visited, events = pending[0], pending[1]
        if events == 0:
            events = min(chunk, last - event)
            mark_present(codes, given, event, events, skipped, presence)
            ends[:events] = 0
            looked_at[:] = 0
            candidates[event : event + events] = 0
            fits = find_runs(
                clusters, ids, dead, has_dead, codes, event, events, presence, room.runs, ends, candidates, looked_at
            )
            visited = 0
            if fits and pools.pools.shape[0]:
                visited = find_visits(
                    pools, codes, event, events, presence, room.visits, looked_at[clusters.clusters.shape[0] :]
                )
            if not fits or visited < 0:
                chunk = (events + 1) // 2
                continue
            if visited:
                find_bitmaps(pools, codes, event, events, room.bitmap_of)
                find_pieces(pools, dead, has_dead, event, room.visits, room.bitmap_of, room.word, ends, candidates)
            position = offsets[event]
            for i in range(events):
                count = ends[i] + reserved[event + i]
                ends[i] = position + reserved[event + i]
                position += count
                offsets[event + i + 1] = position
            if position > out.size:
                pending[0], pending[1] = visited, events
                return event, position
        pending[1] = 0
        streaming = offsets[event + events] - offsets[event] > _CACHED
        copy_runs(room.runs, events, ids, clusters.step_ids, ends, room.staged, out, streaming)
        if visited:
            write_pieces(pools, ids, events, room.visits, room.staged, room.unwritten, ends, out, streaming)
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
