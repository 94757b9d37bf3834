"""A tree of tests, in which an event follows the edges of its results (Aguilera et al., Gryphon, PODC 1999).

An inner node is a test, and its edges are the results. A *-edge is for rows that do not depend on the test. A leaf has
the rows whose tests are those on the path to it. The tests of a row are in a fixed order, by column. With
`test_order="popularity"` the columns on which most rows of the first load have a predicate come first; an equality
counts twice, because one test serves all values, while a range has a test of its own. With "given" columns are in the
order in which they were added. Later columns are appended, and the order stays until the tree is empty. If all
predicates are equalities, the tree is the paper's special case: a level an attribute.

In a column the examination of its value comes first. Its range tests follow below each other in the order in which they
were added, as in the paper's appendix: at a range test of its own column a row takes the edge for *yes* if its interval
lies in that of the test, the edge for *no* if it lies outside, and else the *-edge. An event takes the edge for no if
it has a value, and that lies outside. So nested ranges make a search tree. Rows that are added together enter the tree
in random order, because ranges in sorted order would make a chain.

The optimisations of section 5 change which nodes are visited, not the result:

- `collapse`: a node that has only a *-edge is left out. Without this option every row examines every column.
- `successors`: a search that continues from a node without a result skips tests that its path has decided already: see
  matching_tree_search.py. With `successors=True` they are computed when a search first needs them, and dropped
  at any change: changes cost nothing more, and the searches after them pay. With `successors="ahead"`, as in the paper,
  all are computed beforehand and maintained by changes: see matching_tree_successors.py. It differs from the paper in
  that a list has 64 successors at most.
- `factor=N`: the N columns on which most rows of the first load have an equality are factored out: see
  matching_tree_factoring.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.errors import CapabilityError, LimitError
from harken.limits import DEFAULT_LIMITS, Limits
from harken_lab.papers.kernels.matching_tree_changes import (
    Order,
    Tests,
    delete_rows,
    delete_subtrees,
    insert_rows,
    sort_keys,
)
from harken_lab.papers.kernels.matching_tree_kernels import (
    END,
    ENTRIES,
    ENTRY_FREE,
    FREE,
    HASHED,
    LEAVES,
    NODES,
    NONE,
    ROOT,
    STATES,
    UNUSED,
    TreeNodes,
    depth_of,
    rehash,
)
from harken_lab.papers.kernels.matching_tree_search import IS_FULL, find, find_with_successors
from harken_lab.papers.labelled_rows import grown, longer, predicates_of
from harken_lab.papers.matching_tree_factoring import Factoring
from harken_lab.papers.matching_tree_successors import AheadSuccessors, SuccessorCache
from harken_lab.papers.row_matcher import RowMatcher, RowSearch

_ORDERS = ("popularity", "given")
AHEAD = "ahead"


class MatchingTree(RowMatcher):
    """The matcher."""

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        test_order: str = "popularity",
        collapse: bool = True,
        successors: bool | str = True,
        factor: int = 0,
    ) -> None:
        if test_order not in _ORDERS:
            raise CapabilityError(f"`test_order` is one of {', '.join(_ORDERS)}, not {test_order!r}")
        if not isinstance(collapse, bool) or not (isinstance(successors, bool) or successors == AHEAD):
            raise CapabilityError(f"`collapse` is True or False, and `successors` True, False or {AHEAD!r}")
        if not isinstance(factor, int) or isinstance(factor, bool) or factor < 0:
            raise CapabilityError(f"`factor` is the number of columns that are factored out, not {factor!r}")
        super().__init__(limits)
        self._options = {"test_order": test_order, "collapse": collapse, "successors": successors, "factor": factor}
        self._collapses, self._is_by_popularity, self._most_factors = collapse, test_order == "popularity", factor
        self._tree = _GrowingTree()
        kind = AheadSuccessors if successors == AHEAD else SuccessorCache
        self._successors = kind() if successors else None
        self._columns: list[int] = []
        """The order of columns."""
        self._factoring = Factoring(self.rows, [])

    def _insert(self, rows: NDArray[np.int32]) -> None:
        if not len(rows):
            return
        columns, factored = self._columns.copy(), self._factoring.columns
        self._ensure_order(rows)
        self._tree.ensure_rows(self.rows.size)
        try:
            if self._factoring.columns:
                self._insert_factored(rows)
            else:
                self._enter(rows, np.empty((len(rows), 0), np.uint32))
        except LimitError:
            self._delete(rows)
            self._drop_dead()
            if columns and not self._columns:
                self._columns, self._factoring = columns, Factoring(self.rows, factored)
            raise

    def _insert_factored(self, rows: NDArray[np.int32]) -> None:
        """Add rows: existing rows enter the new subtrees first, then the new rows enter all their subtrees."""
        factoring = self._factoring
        new = factoring.new_labels(rows)
        factoring.count(rows, 1)
        if any(len(each) for each in new):
            others = np.setdiff1d(self.rows.alive(), rows)
            for place, labels in enumerate(new):
                factoring.labels[place] = np.union1d(factoring.labels[place], labels)
                if len(labels) and len(others):
                    self._enter_subtrees(others, place, labels)
        self._enter_subtrees(rows)

    def _enter_subtrees(
        self, rows: NDArray[np.int32], place: int = NONE, labels: NDArray[np.uint32] | None = None
    ) -> None:
        """Add rows to all subtrees where they belong, or to those where the column at `place` has these labels."""
        subtrees = self._factoring.labels.copy()
        if labels is not None:
            subtrees[place] = labels
        count = self._factoring.count_combinations(rows, subtrees, place)
        if self._tree.table.state[ENTRIES] + count > self.limits.max_tree_nodes:
            raise self._limit_error()
        self._enter(*self._factoring.combinations(rows, subtrees, place))

    def _enter(self, rows: NDArray[np.int32], keys: NDArray[np.uint32]) -> None:
        """Add rows to the tree, each in the subtree of its key: a label for each column that is factored out."""
        order = self._order()
        most, longest = self.limits.max_tree_nodes, order.factors + 2 * len(order.columns) + 1
        tests = Tests(
            np.empty(longest, np.int8),
            np.empty(longest, np.int32),
            np.empty(longest, np.uint32),
            np.empty(longest, np.uint32),
            np.empty(len(order.columns), np.int32),
        )
        if len(rows) > 1:
            sort = np.empty((2, len(rows)), np.int64)
            sort_keys(self.rows.table, order, rows, keys, tests, sort)
            sorted_by = np.lexsort(sort[::-1])
            rows, keys = rows[sorted_by], keys[sorted_by]
        done = 0
        while True:
            self._tree.ensure_room(longest)
            done = insert_rows(self._tree.table, self.rows.table, order, rows, keys, tests, done, most)
            if self._tree.table.state[NODES] > most:
                raise self._limit_error()
            if done == len(rows):
                break
        if self._successors is not None:
            self._successors.inserted(self._tree.table, rows)

    def _limit_error(self) -> LimitError:
        most = self.limits.max_tree_nodes
        hint = "factor fewer columns out, or use `columnar`" if self._most_factors else "`columnar` needs less"
        return LimitError(f"the matching tree has more than {most:,} nodes", limit="max_tree_nodes", hint=hint)

    def _ensure_order(self, rows: NDArray[np.int32]) -> None:
        """Choose the order of columns if there is none, and append new columns."""
        table = self.rows.table
        _, at = predicates_of(table, rows)
        columns = len(self.rows.columns)
        if not self._columns:
            predicates = np.bincount(table.columns[at], minlength=columns)
            is_equality = table.low[at] == table.high[at]
            equalities = np.bincount(table.columns[at[is_equality]], minlength=columns)
            factored = np.argsort(-equalities, kind="stable")[: self._most_factors]
            factored = factored[equalities[factored] > 0]
            popular = np.argsort(-predicates - equalities, kind="stable")
            ordered = popular if self._is_by_popularity else np.arange(columns)
            self._columns = [*factored.tolist(), *ordered[~np.isin(ordered, factored)].tolist()]
            self._factoring = Factoring(self.rows, factored.tolist())
        self._columns.extend(range(len(self._columns), columns))

    def _order(self) -> Order:
        columns = np.array(self._columns, np.int32)
        ranks = np.empty(len(columns), np.int32)
        ranks[columns] = np.arange(len(columns))
        return Order(ranks, columns, len(self._factoring.columns), not self._collapses)

    def _delete(self, rows: NDArray[np.int32]) -> None:
        if self._successors is not None:
            self._successors.deleting(self._tree.table, rows)
        delete_rows(self._tree.table, rows, self._collapses)
        if self._successors is not None:
            self._successors.deleted(self._tree.table)
        self._factoring.count(rows, -1)
        if not self._tree.table.state[ENTRIES]:
            self._clear()
            self._columns = []
            self._factoring = Factoring(self.rows, [])
        elif self._factoring.is_mostly_dead():
            self._drop_dead()

    def _drop_dead(self) -> None:
        """Remove the subtrees of labels that no row has."""
        dead = self._factoring.forget_dead()
        if len(dead):
            delete_subtrees(self._tree.table, dead, self._collapses)
            self._rebuild_successors()

    def _clear(self) -> None:
        self._tree = _GrowingTree()
        self._factoring = Factoring(self.rows, self._factoring.columns)
        self._rebuild_successors()

    def _rebuild_successors(self) -> None:
        if self._successors is not None:
            self._successors.rebuilt(self._tree.table)

    def _find(self, search: RowSearch) -> int:
        codes, first, out, offsets, examined = search
        tree, rows = self._tree.table, self.rows.count
        labels, stack = np.empty(len(codes), np.uint32), np.empty(len(tree.nodes) + 1, np.int32)
        done: int = first
        if self._successors is None:
            done = find(tree, rows, codes, labels, stack, first, out, offsets, examined)
            return done
        while True:
            successors = self._successors.arrays(len(tree.nodes), len(codes))
            done = find_with_successors(tree, successors, rows, codes, labels, stack, done, out, offsets, examined)
            if not successors.state[IS_FULL]:
                return done

    def _memory(self) -> dict[str, int]:
        memory = self._tree.memory()
        return memory if self._successors is None else memory | {"successors": self._successors.nbytes}

    def _details(self) -> dict[str, Any]:
        tree = self._tree.table
        nodes = int(tree.state[NODES])
        edges = max(nodes - 1, 0)
        sets = {"successors": 0} if self._successors is None else self._successors.stats()
        return {
            "nodes": nodes,
            "edges": edges,
            "leaves": int(tree.state[LEAVES]),
            "depth": int(depth_of(tree, np.zeros(len(tree.nodes), np.int32))),
            "entries": int(tree.state[ENTRIES]),
            **sets,
            "space": edges + sets["successors"],
            "columns": [str(self.rows.columns[column]) for column in self._columns],
            "options": self._options,
        }


class _GrowingTree:
    """The arrays of a tree, enlarged before a kernel needs more room."""

    def __init__(self) -> None:
        nodes = np.full((0, 8), UNUSED, np.int32)
        state = np.zeros(STATES, np.int64)
        state[[ROOT, FREE, ENTRY_FREE]] = NONE
        self.table = TreeNodes(
            nodes,
            nodes.view(np.uint32),
            np.empty(0, np.int8),
            np.empty(0, np.uint32),
            np.full((64, 2), NONE, np.int64),
            np.full((0, 5), NONE, np.int32),
            np.empty(0, np.int32),
            state,
        )

    def ensure_rows(self, size: int) -> None:
        """Ensure room for rows below `size`."""
        if size > len(self.table.of_rows):
            of_rows = longer(self.table.of_rows, grown(len(self.table.of_rows), size), NONE)
            self.table = self.table._replace(of_rows=of_rows)

    def ensure_room(self, nodes: int) -> None:
        """Ensure room for one more entry with this many new nodes."""
        table = self.table
        if table.state[NODES] + nodes > len(table.nodes):
            size = grown(len(table.nodes), int(table.state[NODES]) + nodes)
            larger = longer(table.nodes, size, UNUSED)
            table = table._replace(
                nodes=larger,
                labels=larger.view(np.uint32),
                edges=longer(table.edges, size, 0),
                marks=longer(table.marks, size, 0),
            )
        if 2 * (table.state[HASHED] + nodes) > len(table.slots):
            size = len(table.slots)
            while 2 * (table.state[HASHED] + nodes) > size:
                size *= 2
            slots = np.full((size, END + 1), NONE, np.int64)
            rehash(table.slots, slots)
            table = table._replace(slots=slots)
        if table.state[ENTRIES] == len(table.entries):
            size = grown(len(table.entries), len(table.entries) + 1)
            table = table._replace(entries=longer(table.entries, size, NONE))
        self.table = table

    def memory(self) -> dict[str, int]:
        table = self.table
        return {
            "nodes": table.nodes.nbytes + table.edges.nbytes + table.marks.nbytes,
            "edges": table.slots.nbytes,
            "leaves": table.entries.nbytes + table.of_rows.nbytes,
        }
