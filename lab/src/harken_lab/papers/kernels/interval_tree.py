"""Interval binary search trees: which of many intervals hold a label (Hanson et al., SIGMOD 1990; Le Subscribe, 3.1).

Each column has a tree of its own, all of them in the same arrays. A node is a constant at which some interval ends, and
the range of a node is the set of labels whose search passes it. A node has three lists of marks: of the intervals that
hold all labels of its range below its constant, of those that hold the constant, and of those that hold all labels of
its range above it. An interval is marked at a node if it holds a whole side of the node but not the node's whole range:
such nodes are on the two paths to its ends only. So a search meets every interval that holds its label exactly once.

A fourth list of each node has the intervals that end there; searches do not read it.

An interval is a column with a lowest and a highest label, stored once however many rows have it. Interval 0 has the
rows without predicates, and is in no tree. A wrapped interval has the marks of its two parts.

The arrays and the search are here. How intervals are marked is in interval_marks.py, and how the trees change with
their rows in interval_changes.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel

NONE = -1
ALWAYS = 0
"""The interval of rows without predicates."""
END = 1 << 32
"""Greater than any label: the constant of a sentinel node above each tree, whose left child is the root."""

# Fields of a node: its constant, children and parent, and the first marks of its four lists. A node is a cache line.
KEY, LEFT, RIGHT, PARENT, BELOW, ABOVE, EQUAL, ENDS = range(8)
NODE_FIELDS = 8
# Fields of a mark: interval; list, as NODE_FIELDS × node + list; neighbours there, and among the interval's marks.
MARKED, SLOT, BEFORE, AFTER, PREVIOUS, NEXT = range(6)
MARK_FIELDS = 6
# Fields of an interval: column, labels, first mark, and the next interval in its bucket. FLAG is for rotations, else 0.
COLUMN, LOW, HIGH, FIRST_MARK, FOLLOWING, FLAG = range(6)
INTERVAL_FIELDS = 6
# State of nodes, marks and intervals: how many are in use, the first never used, and the first free one.
(
    NODES,
    TOP_NODE,
    FREE_NODE,
    MARKS,
    TOP_MARK,
    FREE_MARK,
    INTERVALS,
    TOP_INTERVAL,
    FREE_INTERVAL,
    # The lowest node that may be out of balance; all above it may be too.
    PENDING,
    # A column, and the constants of up to two nodes to remove if no interval ends there any more; 0 for none.
    DOOMED_COLUMN,
    DOOMED_LOW,
    DOOMED_HIGH,
    # Which array ran out of room, and how much more is needed.
    SHORT_OF,
    SHORTAGE,
) = range(15)
STATES = 15
SHORT_OF_NODES, SHORT_OF_MARKS, SHORT_OF_INTERVALS, SHORT_OF_CELLS = range(1, 5)

_LOW_BITS = 0xFFFF_FFFF


class IntervalTrees(NamedTuple):
    """The trees of all columns, and their intervals."""

    roots: NDArray[np.int32]
    """By column, the node above its tree."""
    nodes: NDArray[np.int64]
    heights: NDArray[np.int32]
    marks: NDArray[np.int32]
    intervals: NDArray[np.int64]
    buckets: NDArray[np.int32]
    """The first interval of each bucket. The size is a power of two."""
    state: NDArray[np.int64]


class RowPlaces(NamedTuple):
    """The interval of each row, and its place there."""

    intervals: NDArray[np.int32]
    """By row, the interval by which it is candidates."""
    places: NDArray[np.int32]
    """By row, its place in the list of that interval."""


@inner
def key_of_low(low):
    """The constant at the lower end of an interval with this lowest label; 0 if it has no lower end."""
    return np.int64(low) & ~1


@inner
def key_of_high(high):
    """The constant at the upper end of an interval with this highest label; END if it has no upper end."""
    return (np.int64(high) + 1) & ~1


@inner
def find_node(trees, column, key):
    """The node of a constant, or NONE."""
    node = trees.roots[column]
    while node != NONE and trees.nodes[node, KEY] != key:
        node = trees.nodes[node, LEFT + (key > trees.nodes[node, KEY])]
    return node


@kernel
def find_rows(trees, lists, table, count, codes, first, out, offsets, examined):
    """Write the rows that match each event, where they end, and how many candidates their intervals gave.

    Returns the first event without room for `count` rows, or the end. Candidates are tested inline: a call would cost
    more than the test.
    """
    nodes, marks = trees.nodes, trees.marks
    starts, sizes, cells = lists.starts, lists.sizes, lists.cells
    row_starts, row_sizes, columns, low, high = table.starts, table.sizes, table.columns, table.low, table.high
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < count:
            return event
        for at in range(starts[ALWAYS], starts[ALWAYS] + sizes[ALWAYS]):
            out[end] = cells[at]
            end += 1
        candidates = end
        for column in range(codes.shape[0]):
            label = np.int64(codes[column, event])
            node = np.int64(trees.roots[column]) if label != 0 else NONE
            while node != NONE:
                key = nodes[node, KEY]
                side = np.int64(label > key)
                mark = nodes[node, EQUAL if label == key else BELOW + side]
                while mark != NONE:
                    interval = marks[mark, MARKED]
                    mark = np.int64(marks[mark, AFTER])
                    for at in range(starts[interval], starts[interval] + sizes[interval]):
                        out[candidates] = cells[at]
                        candidates += 1
                node = NONE if label == key else nodes[node, LEFT + side]
        examined[event] = candidates - offsets[event]
        for i in range(end, candidates):
            row = out[i]
            at = row_starts[row]
            stop = at + row_sizes[row]
            while at < stop:
                label, least = np.int64(codes[columns[at], event]), np.int64(low[at])
                if label == 0 or (label - least) & _LOW_BITS > (np.int64(high[at]) - least) & _LOW_BITS:
                    break
                at += 1
            out[end] = row
            end += at == stop
        offsets[event + 1] = end
    return codes.shape[1]
