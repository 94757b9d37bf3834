"""Changes of the trees of interval_tree.py: rows are added and removed, and with them intervals and nodes.

The trees are AVL trees. A rotation changes the ranges of two nodes, and moves the marks of these two only. A node at
which no interval ends any more is removed. If it has two children, it takes over the constant of its neighbour, which
is removed instead, and the intervals that ended at the neighbour get new marks.

A kernel that runs out of room records in which array, and returns how far it got: the next call continues from there.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.interval_marks import (
    add_interval,
    add_mark,
    count_marks,
    cover,
    drop_interval,
    erase_mark,
    find_interval,
    link_mark,
    most_marks,
    room_for_marks,
    uncover,
    unlink_mark,
)
from harken_lab.papers.kernels.interval_tree import (
    ABOVE,
    AFTER,
    ALWAYS,
    BELOW,
    DOOMED_COLUMN,
    DOOMED_HIGH,
    DOOMED_LOW,
    END,
    ENDS,
    EQUAL,
    FLAG,
    FREE_NODE,
    KEY,
    LEFT,
    MARKED,
    NODE_FIELDS,
    NODES,
    NONE,
    PARENT,
    PENDING,
    RIGHT,
    SHORT_OF,
    SHORT_OF_CELLS,
    SHORT_OF_NODES,
    TOP_NODE,
    find_node,
    key_of_high,
    key_of_low,
)
from harken_lab.papers.kernels.lists import append_to, has_room, needed, release

# Nodes


@inner
def _new_node(trees, key, parent):
    """Make a node without children. Returns NONE if there is no room."""
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
    """Make a tree for each column from `first` on. Returns how many columns have one; fewer if room ran out."""
    for column in range(first, trees.roots.size):
        node = _new_node(trees, END, NONE)
        if node == NONE:
            return column
        trees.roots[column] = node
    return trees.roots.size


@inner
def _plant(trees, column, key):
    """Ensure a node for a constant. Returns whether there was room.

    A new node needs no marks: intervals that hold its whole range are marked at nodes above it.
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


@inner
def _set_height(trees, node):
    tallest = 0
    for side in range(2):
        kid = trees.nodes[node, LEFT + side]
        if kid != NONE:
            tallest = max(tallest, trees.heights[kid])
    trees.heights[node] = tallest + 1


@inner
def _replace_kid(trees, parent, kid, other):
    trees.nodes[parent, LEFT + (trees.nodes[parent, RIGHT] == kid)] = other
    if other != NONE:
        trees.nodes[other, PARENT] = parent


@inner
def _rotate(trees, node, side):
    """Rotate: the child on a side takes the place of its parent. Returns whether there was room for the marks."""
    kid = trees.nodes[node, LEFT + side]
    if not room_for_marks(trees, 2 * count_marks(trees, node, BELOW + side)):
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


@inner
def _move_marks(trees, kid, node, near, far):
    """Move the marks of a node and its child, so that they are right once the child has taken the node's place.

    The child is on the node's `near` side. A mark on the node's near side stays, and is repeated on the child's near
    side and at the child's constant. A mark on the child's far side moves to the node's near side; but if its interval
    is also marked at the node's constant and on its far side, the mark stays and replaces these two.
    """
    nodes, marks, intervals = trees.nodes, trees.marks, trees.intervals
    for which in range(2):
        mark = nodes[node, EQUAL if which == 0 else far]
        while mark != NONE:
            intervals[marks[mark, MARKED], FLAG] |= 1 + which
            mark = marks[mark, AFTER]
    mark = nodes[node, near]
    while mark != NONE:
        add_mark(trees, kid, near, marks[mark, MARKED])
        add_mark(trees, kid, EQUAL, marks[mark, MARKED])
        mark = marks[mark, AFTER]
    mark = nodes[kid, far]
    while mark != NONE:
        following, interval = marks[mark, AFTER], marks[mark, MARKED]
        if intervals[interval, FLAG] == 3:
            intervals[interval, FLAG] = 4
        else:
            unlink_mark(trees, mark)
            link_mark(trees, mark, node, near)
        mark = following
    for which in range(2):
        mark = nodes[node, far if which == 0 else EQUAL]
        while mark != NONE:
            following, interval = marks[mark, AFTER], marks[mark, MARKED]
            is_moved = intervals[interval, FLAG] == 4
            if is_moved:
                erase_mark(trees, mark)
            if not is_moved or which == 1:
                intervals[interval, FLAG] = 0
            mark = following


@inner
def _height_difference(trees, node):
    """The height of a node's right subtree minus that of its left."""
    left, right = trees.nodes[node, LEFT], trees.nodes[node, RIGHT]
    return (trees.heights[right] if right != NONE else 0) - (trees.heights[left] if left != NONE else 0)


@inner
def _rebalance(trees):
    """Rotate from the pending node upwards until the tree is balanced. Returns whether there was room."""
    state = trees.state
    node = state[PENDING]
    while node != NONE and trees.nodes[node, KEY] != END:
        state[PENDING] = node
        height, difference = trees.heights[node], _height_difference(trees, node)
        if abs(difference) > 1:
            side = np.int64(difference > 0)
            kid = trees.nodes[node, LEFT + side]
            leaning = _height_difference(trees, kid)
            if leaning != 0 and (leaning > 0) != (difference > 0) and not _rotate(trees, kid, 1 - side):
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


@inner
def _splice(trees, node):
    """Remove a node at which no interval ends, and which has at most one child.

    Its marks are not needed: their intervals also hold the labels next to it on the child's side, and are marked there.
    """
    state = trees.state
    for kind in (BELOW, ABOVE, EQUAL):
        while trees.nodes[node, kind] != NONE:
            erase_mark(trees, trees.nodes[node, kind])
    parent = trees.nodes[node, PARENT]
    kid = trees.nodes[node, LEFT] if trees.nodes[node, LEFT] != NONE else trees.nodes[node, RIGHT]
    _replace_kid(trees, parent, node, kid)
    trees.nodes[node, PARENT] = state[FREE_NODE]
    state[FREE_NODE] = node
    state[NODES] -= 1
    state[PENDING] = parent


@inner
def _uproot(trees, column, key):
    """Remove the node of a constant if no interval ends there. Returns whether there was room for new marks."""
    node = find_node(trees, column, key)
    if node == NONE or trees.nodes[node, ENDS] != NONE:
        return True
    if trees.nodes[node, LEFT] == NONE or trees.nodes[node, RIGHT] == NONE:
        _splice(trees, node)
        return True
    side = np.int64(_height_difference(trees, node) > 0)
    neighbour = trees.nodes[node, LEFT + side]
    while trees.nodes[neighbour, RIGHT - side] != NONE:
        neighbour = trees.nodes[neighbour, RIGHT - side]
    if not room_for_marks(trees, count_marks(trees, neighbour, ENDS) * most_marks(trees, column)):
        return False
    mark = trees.nodes[neighbour, ENDS]
    while mark != NONE:
        following = trees.marks[mark, AFTER]
        uncover(trees, trees.marks[mark, MARKED])
        unlink_mark(trees, mark)
        link_mark(trees, mark, node, ENDS)
        mark = following
    trees.nodes[node, KEY] = trees.nodes[neighbour, KEY]
    _splice(trees, neighbour)
    mark = trees.nodes[node, ENDS]
    while mark != NONE:
        cover(trees, trees.marks[mark, MARKED])
        mark = trees.marks[mark, AFTER]
    return True


@kernel
def settle(trees):
    """Finish pending work: balance a tree, remove nodes at which no interval ends. Returns whether there was room."""
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
    """For each row, the place of its equality on the column with the most constants; NONE if it has no equality."""
    for i in range(rows.size):
        start, best = table.starts[rows[i]], NONE
        for at in range(start, start + table.sizes[rows[i]]):
            is_equality = table.low[at] == table.high[at] and table.low[at] % 2 == 0
            if is_equality and (best == NONE or constants[table.columns[at]] > constants[table.columns[best]]):
                best = at
        chosen[i] = best


@kernel
def plant_rows(trees, table, chosen, first):
    """Ensure nodes for the ends of the chosen predicates, from `first` on. Returns how many predicates are done.

    A bulk load makes all nodes before any mark, so that rotations have no marks to move.
    """
    for i in range(first, chosen.size):
        if not settle(trees):
            return i
        at = chosen[i]
        if at == NONE:
            continue
        low_key, high_key = key_of_low(table.low[at]), key_of_high(table.high[at])
        if low_key > 0 and not _plant(trees, table.columns[at], low_key):
            return i
        if high_key < END and not _plant(trees, table.columns[at], high_key):
            return i
    return chosen.size


@kernel
def enter_rows(trees, lists, places, table, rows, chosen, first):
    """Add rows, from `first` on, to the lists of their intervals. Returns how many rows are done.

    The interval of a row is that of its chosen predicate. Its ends have nodes already.
    """
    for i in range(first, rows.size):
        interval, at = ALWAYS, chosen[i]
        if at != NONE:
            interval = find_interval(trees, table.columns[at], table.low[at], table.high[at])
            if interval == NONE:
                interval = add_interval(trees, table.columns[at], table.low[at], table.high[at])
                if interval == NONE:
                    return i
        # If room runs out here, a new interval stays without rows: the next call finds it.
        if not has_room(lists, needed(lists, interval)):
            trees.state[SHORT_OF] = SHORT_OF_CELLS
            return i
        places.intervals[rows[i]] = interval
        places.places[rows[i]] = lists.sizes[interval]
        append_to(lists, interval, rows[i])
    return rows.size


@kernel
def leave_rows(trees, lists, places, rows, first):
    """Remove rows, from `first` on, from their lists, and unused intervals and nodes from the trees.

    Returns how many rows are done, plus one once all pending work is done too.
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
                drop_interval(trees, interval)
    return rows.size + 1
