"""Interval binary search trees: which of many intervals hold a label (Hanson et al., SIGMOD 1990; Le Subscribe, 3.1).

Each column has a tree of its own, all of them in the same arrays. A node is a constant at which some interval ends, and
it has three lists of marks: of intervals that hold all labels below it in the node's range, of those that hold the
constant, and of those that hold all above it. The range of a node are the labels that a search comes by it with. An
interval is marked where it holds a whole side of a node but not the node's whole range: at most some marks on each of
the two paths to its ends. So a search meets every interval that holds its label exactly once.

The trees are AVL trees. A rotation changes the ranges of two nodes, and moves the marks of these two and no other. A
fourth list of each node has the intervals that end there: it is not searched. A node at which no interval ends any more
goes; if it has two children, its neighbour's constant takes its place, and what ended at the neighbour is marked anew.

An interval is a column with a lowest and a highest label, and stands once, however many rows ask for it; interval 0 has
the rows that ask for nothing, and is in no tree. A wrapped interval has the marks of its two parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.lists import append_to, has_room, needed, release

NONE = -1
ALWAYS = 0
"""The interval of rows that ask for nothing."""
END = 1 << 32
"""More than any label: the constant of the node above each tree, whose left child is the root."""

# What a node is: its constant, children and parent, and the first marks of its four lists. It fills a cache line.
KEY, LEFT, RIGHT, PARENT, BELOW, ABOVE, EQUAL, ENDS = range(8)
NODE_FIELDS = 8
# A mark: its interval; its list, as NODE_FIELDS × node + list; its neighbours there, and among the interval's marks.
MARKED, SLOT, BEFORE, AFTER, PREVIOUS, NEXT = range(6)
MARK_FIELDS = 6
# An interval: column and labels, its first mark, and the next one in its bucket. The flag is 0 except in a rotation.
COLUMN, LOW, HIGH, FIRST_MARK, FOLLOWING, FLAG = range(6)
INTERVAL_FIELDS = 6
# Counters: of what is in use, where nothing was ever used, and the first of what can be used again.
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
    # The node from which on upwards the tree may be out of balance.
    PENDING,
    # A column, and the constants of two nodes in its tree at which no interval may end any more; 0 for none.
    DOOMED_COLUMN,
    DOOMED_LOW,
    DOOMED_HIGH,
    # What was out of room, and how much of it is asked for.
    SHORT_OF,
    ASKED,
) = range(15)
STATES = 15
SHORT_OF_NODES, SHORT_OF_MARKS, SHORT_OF_INTERVALS, SHORT_OF_CELLS = range(1, 5)

_SCATTER, _MIX, _LOW_BITS = 0x1E37_79B1, 0x05EB_CA77, 0xFFFF_FFFF


class Trees(NamedTuple):
    """The trees of all columns, and their intervals."""

    roots: NDArray[np.int32]
    """By column, the node above its tree."""
    nodes: NDArray[np.int64]
    heights: NDArray[np.int32]
    marks: NDArray[np.int32]
    intervals: NDArray[np.int64]
    buckets: NDArray[np.int32]
    """The first interval of each hash. A power of two of them."""
    state: NDArray[np.int64]


class RowPlaces(NamedTuple):
    """Where each row stands."""

    intervals: NDArray[np.int32]
    """The interval by which a row is found."""
    places: NDArray[np.int32]
    """Its place in the list of that interval."""


# Marks


@kernel
def _room_for_marks(trees, count):
    """Whether there is room for so many marks; if not, this is noted."""
    state = trees.state
    if state[MARKS] + count <= trees.marks.shape[0]:
        return True
    state[SHORT_OF] = SHORT_OF_MARKS
    state[ASKED] = count
    return False


@kernel
def _link(trees, mark, node, kind):
    """Put a mark at the head of a list of a node."""
    marks, head = trees.marks, trees.nodes[node, kind]
    marks[mark, SLOT] = NODE_FIELDS * node + kind
    marks[mark, BEFORE] = NONE
    marks[mark, AFTER] = head
    if head != NONE:
        marks[head, BEFORE] = mark
    trees.nodes[node, kind] = mark


@kernel
def _unlink(trees, mark):
    """Take a mark out of its list."""
    marks = trees.marks
    before, after = marks[mark, BEFORE], marks[mark, AFTER]
    if before == NONE:
        trees.nodes[marks[mark, SLOT] // NODE_FIELDS, marks[mark, SLOT] % NODE_FIELDS] = after
    else:
        marks[before, AFTER] = after
    if after != NONE:
        marks[after, BEFORE] = before


@kernel
def _add_mark(trees, node, kind, interval):
    """Mark an interval on a list of a node. There is room."""
    state, marks = trees.state, trees.marks
    mark = state[FREE_MARK]
    if mark == NONE:
        mark = state[TOP_MARK]
        state[TOP_MARK] += 1
    else:
        state[FREE_MARK] = marks[mark, AFTER]
    state[MARKS] += 1
    _link(trees, mark, node, kind)
    head = trees.intervals[interval, FIRST_MARK]
    marks[mark, MARKED] = interval
    marks[mark, PREVIOUS] = NONE
    marks[mark, NEXT] = head
    if head != NONE:
        marks[head, PREVIOUS] = mark
    trees.intervals[interval, FIRST_MARK] = mark


@kernel
def _erase_mark(trees, mark):
    state, marks = trees.state, trees.marks
    _unlink(trees, mark)
    previous, following = marks[mark, PREVIOUS], marks[mark, NEXT]
    if previous == NONE:
        trees.intervals[marks[mark, MARKED], FIRST_MARK] = following
    else:
        marks[previous, NEXT] = following
    if following != NONE:
        marks[following, PREVIOUS] = previous
    marks[mark, AFTER] = state[FREE_MARK]
    state[FREE_MARK] = mark
    state[MARKS] -= 1


@kernel
def _length(trees, node, kind):
    """How many marks are on a list of a node."""
    count = 0
    mark = trees.nodes[node, kind]
    while mark != NONE:
        count += 1
        mark = trees.marks[mark, AFTER]
    return count


# Intervals


@kernel
def _low_key(low):
    """The constant at which an interval with this lowest label ends; 0 if it has no lower end."""
    return np.int64(low) & ~1


@kernel
def _high_key(high):
    """The constant at which an interval with this highest label ends; END if it has no upper end."""
    return (np.int64(high) + 1) & ~1


@kernel
def _cover_part(trees, interval, low, high):
    """Mark the labels from low to high for an interval. There is room, and nodes at both ends."""
    root = trees.roots[trees.intervals[interval, COLUMN]]
    low_key, high_key = _low_key(low), _high_key(high)
    if low_key > 0:
        node, top = root, 2 * END
        while node != NONE:
            key = trees.nodes[node, KEY]
            if low_key <= key:
                if low <= key <= high:
                    _add_mark(trees, node, EQUAL, interval)
                if high >= top - 1:
                    _add_mark(trees, node, ABOVE, interval)
                top = key
            if low_key == key:
                break
            node = trees.nodes[node, LEFT + (low_key > key)]
    node, bottom, top = root, np.int64(0), np.int64(2 * END)
    while node != NONE:
        key = trees.nodes[node, KEY]
        # Nodes with the lower end in their range were on the way to it.
        if high_key >= key and not (bottom < low_key < top):
            _add_mark(trees, node, BELOW, interval)
            if high >= key:
                _add_mark(trees, node, EQUAL, interval)
        if high_key == key:
            break
        if high_key > key:
            bottom = key
        else:
            top = key
        node = trees.nodes[node, LEFT + (high_key > key)]


@kernel
def _cover(trees, interval):
    """Set all marks of an interval but those of its ends."""
    low, high = np.int64(trees.intervals[interval, LOW]), np.int64(trees.intervals[interval, HIGH])
    if low <= high:
        _cover_part(trees, interval, low, high)
    else:
        _cover_part(trees, interval, np.int64(1), high)
        _cover_part(trees, interval, low, np.int64(END - 1))


@kernel
def _uncover(trees, interval):
    """Erase all marks of an interval but those of its ends."""
    mark = trees.intervals[interval, FIRST_MARK]
    while mark != NONE:
        following = trees.marks[mark, NEXT]
        if trees.marks[mark, SLOT] % NODE_FIELDS != ENDS:
            _erase_mark(trees, mark)
        mark = following


@kernel
def _most_marks(trees, column):
    """How many marks an interval of a column has at most."""
    root = trees.nodes[trees.roots[column], LEFT]
    return 4 * (trees.heights[root] if root != NONE else 0) + 8


@kernel
def _bucket(column, low, high, count):
    """The bucket of an interval. Products of 32 bits by 31 never overflow."""
    mixed = np.int64(low) * _SCATTER ^ (np.int64(high) * _MIX >> 3) ^ np.int64(column) * _SCATTER
    return (mixed ^ mixed >> 17) & _LOW_BITS & (count - 1)


@kernel
def rehash(trees):
    """Put all intervals into the buckets, which are empty."""
    intervals = trees.intervals
    for interval in range(1, trees.state[TOP_INTERVAL]):
        column, low, high = intervals[interval, COLUMN], intervals[interval, LOW], intervals[interval, HIGH]
        if column != NONE:
            bucket = _bucket(column, low, high, trees.buckets.size)
            intervals[interval, FOLLOWING] = trees.buckets[bucket]
            trees.buckets[bucket] = interval


@kernel
def _find_interval(trees, column, low, high):
    intervals = trees.intervals
    interval = trees.buckets[_bucket(column, low, high, trees.buckets.size)]
    while interval != NONE:
        is_labels = intervals[interval, LOW] == low and intervals[interval, HIGH] == high
        if is_labels and intervals[interval, COLUMN] == column:
            return interval
        interval = intervals[interval, FOLLOWING]
    return NONE


@kernel
def _add_interval(trees, column, low, high):
    """A new interval, whose ends have nodes, with all its marks; or NONE if there is no room."""
    state, intervals = trees.state, trees.intervals
    if state[FREE_INTERVAL] == NONE and state[TOP_INTERVAL] == intervals.shape[0]:
        state[SHORT_OF] = SHORT_OF_INTERVALS
        return NONE
    if not _room_for_marks(trees, _most_marks(trees, column)):
        return NONE
    interval = state[FREE_INTERVAL]
    if interval == NONE:
        interval = state[TOP_INTERVAL]
        state[TOP_INTERVAL] += 1
    else:
        state[FREE_INTERVAL] = intervals[interval, FOLLOWING]
    state[INTERVALS] += 1
    intervals[interval, COLUMN], intervals[interval, LOW], intervals[interval, HIGH] = column, low, high
    intervals[interval, FIRST_MARK], intervals[interval, FLAG] = NONE, 0
    bucket = _bucket(column, low, high, trees.buckets.size)
    intervals[interval, FOLLOWING] = trees.buckets[bucket]
    trees.buckets[bucket] = interval
    low_key, high_key = _low_key(low), _high_key(high)
    if low_key > 0:
        _add_mark(trees, _find_node(trees, column, low_key), ENDS, interval)
    if high_key < END and high_key != low_key:
        _add_mark(trees, _find_node(trees, column, high_key), ENDS, interval)
    _cover(trees, interval)
    return interval


@kernel
def _drop_interval(trees, interval):
    """Let an interval go that no row asks for. The nodes of its ends are doomed."""
    state, intervals = trees.state, trees.intervals
    column = intervals[interval, COLUMN]
    mark = intervals[interval, FIRST_MARK]
    while mark != NONE:
        following = trees.marks[mark, NEXT]
        _erase_mark(trees, mark)
        mark = following
    low, high = intervals[interval, LOW], intervals[interval, HIGH]
    bucket = _bucket(column, low, high, trees.buckets.size)
    if trees.buckets[bucket] == interval:
        trees.buckets[bucket] = intervals[interval, FOLLOWING]
    else:
        before = trees.buckets[bucket]
        while intervals[before, FOLLOWING] != interval:
            before = intervals[before, FOLLOWING]
        intervals[before, FOLLOWING] = intervals[interval, FOLLOWING]
    intervals[interval, COLUMN] = NONE
    intervals[interval, FOLLOWING] = state[FREE_INTERVAL]
    state[FREE_INTERVAL] = interval
    state[INTERVALS] -= 1
    state[DOOMED_COLUMN] = column
    low_key, high_key = _low_key(low), _high_key(high)
    state[DOOMED_LOW] = low_key
    state[DOOMED_HIGH] = high_key if high_key < END and high_key != low_key else 0


# Nodes


@kernel
def _find_node(trees, column, key):
    node = trees.roots[column]
    while node != NONE and trees.nodes[node, KEY] != key:
        node = trees.nodes[node, LEFT + (key > trees.nodes[node, KEY])]
    return node


@kernel
def _new_node(trees, key, parent):
    """A node without children; or NONE if there is no room."""
    state = trees.state
    node = state[FREE_NODE]
    if node == NONE:
        node = state[TOP_NODE]
        if node == trees.nodes.shape[0]:
            state[SHORT_OF] = SHORT_OF_NODES
            return NONE
        state[TOP_NODE] += 1
    else:
        state[FREE_NODE] = trees.nodes[node, PARENT]
    state[NODES] += 1
    for each in range(NODE_FIELDS):
        trees.nodes[node, each] = NONE
    trees.nodes[node, KEY], trees.nodes[node, PARENT], trees.heights[node] = key, parent, 1
    return node


@kernel
def add_columns(trees, first):
    """Have a tree for each column from the first on. Returns how many there are, or where there was no room."""
    for column in range(first, trees.roots.size):
        node = _new_node(trees, END, NONE)
        if node == NONE:
            return column
        trees.roots[column] = node
    return trees.roots.size


@kernel
def _plant(trees, column, key):
    """Have a node for a constant. Returns whether there was room.

    It needs no marks: what holds its range is marked above it.
    """
    node = parent = trees.roots[column]
    side = 0
    while node != NONE:
        if trees.nodes[node, KEY] == key:
            return True
        parent, side = node, np.int64(key > trees.nodes[node, KEY])
        node = trees.nodes[node, LEFT + side]
    node = _new_node(trees, key, parent)
    if node == NONE:
        return False
    trees.nodes[parent, LEFT + side] = node
    trees.state[PENDING] = parent
    return settle(trees)


@kernel
def _set_height(trees, node):
    tallest = 0
    for side in range(2):
        kid = trees.nodes[node, LEFT + side]
        if kid != NONE:
            tallest = max(tallest, trees.heights[kid])
    trees.heights[node] = tallest + 1


@kernel
def _replace_kid(trees, parent, kid, other):
    trees.nodes[parent, LEFT + (trees.nodes[parent, RIGHT] == kid)] = other
    if other != NONE:
        trees.nodes[other, PARENT] = parent


@kernel
def _rotate(trees, node, side):
    """Let the child at a side take the place of its parent. Returns whether there was room for the marks."""
    kid = trees.nodes[node, LEFT + side]
    if not _room_for_marks(trees, 2 * _length(trees, node, BELOW + side)):
        return False
    _move_marks(trees, kid, node, BELOW + side, ABOVE - side)
    inner = trees.nodes[kid, RIGHT - side]
    _replace_kid(trees, trees.nodes[node, PARENT], node, kid)
    trees.nodes[node, LEFT + side] = inner
    if inner != NONE:
        trees.nodes[inner, PARENT] = node
    trees.nodes[kid, RIGHT - side] = node
    trees.nodes[node, PARENT] = kid
    _set_height(trees, node)
    _set_height(trees, kid)
    return True


@kernel
def _move_marks(trees, kid, node, near, far):
    """Mark what is marked at a node and its child as it is to be when the child has the node's place.

    `near` is the list of the side that the child is on. What held all on this side of the node now holds the child, all
    beyond it, and what lies between the two. What held all from the child on, on the far side, now holds the child's
    far side; of all else that held what lies between, this is now the node's near side.
    """
    nodes, marks, intervals = trees.nodes, trees.marks, trees.intervals
    for which in range(2):
        mark = nodes[node, EQUAL if which == 0 else far]
        while mark != NONE:
            intervals[marks[mark, MARKED], FLAG] |= 1 + which
            mark = marks[mark, AFTER]
    mark = nodes[node, near]
    while mark != NONE:
        _add_mark(trees, kid, near, marks[mark, MARKED])
        _add_mark(trees, kid, EQUAL, marks[mark, MARKED])
        mark = marks[mark, AFTER]
    mark = nodes[kid, far]
    while mark != NONE:
        following, interval = marks[mark, AFTER], marks[mark, MARKED]
        if intervals[interval, FLAG] == 3:
            intervals[interval, FLAG] = 4
        else:
            _unlink(trees, mark)
            _link(trees, mark, node, near)
        mark = following
    for which in range(2):
        mark = nodes[node, far if which == 0 else EQUAL]
        while mark != NONE:
            following, interval = marks[mark, AFTER], marks[mark, MARKED]
            is_moved = intervals[interval, FLAG] == 4
            if is_moved:
                _erase_mark(trees, mark)
            if not is_moved or which == 1:
                intervals[interval, FLAG] = 0
            mark = following


@kernel
def _tallness(trees, node):
    """By how much the right side of a node is taller than the left."""
    left, right = trees.nodes[node, LEFT], trees.nodes[node, RIGHT]
    return (trees.heights[right] if right != NONE else 0) - (trees.heights[left] if left != NONE else 0)


@kernel
def _rebalance(trees):
    """Rotate from the pending node upwards while something is out of balance. Returns whether there was room."""
    state = trees.state
    node = state[PENDING]
    while node != NONE and trees.nodes[node, KEY] != END:
        state[PENDING] = node
        height, tallness = trees.heights[node], _tallness(trees, node)
        if abs(tallness) > 1:
            side = np.int64(tallness > 0)
            kid = trees.nodes[node, LEFT + side]
            leaning = _tallness(trees, kid)
            if leaning != 0 and (leaning > 0) != (tallness > 0) and not _rotate(trees, kid, 1 - side):
                return False
            if not _rotate(trees, node, side):
                return False
            node = trees.nodes[node, PARENT]
        else:
            _set_height(trees, node)
        if trees.heights[node] == height:
            break
        node = trees.nodes[node, PARENT]
    state[PENDING] = NONE
    return True


@kernel
def _splice(trees, node):
    """Take out a node at which no interval ends, and that has one child at most.

    What is marked at it also holds what lies next to it on the side of the child, where it is marked as well.
    """
    state = trees.state
    for kind in (BELOW, ABOVE, EQUAL):
        while trees.nodes[node, kind] != NONE:
            _erase_mark(trees, trees.nodes[node, kind])
    parent = trees.nodes[node, PARENT]
    kid = trees.nodes[node, LEFT] if trees.nodes[node, LEFT] != NONE else trees.nodes[node, RIGHT]
    _replace_kid(trees, parent, node, kid)
    trees.nodes[node, PARENT] = state[FREE_NODE]
    state[FREE_NODE] = node
    state[NODES] -= 1
    state[PENDING] = parent


@kernel
def _uproot(trees, column, key):
    """Let the node of a constant go, if no interval ends there. Returns whether there was room."""
    node = _find_node(trees, column, key)
    if node == NONE or trees.nodes[node, ENDS] != NONE:
        return True
    if trees.nodes[node, LEFT] == NONE or trees.nodes[node, RIGHT] == NONE:
        _splice(trees, node)
        return True
    side = np.int64(_tallness(trees, node) > 0)
    neighbour = trees.nodes[node, LEFT + side]
    while trees.nodes[neighbour, RIGHT - side] != NONE:
        neighbour = trees.nodes[neighbour, RIGHT - side]
    if not _room_for_marks(trees, _length(trees, neighbour, ENDS) * _most_marks(trees, column)):
        return False
    mark = trees.nodes[neighbour, ENDS]
    while mark != NONE:
        following = trees.marks[mark, AFTER]
        _uncover(trees, trees.marks[mark, MARKED])
        _unlink(trees, mark)
        _link(trees, mark, node, ENDS)
        mark = following
    trees.nodes[node, KEY] = trees.nodes[neighbour, KEY]
    _splice(trees, neighbour)
    mark = trees.nodes[node, ENDS]
    while mark != NONE:
        _cover(trees, trees.marks[mark, MARKED])
        mark = trees.marks[mark, AFTER]
    return True


@kernel
def settle(trees):
    """Finish what was begun: balance a tree, and let doomed nodes go. Returns whether there was room."""
    state = trees.state
    while True:
        if state[PENDING] != NONE:
            if not _rebalance(trees):
                return False
        elif state[DOOMED_LOW] != 0:
            if not _uproot(trees, state[DOOMED_COLUMN], state[DOOMED_LOW]):
                return False
            state[DOOMED_LOW] = 0
        elif state[DOOMED_HIGH] != 0:
            if not _uproot(trees, state[DOOMED_COLUMN], state[DOOMED_HIGH]):
                return False
            state[DOOMED_HIGH] = 0
        else:
            return True


# Rows


@kernel
def choose_equalities(table, rows, constants, chosen):
    """For each row the place of its equality on the column with most constants; NONE if it has no equality."""
    for i in range(rows.size):
        start, best = table.starts[rows[i]], NONE
        for at in range(start, start + table.sizes[rows[i]]):
            is_equality = table.low[at] == table.high[at] and table.low[at] % 2 == 0
            if is_equality and (best == NONE or constants[table.columns[at]] > constants[table.columns[best]]):
                best = at
        chosen[i] = best


@kernel
def plant_rows(trees, table, chosen, first):
    """Have nodes for the ends of the chosen predicates, from the first on. Returns how many are done.

    That they come before all marks makes a bulk load quick: rotations have no marks to move.
    """
    for i in range(first, chosen.size):
        if not settle(trees):
            return i
        at = chosen[i]
        if at == NONE:
            continue
        low_key, high_key = _low_key(table.low[at]), _high_key(table.high[at])
        if low_key > 0 and not _plant(trees, table.columns[at], low_key):
            return i
        if high_key < END and not _plant(trees, table.columns[at], high_key):
            return i
    return chosen.size


@kernel
def enter_rows(trees, lists, places, table, rows, chosen, first):
    """Have rows, from the first on, on the lists of their intervals, whose nodes are there. Returns how many are.

    The interval of a row is that of its chosen predicate.
    """
    for i in range(first, rows.size):
        interval, at = ALWAYS, chosen[i]
        if at != NONE:
            interval = _find_interval(trees, table.columns[at], table.low[at], table.high[at])
            if interval == NONE:
                interval = _add_interval(trees, table.columns[at], table.low[at], table.high[at])
                if interval == NONE:
                    return i
        # Without room an interval that was made has no row yet: the next call finds it.
        if not has_room(lists, needed(lists, interval)):
            trees.state[SHORT_OF] = SHORT_OF_CELLS
            return i
        places.intervals[rows[i]] = interval
        places.places[rows[i]] = lists.sizes[interval]
        append_to(lists, interval, rows[i])
    return rows.size


@kernel
def leave_rows(trees, lists, places, rows, first):
    """Take rows, from the first on, out of their lists, and what nobody asks for out of the trees.

    Returns how many are done, and one more when all is settled that they left behind.
    """
    for i in range(first, rows.size + 1):
        if not settle(trees):
            return i
        if i == rows.size:
            break
        row = rows[i]
        interval, place = places.intervals[row], places.places[row]
        start, last = lists.starts[interval], lists.sizes[interval] - 1
        moved = lists.cells[start + last]
        lists.cells[start + place] = moved
        places.places[moved] = place
        lists.sizes[interval] = last
        if last == 0:
            release(lists, interval)
            if interval != ALWAYS:
                _drop_interval(trees, interval)
    return rows.size + 1


@kernel
def find_rows(trees, lists, table, count, codes, first, out, offsets, examined):
    """Write the rows that hold for each event, where they end, and how many were found by their intervals.

    Stops at the first event for which there is no room for `count` rows. The tests of rows stand here, and not in a
    kernel of their own, because a call would cost more than they do.
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
        found = end
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
                        out[found] = cells[at]
                        found += 1
                node = NONE if label == key else nodes[node, LEFT + side]
        examined[event] = found - offsets[event]
        for i in range(end, found):
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
