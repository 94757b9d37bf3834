"""The successor sets of a matching tree (Gryphon, PODC 1999, section 5): computed when needed, or ahead and maintained.

The paper computes all sets beforehand. A change then makes those sets void that may reach what changed, and they are
computed again at once. The paths of the rows that come or go tell which: everything that changes lies on them.

- Say a path goes through the *-edge of a node. The sets of all nodes that result edges lead to from there may reach the
  changed part of the path, and no other sets can.
- A node that comes between two others, or goes, begins or ends the runs of the nodes that result edges lead to from the
  target of its *-edge.

To find these nodes, a change walks up the run of every node. So it costs O(nodes), little for each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harken_lab.papers.kernels.matching_tree_kernels import COLUMN, KIND, NONE, STAR, UNUSED, TreeNodes
from harken_lab.papers.kernels.matching_tree_search import (
    IS_FULL,
    SIZE,
    USED,
    VALID_FOR,
    VERSION,
    WIDEST,
    Successors,
)
from harken_lab.papers.kernels.matching_tree_search import STATES as SUCCESSOR_STATES
from harken_lab.papers.kernels.successor_upkeep import CUT_OFF, complete, touch_paths, void_reaching
from harken_lab.papers.labelled_rows import grown, longer

_LEAST_GARBAGE = 4_096


class SuccessorCache:
    """The successors computed so far, and room for more."""

    def __init__(self) -> None:
        self._state = np.zeros(SUCCESSOR_STATES, np.int64)
        self._state[VERSION] = 1
        self._arrays = Successors(
            np.zeros((0, 3), np.int32),
            np.empty(0, np.int32),
            np.zeros(0, np.uint32),
            np.zeros(0, np.uint32),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            self._state,
        )

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._arrays)

    def stats(self) -> dict[str, int]:
        """The numbers of successors, of nodes that have some, and of nodes that were cut off."""
        sizes = self._arrays.lists[self._arrays.lists[:, VALID_FOR] == self._state[VERSION], SIZE]
        counts = int(sizes[sizes > 0].sum()), int((sizes > 0).sum()), int((sizes < 0).sum())
        return dict(zip(("successors", "successor_sets", "cut_sets"), counts, strict=True))

    # What the tree tells about changes

    def inserted(self, tree: TreeNodes, rows: NDArray[np.int32]) -> None:
        """Rows have entered the tree."""
        self.clear()

    def deleting(self, tree: TreeNodes, rows: NDArray[np.int32]) -> None:
        """Rows are about to leave the tree."""

    def deleted(self, tree: TreeNodes) -> None:
        """These rows have left."""
        self.clear()

    def rebuilt(self, tree: TreeNodes) -> None:
        """The tree has changed in other ways."""
        self.clear()

    def clear(self) -> None:
        """Invalidate all successors."""
        self._state[USED] = 0
        self._state[VERSION] += 1
        if self._state[VERSION] > np.iinfo(np.int32).max:
            self._arrays.lists[:] = 0
            self._state[VERSION] = 1

    def arrays(self, nodes: int, columns: int) -> Successors:
        """The arrays for this many nodes and columns, enlarged if they were full."""
        arrays = self._arrays
        if nodes > len(arrays.lists):
            arrays = arrays._replace(
                lists=longer(arrays.lists, nodes, 0),
                work=np.empty(nodes + 1, np.int32),
                pending=np.empty(nodes + 1, np.int32),
            )
        if columns > len(arrays.low):
            arrays = arrays._replace(low=np.zeros(columns, np.uint32), high=np.zeros(columns, np.uint32))
        if self._state[IS_FULL] or not len(arrays.cells):
            size = grown(len(arrays.cells), int(self._state[USED]) + 16 * WIDEST)
            arrays = arrays._replace(cells=longer(arrays.cells, size, 0))
            self._state[IS_FULL] = 0
        self._arrays = arrays
        return arrays


class AheadSuccessors(SuccessorCache):
    """All successors, computed ahead and maintained by changes."""

    def __init__(self) -> None:
        super().__init__()
        self._marks = np.zeros(0, np.uint8)
        self._touched = np.empty(0, np.int32)
        self._stars = np.empty(0, np.int32)
        self._columns = 0
        self._live = 0
        """The number of successors when all were last computed."""

    def arrays(self, nodes: int, columns: int) -> Successors:
        self._columns = max(self._columns, columns)
        return super().arrays(nodes, self._columns)

    def inserted(self, tree: TreeNodes, rows: NDArray[np.int32]) -> None:
        successors = self._fitting(tree)
        touched = self._touch(tree, rows)
        is_new = successors.lists[touched, VALID_FOR] != self._state[VERSION]
        if is_new.any():
            stars = tree.nodes[touched[is_new], STAR]
            self._marks[stars[stars != NONE]] |= CUT_OFF
            void_reaching(tree, successors, self._marks)
        self._complete(tree)

    def deleting(self, tree: TreeNodes, rows: NDArray[np.int32]) -> None:
        self._fitting(tree)
        self._touched = self._touch(tree, rows)
        self._stars = tree.nodes[self._touched, STAR].copy()

    def deleted(self, tree: TreeNodes) -> None:
        successors = self._fitting(tree)
        is_gone = tree.nodes[self._touched, KIND] == UNUSED
        if is_gone.any():
            successors.lists[self._touched[is_gone], VALID_FOR] = 0
            stars = self._stars[is_gone]
            self._marks[stars[stars != NONE]] |= CUT_OFF
            void_reaching(tree, successors, self._marks)
        self._complete(tree)

    def rebuilt(self, tree: TreeNodes) -> None:
        self.clear()
        self._live = 0
        self._complete(tree)

    def _fitting(self, tree: TreeNodes) -> Successors:
        columns = int(tree.nodes[:, COLUMN].max(initial=NONE)) + 1
        if len(tree.nodes) > len(self._marks):
            self._marks = np.zeros(len(tree.nodes), np.uint8)
        return self.arrays(len(tree.nodes), columns)

    def _touch(self, tree: TreeNodes, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Mark what the paths of rows tell. Returns the nodes on them."""
        touched = np.empty(len(tree.nodes), np.int32)
        self._marks[:] = 0
        return touched[: int(touch_paths(tree, rows, self._marks, touched))]

    def _complete(self, tree: TreeNodes) -> None:
        """Compute the sets that are void; all sets if most of the room is taken by void ones."""
        if self._state[USED] > 2 * self._live + _LEAST_GARBAGE:
            self.clear()
            self._live = 0
        is_whole, done = self._state[USED] == 0, 0
        while done < len(tree.nodes):
            done = complete(tree, self._fitting(tree), done)
            if done < len(tree.nodes):
                self._state[IS_FULL] = 1
        if is_whole:
            self._live = int(self._state[USED])
