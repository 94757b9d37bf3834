"""Copying the runs of ids that clusters have for each event of a chunk.

The runs of an event follow each other, and mostly those of the next event follow them: what is written is one stream.
It is written line by line, each line once and as a whole. The ids of a line that is begun wait until it is full. Were
each run written by itself, the lines that two runs share would be fetched from memory first, and lines of which a part
is in the cache could not be written past it.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import inlined, kernel
from harken.kernels.vector import (
    LANES,
    ROWS,
    borrowed,
    copy_line,
    line_offset,
    prefetch_read,
    spread,
    stream_line,
)

_AHEAD = 6
"""So many runs before it is copied a run's first ids are fetched."""
_BEGUN = 2 * LANES
"""Elements of `staged` for the line that is begun: as much again is overwritten behind it. Bits are spread behind."""


@kernel
def copy_runs(runs, found, events, ids, ends, staged, out, streaming):
    """Append the runs to their events' ids; `ends` says where each event's ids end so far.

    Events are taken one after the other. `staged` is room for ids. Streaming, lines go past the cache: a line that is
    written completely need not be read first, and what does not fit into the cache anyway does not drive out what is
    needed there.
    """
    run_event, run_start, run_length, order = runs.event, runs.start, runs.length, runs.order
    ids, passed, out, staged = borrowed(ids), borrowed(runs.passed), borrowed(out), borrowed(staged)
    _sort_by_event(run_event, found, events, runs.firsts, order)
    # The line that is begun is out[line:line + 16]; of its ids those from `since` up to `held` wait in `staged`.
    since = held = line_offset(out, np.int64(0))
    line = -held
    for i in range(found):
        if i + _AHEAD < found:
            ahead = run_start[order[i + _AHEAD]]
            if ahead >= 0:
                prefetch_read(ids, ahead)
        run = order[i]
        event = run_event[run]
        length = np.int64(run_length[run])
        start = run_start[run]
        if ends[event] != line + held:
            _write_begun(staged, since, held, out, line)
            since = held = line_offset(out, ends[event])
            line = ends[event] - held
        ends[event] += length
        if start >= 0:
            since, held, line = _append(ids, start, length, staged, since, held, out, line, streaming)
            continue
        is_bits = -start > passed.size
        at = -start - 1
        slot = np.int64(0)
        if is_bits:
            at -= passed.size
            slot = np.int64(passed[at])
            at += 1
        while length > 0:
            filled = np.int64(_BEGUN)
            while filled - _BEGUN < length and filled + 2 * ROWS <= staged.size:
                if is_bits:
                    filled = spread(ids, slot, passed[at], staged, filled, staged.size)
                    slot += ROWS
                else:
                    staged[filled] = ids[np.int64(passed[at])]
                    filled += 1
                at += 1
            filled -= _BEGUN
            since, held, line = _append(staged, _BEGUN, filled, staged, since, held, out, line, streaming)
            length -= filled
    _write_begun(staged, since, held, out, line)


@kernel
def repeat_lines(source, out):
    """Write the lines of a source over and over to all whole lines of `out`, past the cache. Both start with a line."""
    source, out = borrowed(source), borrowed(out)
    at = np.int64(0)
    for to in range(0, out.size - LANES + 1, LANES):
        stream_line(source, at, out, to)
        at += LANES
        if at + LANES > source.size:
            at = np.int64(0)


@inlined
def _sort_by_event(run_event, found, events, firsts, order):
    """Have `order` tell the runs event by event, those of one event as they are."""
    firsts[: events + 1] = 0
    for i in range(found):
        firsts[run_event[i] + 1] += 1
    for event in range(events):
        firsts[event + 1] += firsts[event]
    for i in range(found - 1, -1, -1):
        firsts[run_event[i] + 1] -= 1
        order[firsts[run_event[i] + 1]] = i


@inlined
def _append(source, start, length, staged, since, held, out, line, streaming):
    """Write source[start:start + length] behind what is written, but for ids that do not fill a line: these wait.

    Returns what there is of the line that is begun then. The source has at least 16 elements more.
    """
    copy_line(source, start, staged, held)
    if held + length < LANES:
        return since, held + length, line
    if since:
        _write_begun(staged, since, LANES, out, line)
    elif streaming:
        stream_line(staged, 0, out, line)
    else:
        copy_line(staged, 0, out, line)
    done = LANES - held
    line += LANES
    while done + LANES <= length:
        if streaming:
            stream_line(source, start + done, out, line)
        else:
            copy_line(source, start + done, out, line)
        line += LANES
        done += LANES
    copy_line(source, start + done, staged, 0)
    return np.int64(0), length - done, line


@inlined
def _write_begun(staged, since, held, out, line):
    """Write the ids that wait, one by one: nothing before and behind them is touched."""
    for lane in range(since, held):
        out[line + lane] = staged[lane]
