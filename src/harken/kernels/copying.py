"""Copying the runs of ids that clusters have for each event of a chunk."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel
from harken.kernels.vector import ROWS, borrowed, prefetch_read, spread, write_run

_AHEAD = 6
"""So many runs before it is copied a run's first ids are fetched."""


@kernel
def copy_runs(runs, found, events, ids, ends, staged, out, streaming):
    """Append the runs to their events' ids; `ends` says where each event's ids end so far.

    Events are taken one after the other, so that what is written is written in one go. `staged` is room for ids.
    """
    run_event, run_start, run_length, order = runs.event, runs.start, runs.length, runs.order
    ids, passed, out, firsts = borrowed(ids), borrowed(runs.passed), borrowed(out), runs.firsts
    staged = borrowed(staged)
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
        length = np.int64(run_length[run])
        end = ends[event]
        start = run_start[run]
        if start >= 0:
            write_run(ids, start, length, out, end, streaming)
        elif -start > passed.size:
            _write_bits(ids, passed, -start - 1 - passed.size, length, staged, out, end, streaming)
        else:
            for at in range(length):
                out[end + at] = ids[np.int64(passed[-start - 1 + at])]
        ends[event] = end + length


@kernel
def _write_bits(ids, passed, at, length, staged, out, end, streaming):
    """Write the ids of so many slots, whose bits are behind passed[at]."""
    slot = np.int64(passed[at])
    held = np.int64(0)
    while length > held:
        at += 1
        held = spread(ids, slot, passed[at], staged, held, staged.size)
        slot += ROWS
        if held + 2 * ROWS > staged.size:
            write_run(staged, 0, held, out, end, streaming)
            end, length, held = end + held, length - held, np.int64(0)
    write_run(staged, 0, held, out, end, streaming)
