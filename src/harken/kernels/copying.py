"""Copies the runs of ids that clusters have for each event of a chunk.

The runs of an event are written behind each other, mostly followed by those of the next event: one stream of whole
cache lines, each written once. Ids of short runs, and of slots that passed a comparison, are staged until they fill a
line. If each run were written by itself, the lines that two runs share would be fetched from memory first, and lines
that are partly in the cache could not be written past it.
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
"""Prefetch distance for ids, in runs, but at least one event; twice that for `passed`."""
_SHORT = 64
"""Runs of at most this many ids are staged."""
_LENGTH = np.uint64(32)
_START = np.uint64(0xFFFF_FFFF)


class RunCopying(NamedTuple):
    """The arrays of `copy_runs`."""

    runs: Runs
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    """By event of a chunk: where its ids end so far."""
    staged: NDArray[np.int32]
    """Room for ids that do not fill a line yet."""
    cached: int
    """Chunks with more ids than this are written past the cache."""


_thawed, _thawed_deleted, _thawed_batch = thawing(RunCopying), thawing(Deleted), thawing(Batch)


@inner
def copy_runs(copying, deletions, batch, codes, out, first, events):
    """A stage: append the runs to their events' ids.

    Whole runs are copied from `live`; slots that passed a comparison, from the ids of all slots. When streaming, lines
    are written past the cache: a whole line need not be read first, and output that exceeds the cache does not evict
    anything from it.
    """
    given, deleted, offsets = _thawed(copying), _thawed_deleted(deletions), _thawed_batch(batch).offsets
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
    # Staged ids are staged[since:filled], to be written to out[line + since:line + filled]; a line starts at out[line].
    since = filled = line_offset(out, np.int64(0))
    line = -filled
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
        if ends[event] != line + filled and whole[event] + part[event]:
            _write_all(staged, since, filled, out, line, streaming)
            since = filled = line_offset(out, ends[event])
            line = ends[event] - filled
        for i in range(whole[event]):
            start, length = np.int64(of_event[i, event] & _START), np.int64(of_event[i, event] >> _LENGTH)
            ends[event] += length
            since, filled, line = _append(live, start, length, staged, since, filled, most, out, line, streaming)
        for i in range(part[event]):
            start, length = np.int64(of_event[back - i, event] & _START), np.int64(of_event[back - i, event] >> _LENGTH)
            ends[event] += length
            if start < room:
                for each in range(start, start + length):
                    if filled > most:
                        since, filled, line = _write_full(staged, since, filled, out, line, streaming)
                    staged[filled] = ids[np.int64(passed[each])]
                    filled += 1
                continue
            start -= room
            slot = np.int64(passed[start])
            while length > 0:
                if filled > most:
                    since, filled, line = _write_full(staged, since, filled, out, line, streaming)
                start += 1
                length += filled
                filled = spread_word(ids, slot, passed[start], staged, filled)
                length -= filled
                slot += ROWS
    _write_all(staged, since, filled, out, line, streaming)
    return np.int64(0)


@kernel
def repeat_lines(source, out):
    """Fill the whole lines of `out` with those of a source, repeatedly and past the cache. Both start at a line."""
    source, out = borrowed(source), borrowed(out)
    at = np.int64(0)
    for to in range(0, out.size - LANES + 1, LANES):
        stream_line(source, at, out, to)
        at += LANES
        if at + LANES > source.size:
            at = np.int64(0)


@inlined
def _start(run, size):
    """Where a run of passed slots begins in `passed`, which has this size."""
    start = np.int64(run & _START)
    return start if start < size else start - size


@inlined
def _append(source, start, length, staged, since, filled, most, out, line, streaming):
    """Append source[start:start + length] to the staged ids. Returns the new `since`, `filled` and `line`.

    The source has at least 64 elements more.
    """
    if length > _SHORT:
        begun = (LANES - filled) & (LANES - 1)
        copy_line(source, start, staged, filled)
        since, filled, line = _write_lines(staged, since, filled + begun, out, line, streaming)
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
        copy_line(source, start, staged, filled)
        return since, filled + length, line
    if filled > most:
        since, filled, line = _write_full(staged, since, filled, out, line, streaming)
    for at in range(0, _SHORT, LANES):  # no branch: the number of lines is unpredictable
        copy_line(source, start + at, staged, filled + at)
    return since, filled + length, line


@inlined
def _write_lines(staged, since, filled, out, line, streaming):
    """Write the staged ids that fill lines. Returns the new `since`, `filled` and `line`."""
    done = np.int64(0)
    if since and filled >= LANES:
        _write_ids(staged, since, np.int64(LANES), out, line)
        since, done = np.int64(0), np.int64(LANES)
    while done + LANES <= filled:
        if streaming:
            stream_line(staged, done, out, line + done)
        else:
            copy_line(staged, done, out, line + done)
        done += LANES
    copy_line(staged, done, staged, 0)
    return since, filled - done, line + done


@inner
def _write_full(staged, since, filled, out, line, streaming):
    """`_write_lines`, not inlined: for rare calls, which then share one copy of the machine code."""
    return _write_lines(staged, since, filled, out, line, streaming)


@inner
def _write_all(staged, since, filled, out, line, streaming):
    """Write all staged ids."""
    since, filled, line = _write_lines(staged, since, filled, out, line, streaming)
    _write_ids(staged, since, filled, out, line)


@inlined
def _write_ids(staged, since, filled, out, line):
    """Write staged ids one by one: nothing before and behind them is touched."""
    for lane in range(since, filled):
        out[line + lane] = staged[lane]
