"""A tree in which one path leads an event to all subscriptions that it matches (Gough and Smith).

As Le Subscribe describes it (section 3.1, figure 3) after Gough and Smith, ACSC 1995: a level for each column, an edge
for each elementary interval of the labels that the rows of a node tell apart. Matching costs a binary search a level,
whatever the number of subscriptions; but a row is in every leaf that events matching it can reach, so the tree grows
with the combinations of predicates. The first level is the column on which most rows have a predicate, because rows
without one are copied to each of its edges. Of the orders measured none was best everywhere, and this one was
never far from the best: 100 rows of stock have 500 nodes (2,463 with the most constants first), 25 of gryphon 193
(3,631 with the fewest first), and 100 of le-subscribe 51,767 (33,446 with the fewest first).

A tree cannot be changed: it is built from scratch, as the paper says. An addition builds it at once, and is rejected if
the tree would be larger than `max_tree_nodes`. If the constants are so few that no tree of them could be too large, the
next match builds the tree instead. Removed rows are left out of the answers until they are more than the rest; then the
tree is rebuilt.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError, LimitError
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Trait
from harken_lab.papers.kernels.gough_kernels import (
    BUILT,
    EDGES,
    NO_ROOM,
    NODES,
    NONE,
    GoughTree,
    LeveledRows,
    NodeHashes,
    Sweep,
    build,
    find_leaves,
)
from harken_lab.papers.labelled_rows import LabelledRows, predicates_of
from harken_lab.papers.row_matcher import UNLIMITED, RowMatcher, RowSearch

# Initial room for nodes, edges and cells: in all, or per row, whichever is more.
_FIRST_ROOM = 1 << 16
_A_ROW = 4
_SEED = 1995


class Gough(RowMatcher):
    """The matcher. With `share`, equal sets of rows are one node, which keeps the tree smaller."""

    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS, share: bool = True) -> None:
        if not isinstance(share, bool):
            raise CapabilityError(f"`share` is True or False, not {share!r}")
        super().__init__(limits)
        self.share = share
        self._builds = 0
        self._order = np.empty(0, np.int32)
        """The column of each level in the last tree."""
        self._clear()

    def _insert(self, rows: NDArray[np.int32]) -> None:
        if self._surely_fits():
            self._is_stale = True
        else:
            self._build()

    def _delete(self, rows: NDArray[np.int32]) -> None:
        if self._is_stale:
            return
        self._alive[rows] = 0
        self._removed += len(rows)
        self._is_stale = self._removed > self.rows.count - len(rows)

    def _clear(self) -> None:
        self._tree = _empty_tree(0, 0, 0)
        self._alive = np.empty(0, np.uint8)
        self._removed = 0
        self._is_stale = False

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        self._refresh()
        done: int = find_leaves(
            self._tree, self._order, self._alive, self.rows.count, codes, first, out, offsets, examined
        )
        return done

    def _memory(self) -> dict[str, int]:
        self._refresh()
        tree = self._tree
        return {
            "nodes": sum(each.nbytes for each in (tree.levels, tree.starts, tree.sizes, tree.edge_starts)),
            "edges": tree.bounds.nbytes + tree.targets.nbytes,
            "cells": tree.cells.nbytes + self._alive.nbytes,
        }

    def _details(self) -> dict[str, Any]:
        self._refresh()
        tree = self._tree
        return {
            "share": self.share,
            "nodes": len(tree.levels),
            "edges": len(tree.bounds),
            "cells": len(tree.cells),
            "depth": _depth(tree),
            "builds": self._builds,
        }

    def _surely_fits(self) -> bool:
        """Whether even a tree with a path for each combination of constants and gaps would be within the limit.

        With k constants a node has at most 2k + 2 edges. Each level at least doubles the paths, so all levels together
        have at most twice as many nodes as the last level, and as many edges. Each node has at most all rows.
        """
        most = 2 * (2 + self.rows.count)
        for dictionary in self.rows.dictionaries:
            most *= 2 * len(dictionary) + 2
            if most > self.limits.max_tree_nodes:
                return False
        return most <= self.limits.max_tree_nodes

    def _refresh(self) -> None:
        """Build the tree if it is out of date. It cannot exceed the limit then."""
        if self._is_stale:
            self._build()

    def _build(self) -> None:
        alive = self.rows.alive()
        best = _order(self.rows, alive)
        # In the order of the last tree, a tree of fewer rows is never larger: accepted rows can always be rebuilt.
        last = np.concatenate([self._order, np.setdiff1d(best, self._order).astype(np.int32)])
        if self.limits.max_tree_nodes == UNLIMITED and len(self._order):
            best = last
        tree = _built(self.rows, alive, best, self.share, self.limits.max_tree_nodes)
        if tree is None and len(self._order) and not np.array_equal(best, last):
            best = last
            tree = _built(self.rows, alive, last, self.share, self.limits.max_tree_nodes)
        if tree is None:
            raise LimitError(
                f"the tree of {len(alive):,} rows has more than {self.limits.max_tree_nodes:,} nodes, edges and cells",
                limit="max_tree_nodes",
                hint="`gough` grows with the combinations of predicates; "
                "`columnar`, `counting_lists` and `hanson` do not",
            )
        self._tree, self._order = tree, best
        self._alive = np.zeros(self.rows.size, np.uint8)
        self._alive[alive] = 1
        self._removed, self._is_stale = 0, False
        self._builds += 1


def _order(rows: LabelledRows, alive: NDArray[np.int32]) -> NDArray[np.int32]:
    """The columns, those with predicates of most rows first."""
    _, places = predicates_of(rows.table, alive)
    counts = np.bincount(rows.table.columns[places], minlength=len(rows.columns))
    return np.argsort(-counts, kind="stable").astype(np.int32)


def _leveled(rows: LabelledRows, alive: NDArray[np.int32], order: NDArray[np.int32]) -> LeveledRows:
    """The predicates of the rows, ordered by level."""
    table = rows.table
    owners, places = predicates_of(table, alive)
    level_of = np.empty(len(order), np.int32)
    level_of[order] = np.arange(len(order))
    levels = level_of[table.columns[places]]
    sorting = np.lexsort((levels, owners))
    places = places[sorting]
    starts = np.append(0, np.cumsum(table.sizes[alive], dtype=np.int64))
    whole = np.iinfo(np.int64)
    hashes = np.random.default_rng(_SEED).integers(whole.min, whole.max, (len(alive), 2))
    return LeveledRows(starts, levels[sorting], table.low[places], table.high[places], hashes)


def _built(
    rows: LabelledRows, alive: NDArray[np.int32], order: NDArray[np.int32], share: bool, limit: int
) -> GoughTree | None:
    """The tree whose levels are the columns in this order; None if it is too large."""
    if not len(alive):
        return _empty_tree(0, 0, 0)
    leveled = _leveled(rows, alive, order)
    sweep = _sweep(len(alive), len(order))
    room = min(max(_FIRST_ROOM, _A_ROW * len(alive)), limit + 1)
    while True:
        tree = _empty_tree(room, room, room)
        by_hash = NodeHashes(np.empty((room, 2), np.int64), np.full(1 << (2 * room).bit_length(), NONE, np.int32))
        outcome = build(leveled, len(order), tree, by_hash, sweep, share, limit)
        if outcome == BUILT:
            return _only_leaves(tree, alive, len(order))
        if outcome != NO_ROOM or room > limit:
            return None
        # Retry with more room: all failed attempts together cost less than the last one.
        room = min(4 * room, limit + 1)


def _sweep(rows: int, levels: int) -> Sweep:
    return Sweep(
        base=np.empty(rows, np.int32),
        active=np.empty(rows, np.int32),
        places=np.empty(rows, np.int32),
        following=np.empty(rows, np.int32),
        counts=np.empty(levels + 1, np.int64),
        changes=np.empty(3 * rows, np.int64),
        state=np.zeros(4, np.int64),
    )


def _empty_tree(nodes: int, edges: int, cells: int) -> GoughTree:
    return GoughTree(
        levels=np.empty(nodes, np.int32),
        starts=np.empty(nodes, np.int64),
        sizes=np.empty(nodes, np.int32),
        edge_starts=np.empty(nodes + 1, np.int64),
        bounds=np.empty(edges, np.uint32),
        targets=np.empty(edges, np.int32),
        cells=np.empty(cells, np.int32),
        state=np.zeros(3, np.int64),
    )


def _only_leaves(tree: GoughTree, alive: NDArray[np.int32], levels: int) -> GoughTree:
    """The tree in arrays that fit, with the rows of its leaves only."""
    nodes, edges = int(tree.state[NODES]), int(tree.state[EDGES])
    level, starts = tree.levels[:nodes].copy(), tree.starts[:nodes]
    sizes = np.where(level == levels, tree.sizes[:nodes], 0).astype(np.int32)
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    places = np.repeat(starts - begins, sizes) + np.arange(sizes.sum())
    return GoughTree(
        levels=level,
        starts=begins,
        sizes=sizes,
        edge_starts=tree.edge_starts[: nodes + 1].copy(),
        bounds=tree.bounds[:edges].copy(),
        targets=tree.targets[:edges].copy(),
        cells=alive[tree.cells[places]],
        state=np.array([nodes, edges, len(places)], np.int64),
    )


def _depth(tree: GoughTree) -> int:
    """Nodes on the longest path, including the leaf."""
    depths = np.ones(len(tree.levels), np.int64)
    sources = np.repeat(np.arange(len(tree.levels)), np.diff(tree.edge_starts[: len(tree.levels) + 1]))
    edges_to_nodes = np.flatnonzero(tree.targets != NONE)
    source_levels = tree.levels[sources[edges_to_nodes]]
    # Edges lead to later levels, so all edges into a level come before those out of it.
    for level in np.unique(source_levels).tolist():
        edges = edges_to_nodes[source_levels == level]
        np.maximum.at(depths, tree.targets[edges], depths[sources[edges]] + 1)
    return int(depths.max(initial=0))
