"""Numbers that are recycled: freed numbers are reused before new ones are made."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import inner


@inner
def take_number(free, state, at):
    """Take a number. `state[at]` is how many are free, `state[at + 1]` the next number if none is free."""
    if state[at]:
        state[at] -= 1
        return free[state[at]]
    state[at + 1] += 1
    return np.int32(state[at + 1] - 1)


@inner
def give_number_back(free, state, at, number):
    """Free a number. `free` has room for all numbers."""
    free[state[at]] = number
    state[at] += 1
