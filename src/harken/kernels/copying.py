"""Copying the runs of ids that clusters have for each event of a chunk.

The runs of an event follow each other, and mostly those of the next event follow them: what is written is one stream.
It is written line by line, each line once and as a whole. What is short, or has to be spread first, waits until there
is more of it. Were each run written by itself, the lines that two runs share would be fetched from memory first, and
lines of which a part is in the cache could not be written past it.
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

AHEAD, _NEAR = 12, 6
"""So many runs before a run is copied, what passed in it is fetched, and then its first ids."""
_SHORT = 64
"""Runs of no more ids wait for others."""


@kernel
def copy_runs(runs, found, events, ids, step_ids, ends, staged, out, streaming):
    """Append the runs to their events' ids; `ends` says where each event's ids end so far.

    Events are taken one after the other. `staged` is room for ids that wait. Streaming, lines go past the cache: a line
    that is written completely need not be read first, and what does not fit into the cache anyway does not drive out
    what is needed there.
    """
    ids, step_ids, passed, by_event = (
        borrowed(ids),
        borrowed(step_ids),
        borrowed(runs.passed),
        borrowed(runs.by_event),
    )
    ends, staged, out = borrowed(ends), borrowed(staged), borrowed(out)
    _sort_by_event(runs, found, events)
    most = staged.size - 2 * ROWS
    # What waits is staged[since:held]. It goes to out[line + since:line + held], where a line starts at out[line].
    since = held = line_offset(out, np.int64(0))
    line = -held
    for i in range(found):
        far, near = by_event[i + AHEAD, 0], by_event[i + _NEAR, 0]
        if far < 0:
            prefetch_read(passed, _place(far, passed.size))
        if near >= ids.size:
            prefetch_read(step_ids, near - ids.size)
        elif near >= 0:
            prefetch_read(ids, near)
        else:
            slot = np.int64(passed[_place(near, passed.size)])
            prefetch_read(ids, slot)
            prefetch_read(ids, slot + LANES)
            prefetch_read(ids, slot + 2 * LANES)
        start, event, length = by_event[i, 0], by_event[i, 1] >> 32, by_event[i, 1] & 0xFFFFFFFF
        if ends[event] != line + held:
            since, held, line = _write_lines(staged, since, held, out, line, streaming)
            _write_ids(staged, since, held, out, line)
            since = held = line_offset(out, ends[event])
            line = ends[event] - held
        ends[event] += length
        if start >= ids.size:
            start -= ids.size
            since, held, line = _append(step_ids, start, length, staged, since, held, most, out, line, streaming)
            continue
        if start >= 0:
            since, held, line = _append(ids, start, length, staged, since, held, most, out, line, streaming)
            continue
        at = -start - 1
        if at < passed.size:
            for each in range(at, at + length):
                if held > most:
                    since, held, line = _write_lines(staged, since, held, out, line, streaming)
                staged[held] = ids[np.int64(passed[each])]
                held += 1
            continue
        at -= passed.size
        slot = np.int64(passed[at])
        while length > 0:
            if held > most:
                since, held, line = _write_lines(staged, since, held, out, line, streaming)
            at += 1
            length += held
            held = spread(ids, slot, passed[at], staged, held, staged.size)
            length -= held
            slot += ROWS
    since, held, line = _write_lines(staged, since, held, out, line, streaming)
    _write_ids(staged, since, held, out, line)


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
def _sort_by_event(runs, found, events):
    """Put the runs into `by_event` event by event, those of one event as they are."""
    run_event, run_start, run_length = borrowed(runs.event), borrowed(runs.start), borrowed(runs.length)
    firsts, by_event = borrowed(runs.firsts), borrowed(runs.by_event)
    firsts[: events + 1] = 0
    for i in range(found):
        firsts[run_event[i] + 1] += 1
    for event in range(events):
        firsts[event + 1] += firsts[event]
    for i in range(found):
        event = np.int64(run_event[i])
        at = firsts[event]
        firsts[event] += 1
        by_event[at, 0] = run_start[i]
        by_event[at, 1] = event << 32 | np.int64(run_length[i])
    by_event[found : found + AHEAD] = 0  # these are fetched, and not copied


@inlined
def _place(start, size):
    """Where what a run begins with that starts below 0 stands in `passed`, which has this size."""
    at = -start - 1
    return at if at < size else at - size


@inlined
def _append(source, start, length, staged, since, held, most, out, line, streaming):
    """Have source[start:start + length] follow what waits. Returns what waits then.

    The source has at least 16 elements more.
    """
    if length > _SHORT:
        begun = (LANES - held) & (LANES - 1)
        copy_line(source, start, staged, held)
        since, held, line = _write_lines(staged, since, held + begun, out, line, streaming)
        start += begun
        length -= begun
        while length >= LANES:
            if streaming:
                stream_line(source, start, out, line)
            else:
                copy_line(source, start, out, line)
            line += LANES
            start += LANES
            length -= LANES
    elif held > most:
        since, held, line = _write_lines(staged, since, held, out, line, streaming)
    for at in range(0, length, LANES):
        copy_line(source, start + at, staged, held + at)
    return since, held + length, line


@inlined
def _write_lines(staged, since, held, out, line, streaming):
    """Write what waits, but for ids that do not fill a line. Returns what waits then."""
    done = np.int64(0)
    if since and held >= LANES:
        _write_ids(staged, since, np.int64(LANES), out, line)
        since, done = np.int64(0), np.int64(LANES)
    while done + LANES <= held:
        if streaming:
            stream_line(staged, done, out, line + done)
        else:
            copy_line(staged, done, out, line + done)
        done += LANES
    copy_line(staged, done, staged, 0)
    return since, held - done, line + done


@inlined
def _write_ids(staged, since, held, out, line):
    """Write the ids that wait, one by one: nothing before and behind them is touched."""
    for lane in range(since, held):
        out[line + lane] = staged[lane]
