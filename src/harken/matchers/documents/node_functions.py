"""Comparisons of nodes, and the functions of XPath's core library that look at the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.language.xpath.core_functions import ORDERS, compared, to_number
from harken.language.xpath.token_reader import XML_NAMESPACE
from harken.matchers.documents.node_tree import NodeTree

_XML = f"{{{XML_NAMESPACE}}}"


def compare_with_value(tree: NodeTree, nodes: list[int], operator: str, value: Any) -> bool:
    """Whether some node compares with a string, a number or a boolean."""
    if isinstance(value, bool):
        return compared(bool(nodes), operator, value)
    tree.visit(len(nodes))
    if isinstance(value, str) and operator in ("=", "!="):
        is_equal = operator == "="
        return any((tree.string_value(node) == value) is is_equal for node in nodes)
    number = to_number(value)
    order = ORDERS[operator]
    return any(order(tree.number(node), number) for node in nodes)


def compare_nodes(tree: NodeTree, left: list[int], operator: str, right: list[int]) -> bool:
    """Whether some node of one set compares with some node of another, in time linear in their sizes."""
    tree.visit(len(left) + len(right))
    if not left or not right:
        return False
    if operator == "=":
        values = {tree.string_value(node) for node in left}
        return any(tree.string_value(node) in values for node in right)
    if operator == "!=":
        first = tree.string_value(left[0])
        return any(tree.string_value(node) != first for node in (*left, *right))
    is_less = operator.startswith("<")
    one, other = _extreme(tree, left, is_least=is_less), _extreme(tree, right, is_least=not is_less)
    return one is not None and other is not None and ORDERS[operator](one, other)


def _extreme(tree: NodeTree, nodes: list[int], *, is_least: bool) -> float | None:
    """The least or the greatest number of nodes; None if none is a number."""
    numbers = [number for node in nodes if (number := tree.number(node)) == number]
    return (min(numbers) if is_least else max(numbers)) if numbers else None


def _name_of(tree: NodeTree, nodes: list[int]) -> str:
    return tree.name(nodes[0]) if nodes else ""


def _local_name(tree: NodeTree, node: int, nodes: list[int]) -> str:
    return _name_of(tree, nodes).rpartition("}")[2]


def _namespace(tree: NodeTree, node: int, nodes: list[int]) -> str:
    return _name_of(tree, nodes).rpartition("}")[0][1:]


def _qualified_name(tree: NodeTree, node: int, nodes: list[int]) -> str:
    """The local name: documents keep namespaces, not prefixes. Only `xml` is a prefix that no document changes."""
    name = _name_of(tree, nodes)
    local = name.rpartition("}")[2]
    return f"xml:{local}" if name.startswith(_XML) else local


def _sum(tree: NodeTree, node: int, nodes: list[int]) -> float:
    tree.visit(len(nodes))
    total = 0.0
    for each in nodes:  # Python's own sum rounds otherwise in 3.12
        total += tree.number(each)
    return total


def _is_in_language(tree: NodeTree, node: int, language: str) -> bool:
    """Whether the nearest `xml:lang` is the language or a dialect of it."""
    for each in tree.ancestors_or_self(node):
        value = tree.attribute(each, _XML + "lang")
        if value is not None:
            return (value.lower() + "-").startswith(language.lower() + "-")
    return False


TREE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": lambda tree, node, nodes: float(len(nodes)),
    "sum": _sum,
    "name": _qualified_name,
    "local-name": _local_name,
    "namespace-uri": _namespace,
    "lang": _is_in_language,
}
"""By name: called with the tree, the context node and the arguments."""
