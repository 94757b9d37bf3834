"""Copying the runs of ids that clusters have for each event of a chunk.

The runs of an event follow each other, and mostly those of the next event follow them: what is written is one stream.
It is written line by line, each line once and as a whole. What is short, or has to be spread first, waits until there
is more of it. Were each run written by itself, the lines that two runs share would be fetched from memory first, and
lines of which a part is in the cache could not be written past it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.deletes import Deleted
from harken.kernels.frozen import thawing
from harken.kernels.runs import Runs
from harken.kernels.stages import Batch
from harken.kernels.vector import (
    LANES,
    ROWS,
    borrowed,
    copy_line,
    line_offset,
    pointer,
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


class RunCopying(NamedTuple):
    """What copying runs needs."""

    runs: Runs
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    """By event of a chunk: where its ids end so far."""
    staged: NDArray[np.int32]
    """Room for ids that wait."""
    cached: int
    """The ids of a chunk that has more than this are written past the cache."""


_thawed, _thawed_deleted, _thawed_batch = thawing(RunCopying), thawing(Deleted), thawing(Batch)


@inner
def copy_runs(copying, gone, batch, codes, out, first, events):
    """A stage: append the runs to their events' ids.

    Whole runs are copied from the ids of all slots or of those that are not deleted; what passed a comparison, from the
    ids of all slots. Streaming, lines go past the cache: a line that is written
    completely need not be read first, and what does not fit into the cache anyway does not drive out what is needed
    there.
    """
    given, deleted, offsets = _thawed(copying), _thawed_deleted(gone), _thawed_batch(batch).offsets
    runs = given.runs
    streaming = offsets[first + events] - offsets[first] > given.cached
    of_event, whole, part, passed = runs.of_event, pointer(runs.whole), pointer(runs.part), pointer(runs.passed)
    room, most = runs.passed.size, given.staged.size - 2 * ROWS
    ids, live = pointer(given.ids), pointer(deleted.live)
    ends, staged, out = pointer(given.ends), pointer(given.staged), pointer(out)
    back = of_event.shape[0] - 1
    runs_in_all = np.int64(0)
    for event in range(events):
        runs_in_all += whole[event] + part[event]
    near = 1 + _NEAR * events // (1 + runs_in_all)
    # What waits is staged[since:held]. It goes to out[line + since:line + held], where a line starts at out[line].
    since = held = line_offset(out, np.int64(0))
    line = -held
    for event in range(events):
        if event + 2 * near < events:
            for i in range(part[event + 2 * near]):
                prefetch_read(passed, _start(of_event[back - i, event + 2 * near], room))
        if event + near < events:
            for i in range(whole[event + near]):
                prefetch_read(live, np.int64(of_event[i, event + near] & _START))
            for i in range(part[event + near]):
                slot = np.int64(passed[_start(of_event[back - i, event + near], room)])
                prefetch_read(ids, slot)
                prefetch_read(ids, slot + LANES)
                prefetch_read(ids, slot + 2 * LANES)
        if ends[event] != line + held and whole[event] + part[event]:
            _write_all(staged, since, held, out, line, streaming)
            since = held = line_offset(out, ends[event])
            line = ends[event] - held
        for i in range(whole[event]):
            start, length = np.int64(of_event[i, event] & _START), np.int64(of_event[i, event] >> _LENGTH)
            ends[event] += length
            since, held, line = _append(live, start, length, staged, since, held, most, out, line, streaming)
        for i in range(part[event]):
            start, length = np.int64(of_event[back - i, event] & _START), np.int64(of_event[back - i, event] >> _LENGTH)
            ends[event] += length
            if start < room:
                for each in range(start, start + length):
                    if held > most:
                        since, held, line = _write_full(staged, since, held, out, line, streaming)
                    staged[held] = ids[np.int64(passed[each])]
                    held += 1
                continue
            start -= room
            slot = np.int64(passed[start])
            while length > 0:
                if held > most:
                    since, held, line = _write_full(staged, since, held, out, line, streaming)
                start += 1
                length += held
                held = spread_word(ids, slot, passed[start], staged, held)
                length -= held
                slot += ROWS
    _write_all(staged, since, held, out, line, streaming)
    return np.int64(0)


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
        since, held, line = _write_full(staged, since, held, out, line, streaming)
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


@inner
def _write_full(staged, since, held, out, line, streaming):
    """The same where it is rare: so it stands in the machine code once."""
    return _write_lines(staged, since, held, out, line, streaming)


@inner
def _write_all(staged, since, held, out, line, streaming):
    """Write all that waits."""
    since, held, line = _write_lines(staged, since, held, out, line, streaming)
    _write_ids(staged, since, held, out, line)


@inlined
def _write_ids(staged, since, held, out, line):
    """Write the ids that wait, one by one: nothing before and behind them is touched."""
    for lane in range(since, held):
        out[line + lane] = staged[lane]
