"""Trees as arrays, from which an index of programs is built and merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.constants import constants_of
from harken.codes.flat import Flat, joined_column
from harken.codes.flatten import Flattener
from harken.kernels.programs import ASSUMED, CODES, EVERY, FITS, FITS_NOT, SOME
from harken.language.intervals import prefixed
from harken.language.normal_form import Residual, ValueSet
from harken.language.residuals import ContainsResidual, LikeResidual, RLikeResidual, XPathResidual
from harken.language.trees import Constrained, Every, Some, Tree
from harken.matchers.programs.patterns import GatheredPatterns, PatternTable
from harken.matchers.programs.patterns import joined as joined_patterns
from harken.schema import Kind
from harken.schema.paths import Path


@dataclass(frozen=True, slots=True)
class Trees:
    """Subscriptions as trees in preorder, with shared leaves."""

    numbers: NDArray[np.int32]
    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    """A leaf, `EVERY` or `SOME`."""
    ends: NDArray[np.int32]
    """The end of the subtree of each node, counted from the start of its subscription's tree."""
    leaf_kind: NDArray[np.uint8]
    leaf_of: NDArray[np.int32]
    """The pattern of each leaf; -1 for leaves without one."""
    columns: list[ColumnPredicates]
    """The intervals of leaves: each row is a leaf, which may have several intervals in one column."""
    texts: tuple[Path, ...]
    """The text columns with patterns."""
    patterns: PatternTable
    sets: tuple[Path, ...]
    """The paths tested by CONTAINS, on all values at once: codes decide that only for events with one value."""

    def __len__(self) -> int:
        return len(self.numbers)

    def only(self, wanted: NDArray[np.bool_]) -> Trees:
        """The wanted subscriptions. Leaves of others are kept."""
        if wanted.all():
            return self
        lengths = np.diff(self.starts)
        kept = np.repeat(wanted, lengths)
        starts = np.zeros(int(wanted.sum()) + 1, np.int64)
        np.cumsum(lengths[wanted], out=starts[1:])
        return replace(self, numbers=self.numbers[wanted], starts=starts, nodes=self.nodes[kept], ends=self.ends[kept])

    def used(self) -> Trees:
        """The same trees without unused leaves and patterns."""
        is_used = np.zeros(len(self.leaf_kind), np.bool_)
        is_used[self.nodes[self.nodes >= 0]] = True
        is_pattern = self.leaf_of >= 0
        wanted = np.zeros(len(self.patterns), np.bool_)
        wanted[self.leaf_of[is_used & is_pattern]] = True
        if is_used.all() and wanted.all():
            return self
        place, pattern_place = _places(is_used), _places(wanted)
        columns: list[ColumnPredicates] = []
        for part in self.columns:
            kept = is_used[part.rows]
            if kept.any():
                low, high = part.low[kept], part.high[kept]
                sides = part.low_side[kept], part.high_side[kept]
                rows = place[part.rows[kept]]
                columns.append(ColumnPredicates(part.column, part.constants, rows, low, sides[0], high, sides[1]))
        leaf_of = self.leaf_of[is_used]
        return replace(
            self,
            nodes=_moved(self.nodes, place),
            leaf_kind=self.leaf_kind[is_used],
            leaf_of=_moved(leaf_of, pattern_place),
            columns=columns,
            patterns=self.patterns.taken(np.flatnonzero(wanted)),
        )


def gathered(entries: Iterable[tuple[int, Tree]]) -> Trees:
    """The arrays of trees, given with subscription numbers."""
    gatherer = _Gatherer()
    for number, tree in entries:
        gatherer.add(number, tree)
    return gatherer.trees()


def joined(several: Sequence[Trees]) -> Trees:
    """Concatenate trees. Equal patterns become one."""
    if len(several) == 1:
        return several[0]
    texts: dict[Path, int] = {}
    tables: list[PatternTable] = []
    for trees in several:
        places = np.array([texts.setdefault(path, len(texts)) for path in trees.texts], np.int32)
        tables.append(trees.patterns.on_columns(places) if len(trees.patterns) else trees.patterns)
    patterns, pattern_of = joined_patterns(tables).distinct()
    first_pattern = np.cumsum([0, *map(len, tables)])
    first_leaf = np.cumsum([0, *(len(trees.leaf_kind) for trees in several)])
    first_node = np.cumsum([0, *(len(trees.nodes) for trees in several)])
    leaf_of = [
        np.where(trees.leaf_of >= 0, trees.leaf_of + at, -1)
        for trees, at in zip(several, first_pattern[:-1], strict=True)
    ]
    columns: dict[Column, list[tuple[int, ColumnPredicates]]] = {}
    for trees, at in zip(several, first_leaf.tolist(), strict=False):
        for column in trees.columns:
            columns.setdefault(column.column, []).append((at, column))
    return Trees(
        np.concatenate([trees.numbers for trees in several]),
        np.concatenate([[0], *(trees.starts[1:] + at for trees, at in zip(several, first_node[:-1], strict=True))]),
        np.concatenate(
            [
                np.where(trees.nodes >= 0, trees.nodes + at, trees.nodes)
                for trees, at in zip(several, first_leaf, strict=False)
            ]
        ).astype(np.int32),
        np.concatenate([trees.ends for trees in several]),
        np.concatenate([trees.leaf_kind for trees in several]),
        _moved(np.concatenate(leaf_of), pattern_of),
        [joined_column(column, parts) for column, parts in columns.items()],
        tuple(texts),
        patterns,
        tuple(dict.fromkeys(path for trees in several for path in trees.sets)),
    )


_Joined = tuple[int, list[int]]
"""`SOME` or `EVERY`, and the leaves of which some or every one has to hold."""


class _Gatherer:
    """Collects trees into arrays."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._starts = [0]
        self._nodes: list[int] = []
        self._ends: list[int] = []
        self._leaf_kind: list[int] = []
        self._leaf_of: list[int] = []
        self._leaves_of: dict[Any, _Joined] = {}
        """The leaves of each predicate, and of each pattern with or without negation."""
        self._flattener = Flattener()
        self._texts: dict[Path, int] = {}
        self._patterns = GatheredPatterns()
        self._sets: dict[Path, None] = {}

    def add(self, number: int, tree: Tree) -> None:
        self._numbers.append(number)
        self._add(tree, len(self._nodes))
        self._starts.append(len(self._nodes))

    def trees(self) -> Trees:
        columns = [column.predicates() for column in self._flattener.gathered if column.cuts]
        return Trees(
            np.array(self._numbers, np.int32),
            np.array(self._starts, np.int64),
            np.array(self._nodes, np.int32),
            np.array(self._ends, np.int32),
            np.array(self._leaf_kind, np.uint8),
            np.array(self._leaf_of, np.int32),
            [replace(part, constants=constants_of(part.column, part.constants)) for part in columns],
            tuple(self._texts),
            self._patterns.table(),
            tuple(self._sets),
        )

    def _add(self, tree: Tree, start: int) -> None:
        """Append a subtree of the tree that begins at `start`."""
        if isinstance(tree, Every | Some):
            place = len(self._nodes)
            self._nodes.append(EVERY if isinstance(tree, Every) else SOME)
            self._ends.append(0)
            for item in tree.items:
                self._add(item, start)
            self._ends[place] = len(self._nodes) - start
            return
        joined_leaves = self._leaves_of.get(tree)
        if joined_leaves is None:
            joined_leaves = self._leaves_of[tree] = self._leaves(tree)
        join, leaves = joined_leaves
        if len(leaves) > 1:
            self._nodes.append(join)
            self._ends.append(len(self._nodes) + len(leaves) - start)
        for leaf in leaves:
            self._nodes.append(leaf)
            self._ends.append(len(self._nodes) - start)

    def _leaves(self, node: Constrained | Residual) -> _Joined:
        """The leaves of a predicate."""
        if isinstance(node, Constrained):
            return self._prefixes(node) or (SOME, self._intervals(node))
        if isinstance(node, LikeResidual):
            pattern = self._patterns.like(self._text(node.path), node.pattern, node.escape)
            return SOME, [self._pattern(pattern, node.negated)]
        if isinstance(node, RLikeResidual):
            return SOME, [self._pattern(self._patterns.regex(self._text(node.path), node.pattern), node.negated)]
        if isinstance(node, XPathResidual):
            return SOME, [self._pattern(self._patterns.xpath(self._text(node.path), node.xpath), node.negated)]
        if isinstance(node, ContainsResidual):  # with one value, CONTAINS is equality
            return SOME, [self._leaf(ASSUMED)] if node.lenient else self._contained(node)
        return SOME, [self._leaf(ASSUMED)]

    def _prefixes(self, node: Constrained) -> _Joined | None:
        """Patterns, if a constraint admits the strings with certain prefixes, or all others; else None."""
        constraint = node.constraint
        if not isinstance(constraint, ValueSet) or len(constraint.parts) > 1 or constraint.domain is not None:
            return None
        kind, (is_negated, cuts) = constraint.parts[0]
        if kind is not Kind.STRING or len(cuts) < 2 or len(cuts) % 2:
            return None
        pairs = list(zip(cuts[::2], cuts[1::2], strict=True))
        if not all(prefixed(low[0]).cuts == (low, high) for low, high in pairs):
            return None
        text = self._text(node.path)
        leaves = [self._pattern(self._patterns.prefix(text, low[0]), is_negated) for low, _ in pairs]
        return EVERY if is_negated else SOME, leaves

    def _intervals(self, node: Constrained) -> list[int]:
        by_column: dict[int, int] = {}
        for column, low, high in self._flattener.predicates(node.path, node.constraint):
            leaf = by_column.get(column)
            if leaf is None:
                leaf = by_column[column] = self._leaf(CODES)
            self._flattener.gathered[column].add(leaf, low, high)
        return list(by_column.values())

    def _contained(self, node: ContainsResidual) -> list[int]:
        self._sets[node.path] = None
        ((path, equal),) = replace(node, negated=False, lenient=False).implied()
        if node.negated and isinstance(equal, ValueSet):
            equal = ValueSet(tuple((kind, admitted.complement()) for kind, admitted in equal.parts))
        return self._intervals(Constrained(path, equal))

    def _pattern(self, pattern: int, is_negated: bool) -> int:
        key = pattern, is_negated
        joined_leaves = self._leaves_of.get(key)
        if joined_leaves is None:
            joined_leaves = self._leaves_of[key] = SOME, [self._leaf(FITS_NOT if is_negated else FITS, pattern)]
        return joined_leaves[1][0]

    def _leaf(self, kind: int, of: int = -1) -> int:
        self._leaf_kind.append(kind)
        self._leaf_of.append(of)
        return len(self._leaf_kind) - 1

    def _text(self, path: Path) -> int:
        return self._texts.setdefault(path, len(self._texts))


def _moved(numbers: NDArray[Any], places: NDArray[np.int32]) -> NDArray[np.int32]:
    """The numbers mapped to new places. Negative numbers are not places, and stay."""
    moved = numbers.astype(np.int32)
    is_place = numbers >= 0
    moved[is_place] = places[numbers[is_place]]
    return moved


def _places(wanted: NDArray[np.bool_]) -> NDArray[np.int32]:
    return (np.cumsum(wanted) - 1).astype(np.int32)


_MOST_ROWS = 16
"""Maximum number of rows of one subscription in `rows_of`."""


def rows_of(trees: Trees) -> Flat:
    """Rows with the predicates of subscriptions. They are weaker if a part with many alternatives is left out."""
    numbers: list[int] = []
    rows: list[int] = []
    leaf_of_row: list[int] = []
    nodes, ends, starts = trees.nodes.tolist(), trees.ends.tolist(), trees.starts.tolist()
    for number, first in zip(trees.numbers.tolist(), starts, strict=False):
        for leaves in _alternatives(nodes, ends, first, 0):
            rows += [len(numbers)] * len(leaves)
            leaf_of_row += leaves
            numbers.append(number)
    row, leaf = np.array(rows, np.int32), np.array(leaf_of_row, np.int32)
    columns: list[ColumnPredicates] = []
    for part in trees.columns:
        # One interval of a leaf is enough to show the kind of value.
        first_of = np.full(len(trees.leaf_kind), -1, np.int64)
        first_of[part.rows[::-1]] = np.arange(len(part.rows))[::-1]
        chosen = first_of[leaf]
        kept, piece = row[chosen >= 0], chosen[chosen >= 0]
        sides = part.low_side[piece], part.high_side[piece]
        columns.append(
            ColumnPredicates(part.column, part.constants, kept, part.low[piece], sides[0], part.high[piece], sides[1])
        )
    pattern = np.where(trees.leaf_of >= 0, trees.leaf_of, 0)
    for place, path in enumerate(trees.texts):
        on_text = (trees.leaf_of >= 0) & (trees.patterns.column[pattern] == place)
        kept = np.unique(row[on_text[leaf]])
        none, side = np.full(len(kept), -1, np.int32), np.zeros(len(kept), np.uint8)
        column = Column(path, Kind.STRING)
        columns.append(ColumnPredicates(column, constants_of(column, []), kept, none, side, none, side))
    return Flat.of_predicates(np.array(numbers, np.int32), columns)


def _alternatives(nodes: list[int], ends: list[int], first: int, node: int) -> list[list[int]]:
    """The disjunctive form of a node: sets of leaves, one of which holds entirely if the node does."""
    kind = nodes[first + node]
    if kind >= 0:
        return [[kind]]
    alternatives: list[list[int]] = [[]] if kind == EVERY else []
    child = node + 1
    while child < ends[first + node]:
        of_child = _alternatives(nodes, ends, first, child)
        if kind == SOME:
            alternatives += of_child
        elif len(alternatives) * len(of_child) <= _MOST_ROWS:
            alternatives = [before + more for before in alternatives for more in of_child]
        child = ends[first + child]
    return alternatives if len(alternatives) <= _MOST_ROWS else [[]]
