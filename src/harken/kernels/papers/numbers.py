"""Numbers that are given out, come back, and are given out again before there are new ones."""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import kernel


@kernel
def take_number(free, state, at):
    """A number: `state[at]` are how many are free, and `state[at + 1]` is which comes next when none is."""
    if state[at]:
        state[at] -= 1
        return free[state[at]]
    state[at + 1] += 1
    return np.int32(state[at + 1] - 1)


@kernel
def give_number_back(free, state, at, number):
    """Have a number free again. `free` has room for all."""
    free[state[at]] = number
    state[at] += 1
