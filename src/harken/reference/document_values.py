"""The values of XPath in the plainest code: strings, numbers, booleans and nodes, their conversions and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from harken.language.xpath.ast import NodeKind
from harken.reference.document_trees import Node

_SPACES = " \t\r\n"
Found = str | float | bool | list[Node]
"""A value. Nodes are in document order, each once."""


def string_value(node: Node) -> str:
    """The string-value of a node: of an element or the root, all text below it."""
    if node.kind in (NodeKind.ATTRIBUTE, NodeKind.TEXT):
        return node.value
    return "".join(descendant.value for descendant in with_descendants(node) if descendant.kind is NodeKind.TEXT)


def with_descendants(node: Node) -> Iterator[Node]:
    """A node and all elements and texts below it, in document order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def string(value: Found) -> str:
    """`string()` of a value."""
    if isinstance(value, list):
        return string_value(value[0]) if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value):
        return str(int(Decimal(repr(value))))
    return f"{Decimal(repr(value)):f}"


def number(value: Found) -> float:
    """`number()` of a value. A string needs digits with at most one point, and may have a minus and blanks."""
    if isinstance(value, bool | float):
        return float(value)
    digits = string(value).strip(_SPACES)
    unsigned = digits[1:] if digits.startswith("-") else digits
    whole, _, fraction = unsigned.partition(".")
    if not set(whole + fraction) <= set("0123456789") or not whole + fraction:
        return math.nan
    return float(digits)


def boolean(value: Found) -> bool:
    """`boolean()` of a value: whether there is a node or a character, or a number that is neither 0 nor NaN."""
    if isinstance(value, float):
        return value != 0 and value == value
    return value if isinstance(value, bool) else len(value) > 0


def compare_any(left: Found, operator: str, right: Found) -> bool:
    """`left operator right`, of which some node may be on either side."""
    if isinstance(left, bool) or isinstance(right, bool):
        if operator in ("=", "!="):
            return (boolean(left) == boolean(right)) == (operator == "=")
        if isinstance(left, list):
            left = boolean(left)
        if isinstance(right, list):
            right = boolean(right)
        return ordered(number(left), operator, number(right))
    if isinstance(left, list):
        return any(compare_any(string_value(node), operator, right) for node in left)
    if isinstance(right, list):
        return any(compare_any(left, operator, string_value(node)) for node in right)
    if operator in ("=", "!=") and isinstance(left, str) and isinstance(right, str):
        return (left == right) == (operator == "=")
    return ordered(number(left), operator, number(right))


def compares(text: str, operator: str, value: str | float) -> bool:
    """Whether `text operator value` holds for a string-value."""
    return compare_any(text, operator, value)


def ordered(left: float, operator: str, right: float) -> bool:
    """Whether a comparison of two numbers holds."""
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
    raise ValueError(f"no operator: {operator!r}")
