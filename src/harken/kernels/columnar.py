"""Matching a batch against an index: chunk by chunk, clusters, pools and sieve, first the counts, then the ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.frozen import thawing
from harken.kernels.stages import Batch, Stage, call_stage


class IndexSearch(NamedTuple):
    """The stages that search an index, and what one thread needs besides."""

    find_runs: Stage
    copy_runs: Stage
    find_visits: Stage
    find_pieces: Stage
    write_pieces: Stage
    """Of pools, as the two before."""
    sift: Stage
    write_sifted: Stage
    ends: NDArray[np.int64]
    """By event of a chunk: how many ids it has, and then where they end so far."""
    looked_at: NDArray[np.int64]
    """By cluster, then by pool, and of the sieve: the slots that were looked at in a chunk."""
    pending: NDArray[np.int64]
    """Of a chunk whose ids did not fit: its visits, those of the sieve, and its events, 0 if there is none."""
    seen: NDArray[np.int64]
    """As `looked_at`: the slots that were looked at so far."""


_thawed, _thawed_batch = thawing(IndexSearch), thawing(Batch)


@kernel
def match_codes(search, deleted, batch, codes, out, first, last, chunk, resumes):
    """Write the ids of the events first:last behind each other, from offsets[first] on, and where each event's end.

    `search`, `deleted` and `batch` are frozen.

    Returns the first event that was not done for lack of space in `out`, and the space that its chunk needs; or `last`.
    Called again with as much space, and `resumes`, it goes on with what was found.
    """
    searched, given = _thawed(search), _thawed_batch(batch)
    ends, pending, looked_at, seen = searched.ends, searched.pending, searched.looked_at, searched.seen
    offsets, reserved, candidates = given.offsets, given.reserved, given.candidates
    if not resumes:
        pending[2] = offsets[first] = 0
    event = first
    while event < last:
        visited, sifted, events = pending[0], pending[1], pending[2]
        if events == 0:
            events = min(chunk, last - event)
            for i in range(events):
                ends[i] = candidates[event + i] = 0
            for i in range(looked_at.size):
                looked_at[i] = 0
            visited = sifted = np.int64(0)
            fits = call_stage(searched.find_runs, deleted, batch, codes, out, event, events) >= 0
            if fits and searched.find_visits.address:
                visited = call_stage(searched.find_visits, deleted, batch, codes, out, event, events)
            if fits and visited >= 0 and searched.sift.address:
                sifted = call_stage(searched.sift, deleted, batch, codes, out, event, events)
            if not fits or visited < 0 or sifted < 0:
                chunk = (events + 1) // 2
                continue
            if visited:
                call_stage(searched.find_pieces, deleted, batch, codes, out, event, events)
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
        call_stage(searched.copy_runs, deleted, batch, codes, out, event, events)
        if visited:
            call_stage(searched.write_pieces, deleted, batch, codes, out, event, events)
        if sifted:
            call_stage(searched.write_sifted, deleted, batch, codes, out, event, events)
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
