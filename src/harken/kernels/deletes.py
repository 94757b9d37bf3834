"""Deleting: the slots of a subscription are found by its number and marked in a bitmap."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel


@kernel
def bury(ids, slots, numbers, dead):
    """Set the bits of all slots of these subscriptions; `slots` are sorted by their ids. Returns how many were set."""
    found = 0
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
            bit = np.uint64(1) << np.uint64(slot & 63)
            if not dead[slot >> 6] & bit:
                dead[slot >> 6] |= bit
                found += 1
            low += 1
    return found
