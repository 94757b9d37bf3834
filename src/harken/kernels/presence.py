"""Which events of a chunk have a value, column by column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined
from harken.kernels.frozen import Grid
from harken.kernels.vector import NO_BITS, borrowed, unlike


class PresentBits(NamedTuple):
    """Which events have a value, and in which columns any of them has."""

    bits: Grid[np.uint64]
    """For every column a bit for each event that has a value there and is not skipped.

    The row behind the last column has a bit for every event that is not skipped.
    """
    any_event: NDArray[np.bool_]
    """By column: whether any event has a value."""


@inlined
def mark_present(codes, has_value, first, events, skipped, presence):
    """Note which of `events` events from `first` on have a value. Columns without a value are not read."""
    columns, width = codes.shape
    bits, any_event, codes = presence.bits, presence.any_event, borrowed(codes)
    words = (events + 63) >> 6
    bits[columns, :words] = 0
    for event in range(events):
        bits[columns, event >> 6] |= np.uint64(not skipped[first + event]) << np.uint64(event & 63)
    for column in range(columns):
        if not has_value[column]:
            bits[column, :words], any_event[column] = 0, False
            continue
        all_bits = NO_BITS
        for word in range(events >> 6):
            at = column * width + first + (word << 6)
            bits[column, word] = unlike(codes, at, at, NO_BITS) & bits[columns, word]
            all_bits |= bits[column, word]
        if events & 63:
            last = NO_BITS
            for event in range(events & ~63, events):
                last |= np.uint64(codes[column, first + event] != 0) << np.uint64(event & 63)
            bits[column, words - 1] = last & bits[columns, words - 1]
            all_bits |= bits[column, words - 1]
        any_event[column] = all_bits != NO_BITS
