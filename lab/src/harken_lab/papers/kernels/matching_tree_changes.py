"""How rows are added to Gryphon's tree and removed (Aguilera et al., PODC 1999, section 3 and appendix A).

A row walks down from the root with its tests in order. At a node with the row's next test, it takes the edge of its
result. At a node whose test comes earlier in the order, it takes the edge that its own predicate implies, or the
*-edge. If the test of the node comes later, or there is no node, a new node is made for the row's test, with a *-edge
to the old node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken_lab.papers.kernels.matching_tree_kernels import (
    BEFORE,
    BY_LABEL,
    BY_STAR,
    COLUMN,
    ENTRIES,
    ENTRY_FREE,
    ENTRY_TOP,
    EXAMINE,
    FACTOR,
    FIRST,
    HASHED,
    HIGH,
    KIND,
    LEAF,
    LEAF_OF,
    LOW,
    MORE,
    NEXT,
    NO_LABEL,
    NODES,
    NONE,
    PARENT,
    RANGE,
    ROOT,
    ROW,
    STAR,
    decided,
    end_of,
    free_node,
    has_results,
    lead,
    new_node,
    unlead,
)

_LOW_BITS = 0xFFFF_FFFF
_SCATTER = 0x5EB5_AE35
# Rows are sorted by this many first tests, and by this many bits of each.
_SORTED, _BITS = 3, 20


class Order(NamedTuple):
    """The order of tests: by rank of the column, and in a column the examination before the ranges."""

    ranks: NDArray[np.int32]
    """The rank of each column."""
    columns: NDArray[np.int32]
    """The column of each rank. Columns that are factored out come first."""
    factors: int
    """How many columns are factored out."""
    has_levels: bool
    """Whether a row examines every column, also those on which it has no predicate."""


class Tests(NamedTuple):
    """The tests of one row, in their order. An examination with label 0 takes the *-edge."""

    kinds: NDArray[np.int8]
    columns: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    spine: NDArray[np.int32]
    """By rank: the last node, along *-edges from the root, that tests a column of a lower rank; a cache."""


@kernel
def _mixed(key):
    """Scramble a number of 32 bits."""
    for _ in range(2):
        key = ((key ^ key >> 15) * _SCATTER) & _LOW_BITS
    return key ^ key >> 16


@kernel
def sort_keys(table, order, rows, keys, tests, out):
    """Write two keys per row, by which rows are sorted before they are added.

    Rows with the same first tests, and equal rows, are then adjacent, which makes walks cheap. Otherwise the order is
    random, because range tests in sorted order would make a chain.
    """
    for at in range(rows.size):
        count = _tests_of(table, order, rows[at], keys[at], tests)
        first, all_tests = np.int64(0), np.int64(0)
        for i in range(count):
            bounds = _mixed(np.int64(tests.low[i])) ^ np.int64(tests.high[i])
            test = _mixed(_mixed(bounds) ^ np.int64(tests.columns[i]))
            all_tests = _mixed(all_tests ^ test)
            if i < _SORTED:
                first = first << _BITS | test & ((1 << _BITS) - 1)
        out[0, at], out[1, at] = first << _BITS * max(_SORTED - count, 0), all_tests


@kernel
def insert_rows(tree, table, order, rows, keys, tests, first, most):
    """Add rows, from `first` on, until there is no room or there are too many nodes. Returns how many are done.

    `keys` has the label of the subtree for every column that is factored out, 0 for other labels. A row may be listed
    several times, with different keys.
    """
    tests.spine[:] = NONE
    for at in range(first, rows.size):
        if tree.state[NODES] > most:
            return at
        count = _tests_of(table, order, rows[at], keys[at], tests)
        if not _has_room(tree, count + 1):
            return at
        _enter(tree, _leaf_of(tree, order, tests, count), rows[at])
    return rows.size


@inner
def _has_room(tree, nodes):
    """Whether there is room for one more entry with this many new nodes and edges."""
    state = tree.state
    return (
        state[NODES] + nodes <= tree.nodes.shape[0]
        and 2 * (state[HASHED] + nodes) <= tree.slots.shape[0]
        and state[ENTRIES] < tree.entries.shape[0]
    )


@kernel
def _set(tests, at, kind, column, low, high):
    tests.kinds[at], tests.columns[at], tests.low[at], tests.high[at] = kind, column, low, high


@kernel
def _copy(tests, source, target):
    _set(tests, target, tests.kinds[source], tests.columns[source], tests.low[source], tests.high[source])


@inner
def _tests_of(table, order, row, keys, tests):
    """Write the tests of a row. Returns how many there are."""
    for i in range(order.factors):
        _set(tests, i, FACTOR, order.columns[i], keys[i], NO_LABEL)
    count = order.factors
    start = table.starts[row]
    for at in range(start, start + table.sizes[row]):
        rank = order.ranks[table.columns[at]]
        if rank < order.factors and keys[rank] != NO_LABEL:
            continue
        to = count
        while to > order.factors and order.ranks[tests.columns[to - 1]] > rank:
            _copy(tests, to - 1, to)
            to -= 1
        kind = EXAMINE if table.low[at] == table.high[at] else RANGE
        _set(tests, to, kind, table.columns[at], table.low[at], table.high[at])
        count += 1
    return _with_levels(order, tests, count) if order.has_levels else count


@inner
def _with_levels(order, tests, count):
    """Add an examination with label 0 for every column that is not tested. Returns how many tests there are."""
    source = count - 1
    missing = order.columns.size - order.factors
    for at in range(order.factors, count):
        missing -= order.ranks[tests.columns[at]] >= order.factors
    target = count + missing - 1
    for rank in range(order.columns.size - 1, order.factors - 1, -1):
        if source >= order.factors and order.ranks[tests.columns[source]] == rank:
            _copy(tests, source, target)
            source -= 1
        else:
            _set(tests, target, EXAMINE, order.columns[rank], NO_LABEL, NO_LABEL)
        target -= 1
    return count + missing


@inner
def _comes_first(tree, order, node, tests, at):
    """Whether a test belongs above a node."""
    kind = tree.nodes[node, KIND]
    if kind == LEAF:
        return True
    if tests.kinds[at] == FACTOR:
        return False
    rank, other = order.ranks[tests.columns[at]], order.ranks[tree.nodes[node, COLUMN]]
    return rank < other or (rank == other and tests.kinds[at] == EXAMINE and kind == RANGE)


@inner
def _edge(tree, node, tests, at):
    """The edge of a node that a row with this next test takes."""
    kind = tree.nodes[node, KIND]
    if tree.nodes[node, COLUMN] != tests.columns[at] or (kind != RANGE and tests.low[at] == NO_LABEL):
        return BY_STAR
    if kind == tests.kinds[at] and kind != RANGE:
        return BY_LABEL
    if kind != RANGE:
        return BY_STAR
    return decided(tests.low[at], tests.high[at], tree.labels[node, LOW], tree.labels[node, HIGH])


@kernel
def _is_same(tree, node, tests, at):
    kind = tree.nodes[node, KIND]
    if kind != tests.kinds[at] or tree.nodes[node, COLUMN] != tests.columns[at]:
        return False
    return kind != RANGE or (tree.labels[node, LOW] == tests.low[at] and tree.labels[node, HIGH] == tests.high[at])


@kernel
def _passed(tree, order, tests):
    """The last node along *-edges from the root that a row passes before its first test; NONE if it passes none."""
    rank = order.ranks[tests.columns[0]]
    parent = np.int64(tests.spine[rank])
    node = tree.state[ROOT] if parent == NONE else np.int64(tree.nodes[parent, STAR])
    while node != NONE and tree.nodes[node, KIND] != LEAF and order.ranks[tree.nodes[node, COLUMN]] < rank:
        parent, node = node, np.int64(tree.nodes[node, STAR])
    tests.spine[rank] = parent
    return parent


@kernel
def _leaf_of(tree, order, tests, count):
    """The leaf for a row with these tests. Missing nodes on the path to it are made."""
    parent, edge, label = np.int64(NONE), BY_STAR, NO_LABEL
    node = tree.state[ROOT]
    if count and not order.factors:
        parent = _passed(tree, order, tests)
        node = node if parent == NONE else np.int64(tree.nodes[parent, STAR])
    at = 0
    while at < count:
        if node == NONE or _comes_first(tree, order, node, tests, at):
            below = node
            node = new_node(tree, tests.kinds[at], tests.columns[at], tests.low[at], tests.high[at])
            lead(tree, parent, edge, label, node)
            if below != NONE:
                lead(tree, node, BY_STAR, NO_LABEL, below)
        parent, edge = node, _edge(tree, node, tests, at)
        label = tests.low[at] if edge == BY_LABEL else NO_LABEL
        at += _is_same(tree, node, tests, at)
        node = end_of(tree, parent, edge, label)
    while node != NONE and tree.nodes[node, KIND] != LEAF:
        parent, edge, label = node, BY_STAR, NO_LABEL
        node = np.int64(tree.nodes[node, STAR])
    if node == NONE:
        node = new_node(tree, LEAF, NONE, NO_LABEL, NO_LABEL)
        lead(tree, parent, edge, label, node)
    return node


@kernel
def _enter(tree, leaf, row):
    """Put a row into a leaf."""
    entries = tree.entries
    entry = tree.state[ENTRY_FREE]
    if entry == NONE:
        entry = tree.state[ENTRY_TOP]
        tree.state[ENTRY_TOP] += 1
    else:
        tree.state[ENTRY_FREE] = entries[entry, NEXT]
    behind = tree.nodes[leaf, FIRST]
    if behind != NONE:
        entries[behind, BEFORE] = entry
    entries[entry, ROW], entries[entry, LEAF_OF], entries[entry, MORE] = row, leaf, tree.of_rows[row]
    entries[entry, NEXT], entries[entry, BEFORE] = behind, NONE
    tree.nodes[leaf, FIRST], tree.of_rows[row] = entry, entry
    tree.state[ENTRIES] += 1


@kernel
def delete_rows(tree, rows, collapses):
    """Remove rows from all their leaves. With `collapses`, nodes left with only a *-edge are removed too."""
    for i in range(rows.size):
        entry = tree.of_rows[rows[i]]
        tree.of_rows[rows[i]] = NONE
        while entry != NONE:
            following = tree.entries[entry, MORE]
            _leave(tree, entry, collapses)
            entry = following


@kernel
def delete_subtrees(tree, dead, collapses):
    """Remove all rows from the subtrees of dead factored labels: column << 32 | label, ascending."""
    for entry in range(tree.state[ENTRY_TOP]):
        row = tree.entries[entry, ROW]
        if row == NONE or not _is_below(tree, tree.entries[entry, LEAF_OF], dead):
            continue
        following = tree.entries[entry, MORE]
        other = tree.of_rows[row]
        if other == entry:
            tree.of_rows[row] = following
        else:
            while tree.entries[other, MORE] != entry:
                other = tree.entries[other, MORE]
            tree.entries[other, MORE] = following
        _leave(tree, entry, collapses)


@kernel
def _is_below(tree, node, dead):
    """Whether the path to a node has one of these factored labels."""
    parent = tree.nodes[node, PARENT]
    while parent != NONE:
        if tree.nodes[parent, KIND] == FACTOR:
            key = np.int64(tree.nodes[parent, COLUMN]) << 32 | np.int64(tree.marks[node])
            at = np.searchsorted(dead, key)
            if at < dead.size and dead[at] == key:
                return True
        node, parent = parent, tree.nodes[parent, PARENT]
    return False


@kernel
def _leave(tree, entry, collapses):
    """Remove an entry from its leaf, and the leaf if it is empty."""
    entries = tree.entries
    leaf, before, behind = entries[entry, LEAF_OF], entries[entry, BEFORE], entries[entry, NEXT]
    if behind != NONE:
        entries[behind, BEFORE] = before
    if before != NONE:
        entries[before, NEXT] = behind
    else:
        tree.nodes[leaf, FIRST] = behind
    entries[entry, ROW], entries[entry, NEXT] = NONE, tree.state[ENTRY_FREE]
    tree.state[ENTRY_FREE] = entry
    tree.state[ENTRIES] -= 1
    if tree.nodes[leaf, FIRST] == NONE:
        _prune(tree, leaf, collapses)


@kernel
def _prune(tree, node, collapses):
    """Remove a node without edges, and nodes above it that are left without edges.

    With `collapses`, a node that is left with only a *-edge is removed too.
    """
    while node != NONE:
        parent = tree.nodes[node, PARENT]
        unlead(tree, parent, tree.edges[node], tree.marks[node])
        free_node(tree, node)
        if parent == NONE or has_results(tree, parent):
            return
        below = tree.nodes[parent, STAR]
        if below != NONE:
            if collapses and tree.nodes[parent, KIND] != FACTOR:
                lead(tree, tree.nodes[parent, PARENT], tree.edges[parent], tree.marks[parent], below)
                free_node(tree, parent)
            return
        node = parent
