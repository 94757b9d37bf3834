"""One document as a tree of node numbers, made of the arrays of its batch: axes, names and values.

Numbers are in document order: an element, its attributes, its children. A set of nodes is an ascending list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harken.errors import LimitError
from harken.events.xml import Documents
from harken.language.xpath.ast import NodeKind
from harken.language.xpath.numbers import number_of

ROOT_NODE = 0
_NodeTest = tuple[NodeKind | None, str | None]
_ATTRIBUTE = int(NodeKind.ATTRIBUTE)


class NodeTree:
    """The nodes of one document. It counts the nodes that are visited, and raises LimitError beyond `most_visits`."""

    def __init__(self, documents: Documents, place: int, most_visits: int) -> None:
        first, behind = int(documents.first[place]), int(documents.first[place + 1])
        self.count = behind - first
        self.most_visits = most_visits
        self.visits = 0
        self.path = documents.path[first:behind].tolist()
        parent = documents.parent[first:behind]
        self.parent = np.where(parent < 0, -1, parent - first).tolist()
        self.begin = documents.begin[first:behind].tolist()
        self.end = documents.end[first:behind].tolist()
        self._text = documents.text
        self._paths = documents.paths
        self.kind: list[int] = documents.paths.kind[documents.path[first:behind]].tolist()
        self.behind = _ends(self.parent)
        """By node, the number behind its last descendant."""
        self._values: dict[int, str] = {}
        self._numbers: dict[int, float] = {}
        self._passing: dict[_NodeTest, set[int]] = {}
        self._distinct = set(self.path)
        self.memo: dict[object, Any] = {}
        """What the expression that is being decided has found: the truth of predicates, and absolute paths."""

    def visit(self, nodes: int) -> None:
        """Count nodes that are visited. Raises LimitError."""
        self.visits += nodes
        if self.visits > self.most_visits:
            message = f"the XPath visits more than {self.most_visits:,} nodes of the document"
            raise LimitError(message, limit="max_xpath_visits", hint="ask for fewer nodes, or raise the limit")

    # Values

    def string_value(self, node: int) -> str:
        value = self._values.get(node)
        if value is None:
            self.visit((self.end[node] - self.begin[node]) >> 6)
            value = self._values[node] = self._text[self.begin[node] : self.end[node]].tobytes().decode()
        return value

    def number(self, node: int) -> float:
        """`number()` of the string-value."""
        value = self._numbers.get(node)
        if value is None:
            value = self._numbers[node] = number_of(self.string_value(node))
        return value

    def name(self, node: int) -> str:
        """The expanded name; empty for the root and for texts."""
        return self._paths.name(self.path[node]).decode()

    def attribute(self, node: int, name: str) -> str | None:
        """The value of an attribute."""
        return next((self.string_value(each) for each in self.attributes(node) if self.name(each) == name), None)

    def passing(self, kind: NodeKind | None, name: str | None) -> set[int] | None:
        """The tag paths of nodes that pass a node test; None if all nodes do."""
        if kind is None:
            return None
        passing = self._passing.get((kind, name))
        if passing is None:
            kinds = self._paths.kind
            wanted = None if name is None else name.removesuffix("*").encode()
            is_prefix = name is not None and name.endswith("}*")
            passing = self._passing[kind, name] = {
                path
                for path in self._distinct
                if kinds[path] == kind
                and (wanted is None or _fits(self._paths.name(path), wanted, is_prefix=is_prefix))
            }
        return passing

    # Axes from one node, in their order

    def attributes(self, node: int) -> list[int]:
        at, behind, kind, parent = node + 1, self.behind[node], self.kind, self.parent
        nodes = []
        while at < behind and kind[at] == _ATTRIBUTE and parent[at] == node:
            nodes.append(at)
            at += 1
        return nodes

    def children(self, node: int) -> list[int]:
        behind, next_of, kind = self.behind[node], self.behind, self.kind
        at = node + 1
        nodes = []
        while at < behind:
            if kind[at] != _ATTRIBUTE:
                nodes.append(at)
            at = next_of[at]
        return nodes

    def descendants(self, node: int) -> list[int]:
        return self._between(node + 1, self.behind[node])

    def descendants_or_self(self, node: int) -> list[int]:
        return [node, *self.descendants(node)]

    def parents(self, node: int) -> list[int]:
        return [self.parent[node]] if node else []

    def ancestors(self, node: int) -> list[int]:
        nodes = []
        while node:
            node = self.parent[node]
            nodes.append(node)
        return nodes

    def ancestors_or_self(self, node: int) -> list[int]:
        return [node, *self.ancestors(node)]

    def following(self, node: int) -> list[int]:
        return self._between(self.behind[node], self.count)

    def preceding(self, node: int) -> list[int]:
        above = set(self.ancestors(node))
        return [each for each in reversed(self._between(0, node)) if each not in above]

    def following_siblings(self, node: int) -> list[int]:
        if not node or self.kind[node] == _ATTRIBUTE:
            return []
        nodes = []
        at, behind = self.behind[node], self.behind[self.parent[node]]
        while at < behind:
            nodes.append(at)
            at = self.behind[at]
        return nodes

    def preceding_siblings(self, node: int) -> list[int]:
        if not node or self.kind[node] == _ATTRIBUTE:
            return []
        return [each for each in reversed(self.children(self.parent[node])) if each < node]

    def _between(self, first: int, behind: int) -> list[int]:
        kind = self.kind
        return [node for node in range(first, behind) if kind[node] != _ATTRIBUTE]


AXES_OF_NODE: dict[str, Callable[[NodeTree, int], list[int]]] = {
    "self": lambda _, node: [node],
    "child": NodeTree.children,
    "attribute": NodeTree.attributes,
    "descendant": NodeTree.descendants,
    "descendant-or-self": NodeTree.descendants_or_self,
    "parent": NodeTree.parents,
    "ancestor": NodeTree.ancestors,
    "ancestor-or-self": NodeTree.ancestors_or_self,
    "following": NodeTree.following,
    "preceding": NodeTree.preceding,
    "following-sibling": NodeTree.following_siblings,
    "preceding-sibling": NodeTree.preceding_siblings,
}


def along(tree: NodeTree, axis: str, nodes: list[int]) -> list[int]:
    """The nodes that an axis leads to from any of some nodes, in document order, each once."""
    if len(nodes) == 1:
        reached = AXES_OF_NODE[axis](tree, nodes[0])
        tree.visit(len(reached) + 1)
        return sorted(reached) if axis in _REVERSE else reached
    if not nodes:
        return []
    if axis == "following":  # what follows any node follows the one that ends first
        return along(tree, axis, [min(nodes, key=tree.behind.__getitem__)])
    if axis == "preceding":
        return along(tree, axis, nodes[-1:])
    united: set[int] = set()
    if axis == "descendant-or-self":
        united.update(nodes)
        axis = "descendant"
    if axis == "descendant":
        nodes = _outermost(tree, nodes)
    elif axis in ("following-sibling", "preceding-sibling"):
        nodes = _end_siblings(tree, nodes, is_first=axis == "following-sibling")
    step = AXES_OF_NODE[axis]
    for node in nodes:
        reached = step(tree, node)
        tree.visit(len(reached) + 1)
        united.update(reached)
    return sorted(united)


_REVERSE = frozenset(("ancestor", "ancestor-or-self", "preceding", "preceding-sibling"))


def _fits(name: bytes, wanted: bytes, *, is_prefix: bool) -> bool:
    return name.startswith(wanted) if is_prefix else name == wanted


def _outermost(tree: NodeTree, nodes: list[int]) -> list[int]:
    """The nodes that are not below another."""
    kept, done = [], -1
    for node in nodes:
        if node >= done:
            kept.append(node)
            done = tree.behind[node]
    return kept


def _end_siblings(tree: NodeTree, nodes: list[int], *, is_first: bool) -> list[int]:
    """The first or the last of the nodes of each parent. Attributes have no siblings."""
    ends: dict[int, int] = {}
    for node in reversed(nodes) if is_first else nodes:
        if tree.kind[node] != _ATTRIBUTE:
            ends[tree.parent[node]] = node
    return list(ends.values())


def _ends(parent: list[int]) -> list[int]:
    """By node, the number behind its last descendant."""
    behind = list(range(1, len(parent) + 1))
    for node in range(len(parent) - 1, 0, -1):
        above = parent[node]
        behind[above] = max(behind[above], behind[node])
    return behind
