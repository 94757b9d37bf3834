"""Strings picked out of many: those of some numbers, behind each other, as Arrow has them.

Most ids are shorter than 16 bytes. So they are copied 16 bytes at a time, whatever is behind them: the next one is
written over that.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel
from harken.kernels.vector import borrowed, copy_16, prefetch_read

PADDING = 16
"""Bytes that have to be there behind the last one that is written."""
_AHEAD = 16
"""Strings that are asked of memory before they are needed: they lie anywhere."""


@kernel
def pick_ends(offsets, numbers, ends):
    """Write where each string ends when those of these numbers lie behind each other. Returns how long they are."""
    known = borrowed(offsets)
    end = np.int64(0)
    ends[0] = 0
    for place in range(len(numbers)):
        if place + _AHEAD < len(numbers):
            prefetch_read(known, np.int64(numbers[place + _AHEAD]))
        number = numbers[place]
        end += known[number + 1] - known[number]
        ends[place + 1] = end
    return end


@kernel
def pick_bytes(data, offsets, numbers, ends, out):
    """Copy the strings of these numbers to where they belong."""
    source, known, target = borrowed(data), borrowed(offsets), borrowed(out)
    last = len(data) - PADDING
    for place in range(len(numbers)):
        if place + _AHEAD < len(numbers):
            prefetch_read(source, known[numbers[place + _AHEAD]])
        start, at, end = known[numbers[place]], np.int64(ends[place]), np.int64(ends[place + 1])
        while at < end and start <= last:
            copy_16(source, start, target, at)
            start += PADDING
            at += PADDING
        for step in range(end - at):  # what stands so near the end of the data that 16 bytes would go beyond it
            target[at + step] = source[start + step]
