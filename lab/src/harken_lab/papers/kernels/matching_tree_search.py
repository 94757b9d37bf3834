"""How an event searches Gryphon's tree (Aguilera et al., PODC 1999, sections 3 and 5), with successors or without.

Without successors, a search goes from a node to the target of the result's edge and to the target of the *-edge. With
successors, it goes to the target of the result's edge only. If the result has no edge, or the node is a leaf, the
search jumps: to the target of the *-edge, and to the *successors* of the node. Call the last unbroken stretch of result
edges that leads to a node its *run*. The successors stand for the *-edges of all nodes of the run. The results on the
run decide some tests below those *-edges, and these tests are skipped: a successor is the first node below whose test
is not decided, or a leaf.

Why this is right: let cover(n) be the leaves that a visit to node n has to reach, those below n and those below the
*-edges of its run. If n's test has a known result whose edge leads to c, then cover(n) = cover(c), because n has joined
the run. If the result has no edge, cover(n) is what lies below n's own *-edge, and the cover of all successors of n. So
a node n whose test is decided can be replaced by c, or by the target of its *-edge and its successors; either way every
leaf is reached exactly once. The successors of c are the successors of its parent and the target of the parent's
*-edge, replaced in this way.

Successors are computed when a search first needs them, and are valid until the tree changes. Or they are computed ahead
for all nodes, and again where a change may have touched them. A list that would be too long is not stored: the node is
cut off. It then does not stand for the *-edges of its run, so a search that visits it follows these at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.matching_tree_kernels import (
    BY_LABEL,
    BY_NO,
    BY_STAR,
    CHILD,
    COLUMN,
    EXAMINE,
    FACTOR,
    FIRST,
    HIGH,
    KIND,
    LEAF,
    LOW,
    NEXT,
    NO,
    NO_LABEL,
    NONE,
    OTHERS,
    PARENT,
    RANGE,
    ROOT,
    ROW,
    STAR,
    YES,
    beyond,
    decided,
    end_of,
    hashed,
    labelled,
    within,
)
from harken_lab.papers.kernels.row_table import holds

VERSION, USED, IS_FULL, STATES = range(4)
VALID_FOR, START, SIZE = range(3)
WIDEST = 64
"""The most successors of a node that are stored."""
_CUT = -1
_UNDECIDED = -2
_NO_ROOM = -2


class Successors(NamedTuple):
    """The successors of nodes, as far as searches needed them."""

    lists: NDArray[np.int32]
    """By node: the tree's version that its list is valid for, where the list starts, and its size; -1 if cut off."""
    cells: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    """Scratch: by column, the interval of labels that a node's run implies; 0 if it implies none."""
    work: NDArray[np.int32]
    pending: NDArray[np.int32]
    """Scratch: stacks for all nodes, of nodes whose successors are needed, and of candidates for successors."""
    state: NDArray[np.int64]
    """The version of the tree, how many cells are used, and whether they ran out."""


@kernel
def find(tree, rows, codes, labels, stack, first, out, offsets, examined):
    """Write the rows of all leaves that each event reaches, from `first` on. See `RowMatcher._find`.

    `labels` has room for a label a column, `stack` for all nodes. `rows` is the number of rows.
    """
    nodes, bounds, slots = tree.nodes, tree.labels, tree.slots
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < rows:
            return event
        for column in range(labels.size):
            labels[column] = codes[column, event]
        visited, size = 0, 0
        if tree.state[ROOT] != NONE:
            stack[0] = tree.state[ROOT]
            size = 1
        while size:
            size -= 1
            node = stack[size]
            visited += 1
            kind = nodes[node, KIND]
            if kind == LEAF:
                entry = nodes[node, FIRST]
                while entry != NONE:
                    out[end] = tree.entries[entry, ROW]
                    end += 1
                    entry = tree.entries[entry, NEXT]
                continue
            label = labels[nodes[node, COLUMN]]
            star = nodes[node, STAR]
            child = np.int64(NONE)
            if kind == RANGE:
                if holds(bounds[node, LOW], bounds[node, HIGH], label):
                    child = np.int64(nodes[node, YES])
                elif label != NO_LABEL:
                    child = np.int64(nodes[node, NO])
            elif bounds[node, LOW] == label:
                child = np.int64(nodes[node, CHILD])
            elif nodes[node, OTHERS]:
                child = hashed(slots, node, label)
            if star != NONE and (kind != FACTOR or child == NONE):
                stack[size] = star
                size += 1
            if child != NONE:
                stack[size] = child
                size += 1
        examined[event] = visited
        offsets[event + 1] = end
    return codes.shape[1]


@kernel
def find_with_successors(tree, successors, rows, codes, labels, stack, first, out, offsets, examined):
    """As `find`. Also stops if there is no room for successors, and sets IS_FULL."""
    nodes, bounds, slots, lists, cells = tree.nodes, tree.labels, tree.slots, successors.lists, successors.cells
    version = successors.state[VERSION]
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < rows:
            return event
        for column in range(labels.size):
            labels[column] = codes[column, event]
        visited, size = 0, 0
        if tree.state[ROOT] != NONE:
            stack[0] = tree.state[ROOT]
            size = 1
        while size:
            size -= 1
            node = stack[size]
            visited += 1
            if lists[node, VALID_FOR] != version and not prepare(tree, successors, node):
                successors.state[IS_FULL] = 1
                return event
            kind = nodes[node, KIND]
            if lists[node, SIZE] == _CUT:
                size = _push_next(tree, successors, nodes[node, PARENT], stack, size)
            child = np.int64(NONE)
            if kind == LEAF:
                entry = nodes[node, FIRST]
                while entry != NONE:
                    out[end] = tree.entries[entry, ROW]
                    end += 1
                    entry = tree.entries[entry, NEXT]
            else:
                label = labels[nodes[node, COLUMN]]
                if kind == RANGE:
                    if holds(bounds[node, LOW], bounds[node, HIGH], label):
                        child = np.int64(nodes[node, YES])
                    elif label != NO_LABEL:
                        child = np.int64(nodes[node, NO])
                elif bounds[node, LOW] == label:
                    child = np.int64(nodes[node, CHILD])
                elif nodes[node, OTHERS]:
                    child = hashed(slots, node, label)
            if child != NONE:
                stack[size] = child
                size += 1
            else:
                if nodes[node, STAR] != NONE:
                    stack[size] = nodes[node, STAR]
                    size += 1
                start = lists[node, START]
                for at in range(start, start + lists[node, SIZE]):
                    stack[size] = cells[at]
                    size += 1
        examined[event] = visited
        offsets[event + 1] = end
    return codes.shape[1]


@inner
def _push_next(tree, successors, node, stack, size):
    """Push the nodes that follow a node without a result: the target of its *-edge, and its successors."""
    if tree.nodes[node, STAR] != NONE:
        stack[size] = tree.nodes[node, STAR]
        size += 1
    start = successors.lists[node, START]
    for at in range(start, start + successors.lists[node, SIZE]):
        stack[size] = successors.cells[at]
        size += 1
    return size


@inner
def prepare(tree, successors, node):
    """Compute the successors of a node, and of the nodes that they depend on. Returns whether there was room."""
    successors.work[0] = node
    size = 1
    while size:
        missing = _gather(tree, successors, successors.work[size - 1])
        if missing == _NO_ROOM:
            return False
        if missing == NONE:
            size -= 1
        else:
            successors.work[size] = missing
            size += 1
    return True


@kernel
def _store(successors, node, size):
    successors.lists[node, VALID_FOR] = successors.state[VERSION]
    successors.lists[node, START], successors.lists[node, SIZE] = successors.state[USED], size
    successors.state[USED] += max(size, 0)


@inner
def is_in_run(tree, node):
    """Whether a result edge leads to a node, so that its run is not empty."""
    parent = tree.nodes[node, PARENT]
    return parent != NONE and tree.edges[node] != BY_STAR and tree.nodes[parent, KIND] != FACTOR


@inner
def _gather(tree, successors, node):
    """Compute the successors of a node. Returns NONE, _NO_ROOM, or a node whose successors are needed first."""
    if not is_in_run(tree, node):
        _store(successors, node, 0)
        return np.int64(NONE)
    parent = tree.nodes[node, PARENT]
    if successors.lists[parent, VALID_FOR] != successors.state[VERSION]:
        return np.int64(parent)
    if successors.state[USED] + WIDEST > successors.cells.size:
        return np.int64(_NO_ROOM)
    _record_run(tree, successors, node)
    outcome = _replace(tree, successors, node, parent)
    _clear_run(tree, successors, node)
    return outcome


@kernel
def _replace(tree, successors, node, parent):
    """As `_gather`, once the intervals that the run implies are recorded."""
    lists, pending = successors.lists, successors.pending
    size, count = _push_next(tree, successors, parent, pending, 0), 0
    while size:
        size -= 1
        other = pending[size]
        child = _decided_child(tree, successors, other)
        if child == _UNDECIDED:
            if count == WIDEST:
                _store(successors, node, _CUT)
                return np.int64(NONE)
            successors.cells[successors.state[USED] + count] = other
            count += 1
            continue
        if lists[other, VALID_FOR] != successors.state[VERSION]:
            return np.int64(other)
        if lists[other, SIZE] == _CUT:
            size = _push_next(tree, successors, tree.nodes[other, PARENT], pending, size)
        if child == NONE:
            size = _push_next(tree, successors, other, pending, size)
        else:
            pending[size] = child
            size += 1
    _store(successors, node, count)
    return np.int64(NONE)


@inner
def _decided_child(tree, successors, node):
    """The target of a node's result edge, or NONE, if the run decides the result; else _UNDECIDED."""
    kind = tree.nodes[node, KIND]
    if kind == LEAF:
        return np.int64(_UNDECIDED)
    low, high = successors.low[tree.nodes[node, COLUMN]], successors.high[tree.nodes[node, COLUMN]]
    if low == NO_LABEL:
        return np.int64(_UNDECIDED)
    if kind == EXAMINE:
        return labelled(tree, node, low) if low == high else np.int64(_UNDECIDED)
    edge = decided(low, high, tree.labels[node, LOW], tree.labels[node, HIGH])
    return end_of(tree, node, edge, NO_LABEL) if edge != BY_STAR else np.int64(_UNDECIDED)


@inner
def _record_run(tree, successors, node):
    """Record the intervals of labels that a node's run implies. Tests below its *-edges are on no earlier columns."""
    while is_in_run(tree, node):
        parent = tree.nodes[node, PARENT]
        low, high = tree.labels[parent, LOW], tree.labels[parent, HIGH]
        if tree.edges[node] == BY_LABEL:
            low, high = tree.marks[node], tree.marks[node]
        elif tree.edges[node] == BY_NO:
            low, high = beyond(low, high)
        _narrow(successors, tree.nodes[parent, COLUMN], low, high)
        node = parent


@kernel
def _narrow(successors, column, low, high):
    """Narrow the recorded interval of a column to its intersection with another, if that is an interval too."""
    old_low, old_high = successors.low[column], successors.high[column]
    if old_low == NO_LABEL or within(low, high, old_low, old_high):
        successors.low[column], successors.high[column] = low, high
    elif low <= high and old_low <= old_high and max(low, old_low) <= min(high, old_high):
        successors.low[column], successors.high[column] = max(low, old_low), min(high, old_high)


@kernel
def _clear_run(tree, successors, node):
    """Clear the intervals that `_record_run` recorded for a node."""
    while is_in_run(tree, node):
        node = tree.nodes[node, PARENT]
        successors.low[tree.nodes[node, COLUMN]] = NO_LABEL
