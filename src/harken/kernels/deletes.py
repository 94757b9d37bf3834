"""Deleted slots: a bitmap, and the ids of the slots that are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inlined, inner, kernel
from harken.kernels.vector import NO_BITS, ONE_BIT, ROWS, first_bits, ones, spread_word

NONE_DELETED, MARKED, COMPACT = range(3)
"""States of `Deleted`: nothing is deleted; a bitmap marks what is; the ids of the other slots are listed as well."""


class Deleted(NamedTuple):
    """The deleted slots of an index.

    While they are only marked, no run can be copied as it is: all of its slots are compared with the bitmap. Once
    compact, a run of slots is a run of `live`.
    """

    state: int
    bitmap: NDArray[np.uint64]
    """A bit for every slot that is deleted."""
    before: NDArray[np.int32]
    """If compact, by word of the bitmap: the number of slots deleted before it."""
    live: NDArray[np.int32]
    """If compact, the ids of the slots that are not deleted, padded by 64; else of all slots."""


@inner
def is_dead(dead, slot):
    """Whether a slot is deleted."""
    return (dead[slot >> 6] >> np.uint64(slot & 63)) & ONE_BIT != NO_BITS


@inner
def live_word(dead, slot):
    """The bits of 64 slots from this one on that are not deleted."""
    shift = np.uint64(slot & 63)
    word = dead[slot >> 6] >> shift
    if shift != NO_BITS:
        word |= dead[(slot >> 6) + 1] << (np.uint64(64) - shift)
    return ~word


@inlined
def live_place(dead, before, slot):
    """Where a slot is, or would be, among those that are left."""
    return slot - before[slot >> 6] - ones(dead[slot >> 6] & first_bits(slot & 63))


@kernel
def bury(ids, slots, numbers, dead):
    """Set the bits of all slots of these subscriptions; `slots` are sorted by their ids. Returns how many were set."""
    count = 0
    for i in range(numbers.size):
        low, high = 0, slots.size
        while low < high:
            middle = (low + high) >> 1
            if ids[slots[middle]] < numbers[i]:
                low = middle + 1
            else:
                high = middle
        while low < slots.size and ids[slots[low]] == numbers[i]:
            slot = slots[low]
            bit = ONE_BIT << np.uint64(slot & 63)
            if not dead[slot >> 6] & bit:
                dead[slot >> 6] |= bit
                count += 1
            low += 1
    return count


@kernel
def take_out(ids, dead, size, before, live):
    """Write the ids of the first `size` slots to `live` without the deleted ones; `before` is filled for `Deleted`.

    `live` has room for 64 more. Returns the number of ids written.
    """
    end = np.int64(0)
    for word in range(before.size):
        first = min(word * ROWS, size)
        before[word] = first - end
        if first < size:
            end = spread_word(ids, first, ~dead[word] & first_bits(size - first), live, end)
    return end
