"""Picks strings by number and concatenates them, as Arrow stores them.

Most ids are shorter than 16 bytes. So they are copied 16 bytes at a time, and the next string overwrites the excess.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel
from harken.kernels.vector import borrowed, copy_16, prefetch_read

PADDING = 16
"""Bytes of room behind the last string."""
_AHEAD = 16
"""Prefetch distance, in strings."""


@kernel
def pick_ends(offsets, numbers, ends):
    """Write where the string of each number ends, once they are concatenated. Returns their total length."""
    starts = borrowed(offsets)
    end = np.int64(0)
    ends[0] = 0
    for place in range(len(numbers)):
        if place + _AHEAD < len(numbers):
            prefetch_read(starts, np.int64(numbers[place + _AHEAD]))
        number = numbers[place]
        end += starts[number + 1] - starts[number]
        ends[place + 1] = end
    return end


@kernel
def pick_bytes(data, offsets, numbers, ends, out):
    """Copy the strings of these numbers behind each other. `ends` is from `pick_ends`."""
    source, starts, target = borrowed(data), borrowed(offsets), borrowed(out)
    last = len(data) - PADDING
    for place in range(len(numbers)):
        if place + _AHEAD < len(numbers):
            prefetch_read(source, starts[numbers[place + _AHEAD]])
        start, at, end = starts[numbers[place]], np.int64(ends[place]), np.int64(ends[place + 1])
        while at < end and start <= last:
            copy_16(source, start, target, at)
            start += PADDING
            at += PADDING
        for step in range(end - at):  # near the end of the data, where 16 bytes would go beyond it
            target[at + step] = source[start + step]
