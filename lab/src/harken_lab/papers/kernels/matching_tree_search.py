"""How an event goes through Gryphon's tree (Aguilera et al., PODC 1999, sections 3 and 5), with successors or without.

Without them a visit to a node goes on to the end of the edge of the test's result, and to the end of the *-edge. With
them it goes on to the first only, if there is such an edge. Where there is none, or in a leaf, the search jumps: to the
end of the *-edge, and to the *successors* of the node. These stand for the *-edges of all nodes that were passed on the
last stretch of result edges to the node, which is its run. What the results of the run tell is known there, so tests
below those *-edges that they decide are skipped: a successor is the first node that they do not decide, or a leaf.

Successors are right because of what a visit to a node n owes: all that holds below n, and below the *-edges of its run.
Call that cover(n). If n's test has a known result, and an edge for it leads to c, then cover(n) = cover(c), since n has
joined the run. If no edge is for it, cover(n) is what lies below n's own *-edge, and cover of all successors of n. So a
node n whose test is decided may be replaced by c, or by the end of its *-edge and its successors; both replace every
leaf exactly once. The successors of c are those of its parent and the end of the parent's *-edge, so replaced.

They are computed when a search first needs them, and kept until the tree changes. A list that would be too long is not
kept: such a node is cut off from its run, and owes nothing for it; who visits it pays at once.
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
SINCE, START, SIZE = range(3)
WIDEST = 64
"""The most successors that are kept for a node."""
_CUT = -1
_UNKNOWN = -2
_NO_ROOM = -2


class Successors(NamedTuple):
    """The successors of nodes, as far as they were needed."""

    lists: NDArray[np.int32]
    """By node: the version of the tree it is valid for, where its list starts, and its size; -1 if it is cut off."""
    cells: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    """By column, the interval of labels that a node's run implies; 0 where it implies none."""
    work: NDArray[np.int32]
    pending: NDArray[np.int32]
    """Stacks with room for all nodes: nodes whose successors are wanted, and candidates for successors."""
    state: NDArray[np.int64]
    """The version of the tree, how many cells are used, and whether they ran out."""


@kernel
def find(tree, rows, codes, labels, stack, first, out, offsets, examined):
    """Write the rows of all leaves that each event comes to, from the first event on. See RowMatcher._find.

    `labels` has room for a label a column, `stack` for all nodes; `rows` is how many rows there are.
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
def find_with_successors(tree, kept, rows, codes, labels, stack, first, out, offsets, examined):
    """As `find`. It also stops where there is no room for successors, and says so."""
    nodes, bounds, slots, lists, cells = tree.nodes, tree.labels, tree.slots, kept.lists, kept.cells
    version = kept.state[VERSION]
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
            if lists[node, SINCE] != version and not _prepare(tree, kept, node):
                kept.state[IS_FULL] = 1
                return event
            kind = nodes[node, KIND]
            if lists[node, SIZE] == _CUT:
                size = _push_next(tree, kept, nodes[node, PARENT], stack, size)
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
def _push_next(tree, kept, node, stack, size):
    """Push where a search goes on from a node without a result: the end of its *-edge, and its successors."""
    if tree.nodes[node, STAR] != NONE:
        stack[size] = tree.nodes[node, STAR]
        size += 1
    start = kept.lists[node, START]
    for at in range(start, start + kept.lists[node, SIZE]):
        stack[size] = kept.cells[at]
        size += 1
    return size


@inner
def _prepare(tree, kept, node):
    """Compute the successors of a node, and those they depend on. Returns whether there was room."""
    kept.work[0] = node
    size = 1
    while size:
        wanted = _gather(tree, kept, kept.work[size - 1])
        if wanted == _NO_ROOM:
            return False
        if wanted == NONE:
            size -= 1
        else:
            kept.work[size] = wanted
            size += 1
    return True


@kernel
def _keep(kept, node, size):
    kept.lists[node, SINCE] = kept.state[VERSION]
    kept.lists[node, START], kept.lists[node, SIZE] = kept.state[USED], size
    kept.state[USED] += max(size, 0)


@inner
def _is_in_run(tree, node):
    """Whether the run of a node is not empty: a result edge leads to it."""
    parent = tree.nodes[node, PARENT]
    return parent != NONE and tree.edges[node] != BY_STAR and tree.nodes[parent, KIND] != FACTOR


@inner
def _gather(tree, kept, node):
    """Compute the successors of a node and return NONE; or return a node whose successors are needed first."""
    if not _is_in_run(tree, node):
        _keep(kept, node, 0)
        return np.int64(NONE)
    parent = tree.nodes[node, PARENT]
    if kept.lists[parent, SINCE] != kept.state[VERSION]:
        return np.int64(parent)
    if kept.state[USED] + WIDEST > kept.cells.size:
        return np.int64(_NO_ROOM)
    _know(tree, kept, node)
    wanted = _replace(tree, kept, node, parent)
    _forget(tree, kept, node)
    return wanted


@kernel
def _replace(tree, kept, node, parent):
    """As `_gather`, once what the run implies is known."""
    lists, pending = kept.lists, kept.pending
    size, count = _push_next(tree, kept, parent, pending, 0), 0
    while size:
        size -= 1
        other = pending[size]
        child = _foreseen(tree, kept, other)
        if child == _UNKNOWN:
            if count == WIDEST:
                _keep(kept, node, _CUT)
                return np.int64(NONE)
            kept.cells[kept.state[USED] + count] = other
            count += 1
            continue
        if lists[other, SINCE] != kept.state[VERSION]:
            return np.int64(other)
        if lists[other, SIZE] == _CUT:
            size = _push_next(tree, kept, tree.nodes[other, PARENT], pending, size)
        if child == NONE:
            size = _push_next(tree, kept, other, pending, size)
        else:
            pending[size] = child
            size += 1
    _keep(kept, node, count)
    return np.int64(NONE)


@inner
def _foreseen(tree, kept, node):
    """Where the result edge of a node leads, by what the run implies: a node, NONE, or undecided."""
    kind = tree.nodes[node, KIND]
    if kind == LEAF:
        return np.int64(_UNKNOWN)
    low, high = kept.low[tree.nodes[node, COLUMN]], kept.high[tree.nodes[node, COLUMN]]
    if low == NO_LABEL:
        return np.int64(_UNKNOWN)
    if kind == EXAMINE:
        return labelled(tree, node, low) if low == high else np.int64(_UNKNOWN)
    edge = decided(low, high, tree.labels[node, LOW], tree.labels[node, HIGH])
    return end_of(tree, node, edge, NO_LABEL) if edge != BY_STAR else np.int64(_UNKNOWN)


@inner
def _know(tree, kept, node):
    """Record what a node's run implies for labels. Tests below its *-edges are never of columns before it."""
    while _is_in_run(tree, node):
        parent = tree.nodes[node, PARENT]
        low, high = tree.labels[parent, LOW], tree.labels[parent, HIGH]
        if tree.edges[node] == BY_LABEL:
            low, high = tree.marks[node], tree.marks[node]
        elif tree.edges[node] == BY_NO:
            low, high = beyond(low, high)
        _narrow(kept, tree.nodes[parent, COLUMN], low, high)
        node = parent


@kernel
def _narrow(kept, column, low, high):
    """Record an interval that the label of a column lies in, if it says more than what is known."""
    known_low, known_high = kept.low[column], kept.high[column]
    if known_low == NO_LABEL or within(low, high, known_low, known_high):
        kept.low[column], kept.high[column] = low, high
    elif low <= high and known_low <= known_high and max(low, known_low) <= min(high, known_high):
        kept.low[column], kept.high[column] = max(low, known_low), min(high, known_high)


@kernel
def _forget(tree, kept, node):
    while _is_in_run(tree, node):
        node = tree.nodes[node, PARENT]
        kept.low[tree.nodes[node, COLUMN]] = NO_LABEL
