"""The marks of intervals in the trees of interval_tree.py, and the intervals that have them.

A mark is on a list of its node and on the list of its interval's marks. So an interval can be removed with all its
marks, and a rotation can move single marks.
"""

from __future__ import annotations

import numpy as np

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.interval_tree import (
    ABOVE,
    AFTER,
    BEFORE,
    BELOW,
    COLUMN,
    DOOMED_COLUMN,
    DOOMED_HIGH,
    DOOMED_LOW,
    END,
    ENDS,
    EQUAL,
    FIRST_MARK,
    FLAG,
    FOLLOWING,
    FREE_INTERVAL,
    FREE_MARK,
    HIGH,
    INTERVALS,
    KEY,
    LEFT,
    LOW,
    MARKED,
    MARKS,
    NEXT,
    NODE_FIELDS,
    NONE,
    PREVIOUS,
    SHORT_OF,
    SHORT_OF_INTERVALS,
    SHORT_OF_MARKS,
    SHORTAGE,
    SLOT,
    TOP_INTERVAL,
    TOP_MARK,
    find_node,
    key_of_high,
    key_of_low,
)

_SCATTER, _MIX, _LOW_BITS = 0x1E37_79B1, 0x05EB_CA77, 0xFFFF_FFFF


# Lists of marks


@inner
def room_for_marks(trees, count):
    """Whether there is room for this many more marks. If not, the shortage is recorded."""
    state = trees.state
    if state[MARKS] + count <= trees.marks.shape[0]:
        return True
    state[SHORT_OF] = SHORT_OF_MARKS
    state[SHORTAGE] = count
    return False


@inner
def link_mark(trees, mark, node, kind):
    """Put a mark at the head of a list of a node."""
    marks, head = trees.marks, trees.nodes[node, kind]
    marks[mark, SLOT] = NODE_FIELDS * node + kind
    marks[mark, BEFORE] = NONE
    marks[mark, AFTER] = head
    if head != NONE:
        marks[head, BEFORE] = mark
    trees.nodes[node, kind] = mark


@inner
def unlink_mark(trees, mark):
    """Remove a mark from its list."""
    marks = trees.marks
    before, after = marks[mark, BEFORE], marks[mark, AFTER]
    if before == NONE:
        trees.nodes[marks[mark, SLOT] // NODE_FIELDS, marks[mark, SLOT] % NODE_FIELDS] = after
    else:
        marks[before, AFTER] = after
    if after != NONE:
        marks[after, BEFORE] = before


@inner
def add_mark(trees, node, kind, interval):
    """Put a mark of an interval on a list of a node. There is room for it."""
    state, marks = trees.state, trees.marks
    mark = state[FREE_MARK]
    if mark == NONE:
        mark = state[TOP_MARK]
        state[TOP_MARK] += 1
    else:
        state[FREE_MARK] = marks[mark, AFTER]
    state[MARKS] += 1
    link_mark(trees, mark, node, kind)
    head = trees.intervals[interval, FIRST_MARK]
    marks[mark, MARKED] = interval
    marks[mark, PREVIOUS] = NONE
    marks[mark, NEXT] = head
    if head != NONE:
        marks[head, PREVIOUS] = mark
    trees.intervals[interval, FIRST_MARK] = mark


@inner
def erase_mark(trees, mark):
    """Remove a mark from its node and its interval, and free it."""
    state, marks = trees.state, trees.marks
    unlink_mark(trees, mark)
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


@inner
def count_marks(trees, node, kind):
    """How many marks are on a list of a node."""
    count = 0
    mark = trees.nodes[node, kind]
    while mark != NONE:
        count += 1
        mark = trees.marks[mark, AFTER]
    return count


# Where an interval is marked


@inner
def _cover_part(trees, interval, low, high):
    """Mark an interval at the nodes for the labels from low to high. There is room, and both ends have nodes."""
    root = trees.roots[trees.intervals[interval, COLUMN]]
    low_key, high_key = key_of_low(low), key_of_high(high)
    if low_key > 0:
        node, top = root, 2 * END
        while node != NONE:
            key = trees.nodes[node, KEY]
            if low_key <= key:
                if low <= key <= high:
                    add_mark(trees, node, EQUAL, interval)
                if high >= top - 1:
                    add_mark(trees, node, ABOVE, interval)
                top = key
            if low_key == key:
                break
            node = trees.nodes[node, LEFT + (low_key > key)]
    node, bottom, top = root, np.int64(0), np.int64(2 * END)
    while node != NONE:
        key = trees.nodes[node, KEY]
        # Nodes whose range contains the lower end have been marked on the path to it.
        if high_key >= key and not (bottom < low_key < top):
            add_mark(trees, node, BELOW, interval)
            if high >= key:
                add_mark(trees, node, EQUAL, interval)
        if high_key == key:
            break
        if high_key > key:
            bottom = key
        else:
            top = key
        node = trees.nodes[node, LEFT + (high_key > key)]


@kernel
def cover(trees, interval):
    """Set all marks of an interval except those of its ends."""
    low, high = np.int64(trees.intervals[interval, LOW]), np.int64(trees.intervals[interval, HIGH])
    if low <= high:
        _cover_part(trees, interval, low, high)
    else:
        _cover_part(trees, interval, np.int64(1), high)
        _cover_part(trees, interval, low, np.int64(END - 1))


@inner
def uncover(trees, interval):
    """Erase all marks of an interval except those of its ends."""
    mark = trees.intervals[interval, FIRST_MARK]
    while mark != NONE:
        following = trees.marks[mark, NEXT]
        if trees.marks[mark, SLOT] % NODE_FIELDS != ENDS:
            erase_mark(trees, mark)
        mark = following


@inner
def most_marks(trees, column):
    """An upper bound on the marks of an interval of a column."""
    root = trees.nodes[trees.roots[column], LEFT]
    return 4 * (trees.heights[root] if root != NONE else 0) + 8


# Intervals


@kernel
def _bucket(column, low, high, count):
    """The bucket of an interval. Products of 32 by 31 bits never overflow."""
    mixed = np.int64(low) * _SCATTER ^ (np.int64(high) * _MIX >> 3) ^ np.int64(column) * _SCATTER
    return (mixed ^ mixed >> 17) & _LOW_BITS & (count - 1)


@kernel
def rehash(trees):
    """Put all intervals into empty buckets."""
    intervals = trees.intervals
    for interval in range(1, trees.state[TOP_INTERVAL]):
        column, low, high = intervals[interval, COLUMN], intervals[interval, LOW], intervals[interval, HIGH]
        if column != NONE:
            bucket = _bucket(column, low, high, trees.buckets.size)
            intervals[interval, FOLLOWING] = trees.buckets[bucket]
            trees.buckets[bucket] = interval


@inner
def find_interval(trees, column, low, high):
    """The interval with these labels, or NONE."""
    intervals = trees.intervals
    interval = trees.buckets[_bucket(column, low, high, trees.buckets.size)]
    while interval != NONE:
        is_labels = intervals[interval, LOW] == low and intervals[interval, HIGH] == high
        if is_labels and intervals[interval, COLUMN] == column:
            return interval
        interval = intervals[interval, FOLLOWING]
    return NONE


@inner
def add_interval(trees, column, low, high):
    """Make an interval and its marks; its ends have nodes already. Returns NONE if there is no room."""
    state, intervals = trees.state, trees.intervals
    if state[FREE_INTERVAL] == NONE and state[TOP_INTERVAL] == intervals.shape[0]:
        state[SHORT_OF] = SHORT_OF_INTERVALS
        return NONE
    if not room_for_marks(trees, most_marks(trees, column)):
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
    low_key, high_key = key_of_low(low), key_of_high(high)
    if low_key > 0:
        add_mark(trees, find_node(trees, column, low_key), ENDS, interval)
    if high_key < END and high_key != low_key:
        add_mark(trees, find_node(trees, column, high_key), ENDS, interval)
    cover(trees, interval)
    return interval


@inner
def drop_interval(trees, interval):
    """Remove an interval that no row has, and note the nodes of its ends for removal by `settle`."""
    state, intervals = trees.state, trees.intervals
    column = intervals[interval, COLUMN]
    mark = intervals[interval, FIRST_MARK]
    while mark != NONE:
        following = trees.marks[mark, NEXT]
        erase_mark(trees, mark)
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
    low_key, high_key = key_of_low(low), key_of_high(high)
    state[DOOMED_LOW] = low_key
    state[DOOMED_HIGH] = high_key if high_key < END and high_key != low_key else 0
