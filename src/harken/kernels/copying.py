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
    spread_word,
    stream_line,
)

_NEAR = 8
"""About so many runs before a run is copied, and at least an event, its first ids are fetched, and what passed in it as
long before that.
"""
_SHORT = 64
"""Runs of no more ids wait for others."""
_LENGTH = np.uint64(32)
_START = np.uint64(0xFFFF_FFFF)


@kernel
def copy_runs(runs, events, ids, live, step_ids, ends, staged, out, streaming):
    """Append the runs to their events' ids; `ends` says where each event's ids end so far.

    Whole runs are copied from `live`, the ids of all slots or of those that are not deleted, or from `step_ids`; what
    passed a comparison, from `ids`. `staged` is room for ids that wait. Streaming, lines go past the cache: a line that
    is written completely need not be read first, and what does not fit into the cache anyway does not drive out what is
    needed there.
    """
    of_event, whole, part, passed = (
        borrowed(runs.of_event),
        borrowed(runs.whole),
        borrowed(runs.part),
        borrowed(runs.passed),
    )
    ids, live, step_ids, ends, staged, out = (
        borrowed(ids),
        borrowed(live),
        borrowed(step_ids),
        borrowed(ends),
        borrowed(staged),
        borrowed(out),
    )
    back = of_event.shape[0] - 1
    near = 1 + _NEAR * events // (1 + whole[:events].sum() + part[:events].sum())
    most = staged.size - 2 * ROWS
    # What waits is staged[since:held]. It goes to out[line + since:line + held], where a line starts at out[line].
    since = held = line_offset(out, np.int64(0))
    line = -held
    for event in range(events):
        if event + 2 * near < events:
            for i in range(part[event + 2 * near]):
                prefetch_read(passed, _start(of_event[back - i, event + 2 * near], passed.size))
        if event + near < events:
            for i in range(whole[event + near]):
                start = np.int64(of_event[i, event + near] & _START)
                if start < ids.size:
                    prefetch_read(live, start)
                else:
                    prefetch_read(step_ids, start - ids.size)
            for i in range(part[event + near]):
                slot = np.int64(passed[_start(of_event[back - i, event + near], passed.size)])
                prefetch_read(ids, slot)
                prefetch_read(ids, slot + LANES)
                prefetch_read(ids, slot + 2 * LANES)
        if ends[event] != line + held and whole[event] + part[event]:
            since, held, line = _write_lines(staged, since, held, out, line, streaming)
            _write_ids(staged, since, held, out, line)
            since = held = line_offset(out, ends[event])
            line = ends[event] - held
        for i in range(whole[event]):
            start, length = np.int64(of_event[i, event] & _START), np.int64(of_event[i, event] >> _LENGTH)
            ends[event] += length
            source = live
            if start >= ids.size:
                source = step_ids
                start -= ids.size
            since, held, line = _append(source, start, length, staged, since, held, most, out, line, streaming)
        for i in range(part[event]):
            start, length = np.int64(of_event[back - i, event] & _START), np.int64(of_event[back - i, event] >> _LENGTH)
            ends[event] += length
            if start < passed.size:
                for each in range(start, start + length):
                    if held > most:
                        since, held, line = _write_lines(staged, since, held, out, line, streaming)
                    staged[held] = ids[np.int64(passed[each])]
                    held += 1
                continue
            start -= passed.size
            slot = np.int64(passed[start])
            while length > 0:
                if held > most:
                    since, held, line = _write_lines(staged, since, held, out, line, streaming)
                start += 1
                length += held
                held = spread_word(ids, slot, passed[start], staged, held)
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
def _start(run, size):
    """Where a run at the back begins in `passed`, which has this size."""
    start = np.int64(run & _START)
    return start if start < size else start - size


@inlined
def _append(source, start, length, staged, since, held, most, out, line, streaming):
    """Have source[start:start + length] follow what waits. Returns what waits then.

    The source has at least 64 elements more.
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
        copy_line(source, start, staged, held)
        return since, held + length, line
    if held > most:
        since, held, line = _write_lines(staged, since, held, out, line, streaming)
    for at in range(0, _SHORT, LANES):  # no branch: how many lines it takes is hard to foresee
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
