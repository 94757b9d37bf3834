"""Successor sets that are computed ahead: which ones a change makes void, and computing them (Gryphon, section 5)."""

from __future__ import annotations

from harken.kernels.compile import kernel
from harken_lab.papers.kernels.matching_tree_kernels import (
    BY_STAR,
    KIND,
    LEAF_OF,
    MORE,
    NONE,
    PARENT,
    UNUSED,
)
from harken_lab.papers.kernels.matching_tree_search import VALID_FOR, VERSION, is_in_run, prepare

SEEN, PASSED, CUT_OFF = 1, 2, 4
"""Marks of a node: it is on a path, a path goes through its *-edge, its run begins elsewhere now."""


@kernel
def touch_paths(tree, rows, marks, touched):
    """Write the nodes on the paths of rows, each once, and mark them. Returns how many there are."""
    count = 0
    for i in range(rows.size):
        entry = tree.of_rows[rows[i]]
        while entry != NONE:
            node = tree.entries[entry, LEAF_OF]
            while node != NONE and not marks[node] & SEEN:
                marks[node] |= SEEN
                touched[count] = node
                count += 1
                parent = tree.nodes[node, PARENT]
                if parent != NONE and tree.edges[node] == BY_STAR:
                    marks[parent] |= PASSED
                node = parent
            entry = tree.entries[entry, MORE]
    return count


@kernel
def void_reaching(tree, successors, marks):
    """Make the sets void of all nodes whose run has a mark that says so, or that have one themselves."""
    lists = successors.lists
    for node in range(tree.nodes.shape[0]):
        if tree.nodes[node, KIND] == UNUSED or lists[node, VALID_FOR] != successors.state[VERSION]:
            continue
        above = node
        is_void = marks[node] & CUT_OFF
        while not is_void and is_in_run(tree, above):
            above = tree.nodes[above, PARENT]
            is_void = marks[above] & (PASSED | CUT_OFF)
        if is_void:
            lists[node, VALID_FOR] = 0


@kernel
def complete(tree, successors, first):
    """Compute all void sets, from a node on. Returns the first node without room, or the end."""
    for node in range(first, tree.nodes.shape[0]):
        is_void = successors.lists[node, VALID_FOR] != successors.state[VERSION]
        if is_void and tree.nodes[node, KIND] != UNUSED and not prepare(tree, successors, node):
            return node
    return tree.nodes.shape[0]
