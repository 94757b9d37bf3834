"""The tree of Gryphon as arrays: nodes, edges between them, and the rows in its leaves (Aguilera et al., PODC 1999).

A node is a test of one column. *Examine* has an edge for each label of the equalities of rows below it. *Range* tests
whether the label lies in an interval, and has an edge for yes and one for no. Both may also have a *-edge, for rows
that do not depend on the test. *Factor* is an examination whose *-edge is for all labels without an edge of their own.

The first label of an examination and its edge are stored in the node, the others in one hash table for the whole tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel

NONE = -1
LAST_LABEL = 0xFFFF_FFFF
NO_LABEL = np.uint32(0)

UNUSED, LEAF, EXAMINE, RANGE, FACTOR = range(5)
"""The kinds of nodes."""
BY_STAR, BY_LABEL, BY_YES, BY_NO = range(4)
"""The kinds of edges."""

# Fields of a node. LOW and HIGH are labels: of an interval, or of the one edge that an examination stores.
COLUMN, KIND, STAR, YES, NO, LOW, HIGH, PARENT = range(8)
# Other uses of these fields. In an examination: the target of its edge, and how many edges are in the hash table.
# In a leaf: the first entry.
CHILD, OTHERS, FIRST = YES, NO, YES

KEY, END = range(2)
ROW, LEAF_OF, NEXT, BEFORE, MORE = range(5)
ROOT, NODES, LEAVES, TOP, FREE, HASHED, ENTRIES, ENTRY_TOP, ENTRY_FREE, STATES = range(10)

_LOW_BITS = 0xFFFF_FFFF
_SCATTER, _MIX = 0x1E37_79B1, 0x05EB_CA77


class TreeNodes(NamedTuple):
    """All nodes, each one row of an array, so that a visit reads one cache line."""

    nodes: NDArray[np.int32]
    labels: NDArray[np.uint32]
    """The same memory as `nodes`, for the fields that are labels."""
    edges: NDArray[np.int8]
    """The kind of the edge that leads to each node."""
    marks: NDArray[np.uint32]
    """The label of the edge that leads to each node, if it has one."""
    slots: NDArray[np.int64]
    """The hash table: node and label as one key, and the target of the edge. Its size is a power of two; never full."""
    entries: NDArray[np.int32]
    """A row in a leaf: row, leaf, next and previous entry in the leaf, next entry of the row."""
    of_rows: NDArray[np.int32]
    """The first entry of each row."""
    state: NDArray[np.int64]
    """The root, and counts and free lists of nodes, edges and entries."""


@kernel
def within(low, high, outer_low, outer_high):
    """Whether an interval lies in another. Both may be wrapped; label 0 is in neither."""
    if outer_low == 1 and outer_high == LAST_LABEL:
        return True
    begin = (np.int64(low) - np.int64(outer_low)) & _LOW_BITS
    length = (np.int64(high) - np.int64(low)) & _LOW_BITS
    return begin + length <= (np.int64(outer_high) - np.int64(outer_low)) & _LOW_BITS


@kernel
def beyond(low, high):
    """The complement of an interval, without label 0: its first label and its last."""
    first, last = np.int64(high) + 1, np.int64(low) - 1
    return np.uint32(first if first <= LAST_LABEL else 1), np.uint32(last if last > 0 else LAST_LABEL)


@kernel
def decided(low, high, test_low, test_high):
    """The edge of a range test that all labels of an interval take; the *-edge if they differ."""
    if within(low, high, test_low, test_high):
        return BY_YES
    if test_low == 1 and test_high == LAST_LABEL:
        return BY_STAR
    other_low, other_high = beyond(test_low, test_high)
    return BY_NO if within(low, high, other_low, other_high) else BY_STAR


@kernel
def _key(node, label):
    return np.int64(node) << 32 | np.int64(label)


@kernel
def _home(key, slots):
    """The home slot of a key. Products of 32 by 31 bits never overflow."""
    mixed = (key >> 32) * _SCATTER ^ (key & _LOW_BITS) * _MIX
    return (mixed ^ mixed >> 15 ^ mixed >> 32) & (slots.shape[0] - 1)


@kernel
def _slot(slots, key):
    """The slot that has the key, or the empty slot that it would take."""
    at = _home(key, slots)
    while slots[at, KEY] != key and slots[at, KEY] != NONE:
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@inner
def _vacate(slots, hole):
    """Empty a slot, and move up later ones that a search would no longer reach."""
    last = slots.shape[0] - 1
    at = (hole + 1) & last
    while slots[at, KEY] != NONE:
        if (at - _home(slots[at, KEY], slots)) & last >= (at - hole) & last:
            slots[hole, KEY], slots[hole, END] = slots[at, KEY], slots[at, END]
            hole = at
        at = (at + 1) & last
    slots[hole, KEY] = NONE


@kernel
def rehash(slots, larger):
    """Rehash all edges into a larger, empty table."""
    for at in range(slots.shape[0]):
        if slots[at, KEY] != NONE:
            to = _slot(larger, slots[at, KEY])
            larger[to, KEY], larger[to, END] = slots[at, KEY], slots[at, END]


@kernel
def hashed(slots, node, label):
    """The target of an edge in the hash table; NONE if the table has no such edge."""
    at = _slot(slots, _key(node, label))
    return slots[at, END] if slots[at, KEY] != NONE else np.int64(NONE)


@kernel
def labelled(tree, node, label):
    """The target of the edge of a label, or NONE. A missing value, label 0, has no edge."""
    if tree.labels[node, LOW] == label:
        return np.int64(tree.nodes[node, CHILD])
    return hashed(tree.slots, node, label) if tree.nodes[node, OTHERS] else np.int64(NONE)


@kernel
def _field(edge):
    """The field of a node for an edge without a label."""
    if edge == BY_STAR:
        return STAR
    return YES if edge == BY_YES else NO


@inner
def end_of(tree, node, edge, label):
    """The target of an edge of a node; NONE if there is no such edge."""
    if edge == BY_LABEL:
        return labelled(tree, node, label)
    return np.int64(tree.nodes[node, _field(edge)])


@kernel
def lead(tree, node, edge, label, child):
    """Point an edge of a node, or the root if it is NONE, to a child. The edge may exist already."""
    tree.nodes[child, PARENT], tree.edges[child], tree.marks[child] = node, edge, label
    if node == NONE:
        tree.state[ROOT] = child
    elif edge != BY_LABEL:
        tree.nodes[node, _field(edge)] = child
    elif tree.labels[node, LOW] == label:
        tree.nodes[node, CHILD] = child
    else:
        at = _slot(tree.slots, _key(node, label))
        if tree.slots[at, KEY] == NONE and tree.labels[node, LOW] == NO_LABEL:
            tree.labels[node, LOW], tree.nodes[node, CHILD] = label, child
            return
        if tree.slots[at, KEY] == NONE:
            tree.slots[at, KEY] = _key(node, label)
            tree.nodes[node, OTHERS] += 1
            tree.state[HASHED] += 1
        tree.slots[at, END] = child


@inner
def unlead(tree, node, edge, label):
    """Remove an edge."""
    if node == NONE:
        tree.state[ROOT] = NONE
    elif edge != BY_LABEL:
        tree.nodes[node, _field(edge)] = NONE
    elif tree.labels[node, LOW] == label:
        tree.labels[node, LOW], tree.nodes[node, CHILD] = NO_LABEL, NONE
    else:
        _vacate(tree.slots, _slot(tree.slots, _key(node, label)))
        tree.nodes[node, OTHERS] -= 1
        tree.state[HASHED] -= 1


@inner
def has_results(tree, node):
    """Whether a node has any edge besides the *-edge."""
    no_edge = NONE if tree.nodes[node, KIND] == RANGE else 0
    return tree.nodes[node, YES] != NONE or tree.nodes[node, NO] != no_edge


@inner
def new_node(tree, kind, column, low, high):
    """Make a node without edges. There is room for it."""
    node = tree.state[FREE]
    if node == NONE:
        node = tree.state[TOP]
        tree.state[TOP] += 1
    else:
        tree.state[FREE] = tree.nodes[node, STAR]
    is_range = kind == RANGE
    tree.nodes[node, COLUMN], tree.nodes[node, KIND] = column, kind
    tree.nodes[node, STAR], tree.nodes[node, YES], tree.nodes[node, NO] = NONE, NONE, NONE if is_range else 0
    tree.labels[node, LOW], tree.labels[node, HIGH] = low if is_range else NO_LABEL, high if is_range else NO_LABEL
    tree.state[NODES] += 1
    tree.state[LEAVES] += kind == LEAF
    return node


@inner
def free_node(tree, node):
    """Free a node to which no edge leads."""
    tree.state[NODES] -= 1
    tree.state[LEAVES] -= tree.nodes[node, KIND] == LEAF
    tree.nodes[node, KIND], tree.nodes[node, STAR] = UNUSED, tree.state[FREE]
    tree.state[FREE] = node


@kernel
def depth_of(tree, depths):
    """The number of nodes on the longest path from the root to a leaf. `depths` has a 0 for every node."""
    deepest = 0
    for node in range(tree.state[TOP]):
        if tree.nodes[node, KIND] == UNUSED:
            continue
        steps, at = 0, np.int64(node)
        while at != NONE and depths[at] == 0:
            steps += 1
            at = np.int64(tree.nodes[at, PARENT])
        depth = steps + (0 if at == NONE else depths[at])
        deepest = max(deepest, depth)
        at = np.int64(node)
        while at != NONE and depths[at] == 0:
            depths[at] = depth
            depth -= 1
            at = np.int64(tree.nodes[at, PARENT])
    return deepest
