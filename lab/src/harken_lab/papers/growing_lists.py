"""The arrays of kernels/lists.py: grown when kernels run out of room, compacted when moved lists left gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.kernels.lists import LIST_STATES, STEP, TOP, WASTED, ListTable
from harken_lab.papers.labelled_rows import grown, longer

_LEAST_GROWTH = 64


class GrowingLists:
    """Lists of numbers, by number."""

    table: ListTable
    """The arrays for kernels. Invalid after the next change."""

    def __init__(self, step: int = 0) -> None:
        """`step` is how many cells a full list gets; 0 to double its room."""
        self._step = step
        self.clear()

    def clear(self) -> None:
        """Remove all lists."""
        self._grown_at = -1
        self.table = ListTable(
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            self._state(0),
        )

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.table)

    def ensure(self, lists: int) -> None:
        """Ensure that there are at least this many lists; new ones are empty."""
        table = self.table
        if lists > len(table.starts):
            size = grown(len(table.starts), lists)
            self.table = table._replace(
                starts=longer(table.starts, size, 0),
                sizes=longer(table.sizes, size, 0),
                rooms=longer(table.rooms, size, 0),
            )

    def fill(self, lists: int, which: NDArray[np.integer], values: NDArray[np.int32]) -> None:
        """Replace all lists: each value goes to the list that `which` has for it, without gaps between lists.

        Within a list the values keep their order.
        """
        sizes = np.bincount(which, minlength=lists).astype(np.int32)
        starts = np.cumsum(sizes, dtype=np.int64) - sizes
        cells = np.ascontiguousarray(values[np.argsort(which, kind="stable")], np.int32)
        self.table = ListTable(starts, sizes, sizes.copy(), cells, self._state(len(cells)))

    def _state(self, top: int) -> NDArray[np.int64]:
        state = np.zeros(LIST_STATES, np.int64)
        state[[TOP, STEP]] = top, self._step
        return state

    def grow(self) -> None:
        """Make room after a kernel ran out of it: enough to move the longest list, and more if it ran out again."""
        top, spare = int(self.table.state[TOP]), self._spare
        is_repeated, self._grown_at = top == self._grown_at, top
        enough = 2 * int(self.table.rooms.max(initial=0)) + _LEAST_GROWTH
        self.reserve(max(enough, 2 * spare) if is_repeated else enough)

    def reserve(self, cells: int) -> None:
        """Ensure this many free cells: by closing gaps if there are many, else by adding cells."""
        table = self.table
        if self._spare >= cells:
            return
        if 2 * table.state[WASTED] > table.state[TOP]:
            self._close_up()
        if self._spare < cells:
            size = grown(len(table.cells), int(table.state[TOP]) + cells)
            self.table = table._replace(cells=longer(table.cells, size, 0))

    @property
    def _spare(self) -> int:
        """The free cells after all lists."""
        return len(self.table.cells) - int(self.table.state[TOP])

    def _close_up(self) -> None:
        table = self.table
        rooms = table.rooms.astype(np.int64)
        starts = np.cumsum(rooms) - rooms
        source = np.repeat(table.starts - starts, rooms) + np.arange(rooms.sum())
        table.cells[: len(source)] = table.cells[source]
        table.starts[:] = starts
        table.state[TOP], table.state[WASTED] = len(source), 0
