"""The tree of Gough and Smith (ACSC 1995; Le Subscribe, section 3.1, figure 3): one path for an event.

A node stands for the rows that an event can still match, and for the first level (a level is a column) on which one of
them has a predicate: levels on which none has one are left out. Its edges divide the labels where a predicate of its
rows begins or ends; rows without a predicate on its level go down every edge. The rows of a leaf match: they have no
further predicate. The first edge of a node begins at label 0, a missing value.

With sharing, equal sets of rows on one level are one node. Two sets are taken for equal if they have the same size and
the same 128 bits of a hash: the exclusive or of random numbers of their rows, which is cheap to update.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel

NONE = -1
BUILT, TOO_LARGE, NO_ROOM = range(3)
NODES, EDGES, CELLS = range(3)

_SCATTER = 0x1E37_79B1
_END = 1 << 32
# A change in a sweep is one integer: label, row (this many bits), and one bit for whether the row enters.
_ROW_BITS = 29
_LABEL_SHIFT = _ROW_BITS + 1
_EACH_ROW = (1 << _ROW_BITS) - 1


class LeveledRows(NamedTuple):
    """The predicates of the i-th row are those from `starts[i]` to `starts[i + 1]`, ordered by level."""

    starts: NDArray[np.int64]
    levels: NDArray[np.int32]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    hashes: NDArray[np.int64]
    """Two random numbers a row."""


class GoughTree(NamedTuple):
    """Nodes in the order in which they were made; the first is the root."""

    levels: NDArray[np.int32]
    """The level of each node; that of a leaf is the number of levels."""
    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    """The rows of node n are the `sizes[n]` cells from `starts[n]` on."""
    edge_starts: NDArray[np.int64]
    """The edges of node n are those from `edge_starts[n]` to `edge_starts[n + 1]`."""
    bounds: NDArray[np.uint32]
    """The least label of each edge."""
    targets: NDArray[np.int32]
    """The node to which each edge leads; NONE if no row can match."""
    cells: NDArray[np.int32]
    state: NDArray[np.int64]
    """How many nodes, edges and cells there are."""


class NodeHashes(NamedTuple):
    """Finds nodes by the hash of their rows, for sharing."""

    hashes: NDArray[np.int64]
    """Two a node."""
    buckets: NDArray[np.int32]
    """Open addressing. The size is a power of two, and exceeds the number of nodes."""


class Sweep(NamedTuple):
    """A sweep over the labels of a node, which makes its edges: the rows that can match at the current label."""

    base: NDArray[np.int32]
    """Rows without a predicate on this level: they are at every label."""
    active: NDArray[np.int32]
    """Rows whose predicate admits the current label."""
    places: NDArray[np.int32]
    """By row, its place in `active`."""
    following: NDArray[np.int32]
    """By row, the next level on which it has a predicate."""
    counts: NDArray[np.int64]
    """By level, how many of the rows at the current label have their next predicate there."""
    changes: NDArray[np.int64]
    """The labels at which rows become active or cease to be."""
    state: NDArray[np.int64]
    """The sizes of `base` and `active`, and the hash of both together."""


_BASE, _ACTIVE, _FIRST_HASH, _SECOND_HASH = range(4)


@kernel
def build(rows, levels, tree, by_hash, sweep, share, limit):
    """Build the tree of all rows. Returns BUILT; TOO_LARGE; or NO_ROOM if the arrays are too short.

    A tree is too large if its nodes, its edges and the rows of all nodes together exceed the limit.
    """
    count, state = rows.starts.size - 1, tree.state
    for row in range(count):
        start = rows.starts[row]
        sweep.following[row] = rows.levels[start] if start < rows.starts[row + 1] else levels
        sweep.base[row] = row
    _begin(rows, sweep, count)
    if _target(tree, by_hash, sweep, levels, share) == NONE:
        return NO_ROOM
    node = 0
    tree.edge_starts[0] = 0
    while node < state[NODES]:
        if tree.levels[node] < levels:
            outcome = _split(rows, levels, tree, by_hash, sweep, node, share, limit)
            if outcome != BUILT:
                return outcome
        node += 1
        tree.edge_starts[node] = state[EDGES]
    return BUILT


@kernel
def _begin(rows, sweep, count):
    """Begin a sweep with `count` rows in `base`, and none active."""
    state = sweep.state
    state[_BASE], state[_ACTIVE], state[_FIRST_HASH], state[_SECOND_HASH] = count, 0, 0, 0
    sweep.counts[:] = 0
    for i in range(count):
        _count(rows, sweep, sweep.base[i], 1)


@kernel
def _count(rows, sweep, row, by):
    """Add a row to those at the current label (`by` is 1), or remove it (-1)."""
    sweep.counts[sweep.following[row]] += by
    sweep.state[_FIRST_HASH] ^= rows.hashes[row, 0]
    sweep.state[_SECOND_HASH] ^= rows.hashes[row, 1]


@inner
def _activate(rows, sweep, row):
    size = sweep.state[_ACTIVE]
    sweep.active[size] = row
    sweep.places[row] = size
    sweep.state[_ACTIVE] = size + 1
    _count(rows, sweep, row, 1)


@inner
def _deactivate(rows, sweep, row):
    size = sweep.state[_ACTIVE] - 1
    last = sweep.active[size]
    sweep.active[sweep.places[row]] = last
    sweep.places[last] = sweep.places[row]
    sweep.state[_ACTIVE] = size
    _count(rows, sweep, row, -1)


@kernel
def _target(tree, by_hash, sweep, levels, share):
    """The node of the rows at the current label, on the first level on which one of them has a predicate.

    A missing node is made; NONE if there is no room for it.
    """
    level = 0
    while level < levels and sweep.counts[level] == 0:
        level += 1
    state, size = tree.state, sweep.state[_BASE] + sweep.state[_ACTIVE]
    first, second = sweep.state[_FIRST_HASH], sweep.state[_SECOND_HASH]
    mask = by_hash.buckets.size - 1
    bucket = (first ^ level * _SCATTER) & mask
    if share:
        while by_hash.buckets[bucket] != NONE:
            node = by_hash.buckets[bucket]
            is_hash = by_hash.hashes[node, 0] == first and by_hash.hashes[node, 1] == second
            if is_hash and tree.levels[node] == level and tree.sizes[node] == size:
                return node
            bucket = (bucket + 1) & mask
    node = state[NODES]
    if node == tree.levels.size or state[CELLS] + size > tree.cells.size:
        return NONE
    if share:
        by_hash.buckets[bucket] = node
        by_hash.hashes[node, 0], by_hash.hashes[node, 1] = first, second
    tree.levels[node], tree.starts[node], tree.sizes[node] = level, state[CELLS], size
    end = state[CELLS]
    for i in range(sweep.state[_BASE]):
        tree.cells[end + i] = sweep.base[i]
    end += sweep.state[_BASE]
    for i in range(sweep.state[_ACTIVE]):
        tree.cells[end + i] = sweep.active[i]
    state[NODES], state[CELLS] = node + 1, state[CELLS] + size
    return node


@kernel
def _change(label, row, enters):
    return (label << _LABEL_SHIFT) | (np.int64(row) << 1) | enters


@kernel
def _prepare_sweep(rows, sweep, tree, node, levels):
    """Put the rows of a node without a predicate on its level into `base`, and write the changes of the others.

    Returns how many changes there are.
    """
    level, base, count = tree.levels[node], 0, 0
    for i in range(tree.starts[node], tree.starts[node] + tree.sizes[node]):
        row = tree.cells[i]
        at, end = rows.starts[row], rows.starts[row + 1]
        while at < end and rows.levels[at] < level:
            at += 1
        has_predicate = at < end and rows.levels[at] == level
        following = at + np.int64(has_predicate)
        sweep.following[row] = rows.levels[following] if following < end else levels
        if not has_predicate:
            sweep.base[base] = row
            base += 1
            continue
        low, high = np.int64(rows.low[at]), np.int64(rows.high[at])
        if low > high:
            sweep.changes[count] = _change(np.int64(1), row, 1)
            count += 1
        sweep.changes[count] = _change(low, row, 1)
        sweep.changes[count + 1] = _change(high + 1, row, 0)
        count += 2
    _begin(rows, sweep, base)
    return count


@kernel
def _split(rows, levels, tree, by_hash, sweep, node, share, limit):
    """Make the edges of a node. Returns BUILT, TOO_LARGE or NO_ROOM."""
    state = tree.state
    count = _prepare_sweep(rows, sweep, tree, node, levels)
    changes = np.sort(sweep.changes[:count])
    first, label, at = state[EDGES], np.int64(0), 0
    of_base = np.int64(NONE)
    while label < _END:
        target = np.int64(NONE)
        if share and sweep.state[_ACTIVE] == 0 and of_base != NONE:
            target = of_base
        elif sweep.state[_BASE] + sweep.state[_ACTIVE] > 0:
            target = np.int64(_target(tree, by_hash, sweep, levels, share))
            if target == NONE:
                return NO_ROOM
            if sweep.state[_ACTIVE] == 0:
                of_base = target
        if state[EDGES] == first or tree.targets[state[EDGES] - 1] != target:
            if state[EDGES] == tree.bounds.size:
                return NO_ROOM
            tree.bounds[state[EDGES]] = label
            tree.targets[state[EDGES]] = target
            state[EDGES] += 1
        if state[NODES] + state[EDGES] + state[CELLS] > limit:
            return TOO_LARGE
        label = changes[at] >> _LABEL_SHIFT if at < count else np.int64(_END)
        while at < count and changes[at] >> _LABEL_SHIFT == label:
            row = changes[at] >> 1 & _EACH_ROW
            if changes[at] & 1:
                _activate(rows, sweep, row)
            else:
                _deactivate(rows, sweep, row)
            at += 1
    return BUILT


@kernel
def find_leaves(tree, columns, alive, count, codes, first, out, offsets, examined):
    """Write the rows of each event's leaf that are still alive, where they end, and how many rows the leaf has.

    `columns` has the column of each level. Returns the first event without room for `count` rows, or the end.
    """
    end = offsets[first]
    for event in range(first, codes.shape[1]):
        if out.size - end < count:
            return event
        node = np.int64(0 if tree.state[NODES] > 0 else NONE)
        while node != NONE and tree.levels[node] < columns.size:
            label = codes[columns[tree.levels[node]], event]
            low, high = tree.edge_starts[node], tree.edge_starts[node + 1]
            while high - low > 1:
                middle = (low + high) >> 1
                if tree.bounds[middle] <= label:
                    low = middle
                else:
                    high = middle
            node = np.int64(tree.targets[low])
        examined[event] = 0
        if node != NONE:
            examined[event] = tree.sizes[node]
            for i in range(tree.starts[node], tree.starts[node] + tree.sizes[node]):
                if alive[tree.cells[i]]:
                    out[end] = tree.cells[i]
                    end += 1
        offsets[event + 1] = end
    return codes.shape[1]
