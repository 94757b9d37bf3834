"""Many lists of numbers in one array. Each can grow: a full one moves to a place with twice the room or, as in ToPSS
(section 3.3), with room for a constant number of elements more.

A kernel never enlarges an array: it checks by `needed` and `has_room`, and stops if there is no room. Its caller makes
room (growing_lists.py) and calls it again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel

TOP, WASTED, STEP, LIST_STATES = range(4)
_LEAST_ROOM = 2


class ListTable(NamedTuple):
    """List i is `cells[starts[i] : starts[i] + sizes[i]]`."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    rooms: NDArray[np.int32]
    """Capacity of each list, in cells."""
    cells: NDArray[np.int32]
    state: NDArray[np.int64]
    """The end of all lists, how many cells before it are unused, and how many a full list gets; 0 to double it."""


@kernel
def needed(lists, which):
    """How many new cells it takes to append one element to a list."""
    room = lists.rooms[which]
    if lists.sizes[which] < room:
        return 0
    return room + lists.state[STEP] if lists.state[STEP] else max(2 * room, _LEAST_ROOM)


@kernel
def needed_first(lists):
    """How many new cells the first element of a list takes."""
    return max(lists.state[STEP], _LEAST_ROOM)


@kernel
def has_room(lists, cells):
    """Whether there are this many free cells."""
    return lists.state[TOP] + cells <= lists.cells.size


@kernel
def append_to(lists, which, value):
    """Append to a list, for which there is room."""
    size = lists.sizes[which]
    more = needed(lists, which)
    if more:
        start, top = lists.starts[which], lists.state[TOP]
        for i in range(size):
            lists.cells[top + i] = lists.cells[start + i]
        lists.state[WASTED] += lists.rooms[which]
        lists.state[TOP] += more
        lists.starts[which] = top
        lists.rooms[which] = more
    lists.cells[lists.starts[which] + size] = value
    lists.sizes[which] = size + 1


@inner
def insert_at(lists, which, place, value):
    """Insert a value before the one at a place, into a list for which there is room."""
    append_to(lists, which, value)
    start = lists.starts[which]
    for at in range(start + lists.sizes[which] - 1, start + place, -1):
        lists.cells[at] = lists.cells[at - 1]
    lists.cells[start + place] = value


@inner
def remove_at(lists, which, place):
    """Remove the value at a place. The values behind it move up."""
    start = lists.starts[which]
    for at in range(start + place, start + lists.sizes[which] - 1):
        lists.cells[at] = lists.cells[at + 1]
    lists.sizes[which] -= 1


@kernel
def remove_from(lists, which, value):
    """Remove a value from a list that has it. The last element takes its place."""
    start, size = lists.starts[which], lists.sizes[which]
    at = start + size - 1
    while lists.cells[at] != value:
        at -= 1
    lists.cells[at] = lists.cells[start + size - 1]
    lists.sizes[which] = size - 1


@kernel
def release(lists, which):
    """Free the cells of an empty list."""
    lists.state[WASTED] += lists.rooms[which]
    lists.rooms[which] = 0
