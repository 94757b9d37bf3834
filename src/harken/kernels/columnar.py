"""Matching a batch against an index: chunk by chunk, clusters, pools and sieve, first the counts, then the ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.frozen import thawing
from harken.kernels.stages import Batch, Stage, call_stage


class IndexSearch(NamedTuple):
    """The stages that search an index, and the working arrays of one thread."""

    find_runs: Stage
    copy_runs: Stage
    find_visits: Stage
    find_pieces: Stage
    write_pieces: Stage
    """Of pools, as the two before."""
    sift: Stage
    write_sifted: Stage
    ends: NDArray[np.int64]
    """By event of a chunk: the number of its ids, and then where they end so far."""
    examined: NDArray[np.int64]
    """By cluster, then by pool, and of the sieve: the slots examined in a chunk."""
    pending: NDArray[np.int64]
    """Of a chunk whose ids did not fit: its visits, those of the sieve, and its events, 0 if there is none."""
    seen: NDArray[np.int64]
    """As `examined`: the slots examined so far."""


_thawed, _thawed_batch = thawing(IndexSearch), thawing(Batch)


@kernel
def match_codes(search, deleted, batch, codes, out, first, last, chunk, resumes):
    """Write the ids of the events first:last behind each other, from offsets[first] on, and where each event's end.

    `search`, `deleted` and `batch` are frozen.

    Returns `last` and 0; or, if `out` is too small, the first event not written and the space that its chunk needs. A
    call with that much space and `resumes` continues without searching the chunk again.
    """
    searched, given = _thawed(search), _thawed_batch(batch)
    ends, pending, examined, seen = searched.ends, searched.pending, searched.examined, searched.seen
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
            for i in range(examined.size):
                examined[i] = 0
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
            seen[i] += examined[i]
        event += events
    return last, np.int64(0)


@kernel
def fill_reserved(offsets, filled, part_offsets, part_numbers, out):
    """Write the numbers of a part into the places that were reserved at the start of each event's ids.

    `filled` is the number of places already taken.
    """
    for event in range(filled.size):
        at = offsets[event] + filled[event]
        for i in range(part_offsets[event], part_offsets[event + 1]):
            out[at] = part_numbers[i]
            at += 1
        filled[event] = at - offsets[event]
