"""The semantics of XPath subscriptions in the plainest code: the law, and the oracle of the tests.

XPath 1.0, the boolean value of an expression with the document's root as context node. It shares only the AST,
errors and limits with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harken.language.xpath.ast import (
    And,
    AxisPath,
    AxisStep,
    Calculation,
    Comparison,
    DocumentRoot,
    Exists,
    Expression,
    FilteredNodes,
    FunctionCall,
    Location,
    Minus,
    NodeKind,
    NodeUnion,
    Not,
    Or,
    Step,
    Truth,
    Value,
    ValueComparison,
)
from harken.reference.document_functions import called
from harken.reference.document_trees import Node, read
from harken.reference.document_values import (
    Found,
    boolean,
    compare_any,
    compares,
    number,
    string_value,
    with_descendants,
)

__all__ = ["Node", "compares", "holds", "meets", "nodes_of", "number", "read", "string_value"]


class Context(NamedTuple):
    """Where an expression is evaluated."""

    node: Node
    position: int = 1
    size: int = 1


TruthCache = dict[tuple[int, int, int, int], bool]
"""The truth of predicates in contexts, by identity: nested predicates recur at the same nodes."""


def holds(expression: Expression, document: bytes | str | Node) -> bool:
    """Whether an expression is true of a document."""
    root = document if isinstance(document, Node) else read(document)
    return is_true(expression, Context(root), {})


def is_true(expression: Expression, context: Context, truths: TruthCache) -> bool:
    """Whether an expression is true in a context."""
    match expression:
        case And(items=items):
            return all(is_true(item, context, truths) for item in items)
        case Or(items=items):
            return any(is_true(item, context, truths) for item in items)
        case Not(item=item):
            return not is_true(item, context, truths)
        case Exists(path=path):
            return len(nodes_at(path, context.node, truths)) > 0
        case Comparison(path=path, operator=operator, value=constant):
            nodes = nodes_at(path, context.node, truths)
            return any(compares(string_value(node), operator, constant) for node in nodes)
        case ValueComparison(left=left, operator=operator, right=right):
            return compare_any(evaluate(left, context, truths), operator, evaluate(right, context, truths))
        case Truth(value=value):
            return boolean(evaluate(value, context, truths))


def evaluate(value: Value, context: Context, truths: TruthCache) -> Found:
    """A value in a context. Nodes are in document order, each once."""
    match value:
        case str() | float():
            return value
        case Location():
            return nodes_at(value, context.node, truths)
        case DocumentRoot():
            return [_root_of(context.node)]
        case AxisPath(start=start, steps=steps):
            nodes = _nodes(start, context, truths)
            for step in steps:
                reached = [each for node in nodes for each in nodes_along(step, node, truths)]
                nodes = in_document_order(reached)
            return nodes
        case FilteredNodes(nodes=inner, predicates=predicates):
            return filtered(_nodes(inner, context, truths), predicates, truths)
        case NodeUnion(parts=parts):
            return in_document_order([node for part in parts for node in _nodes(part, context, truths)])
        case FunctionCall(name="position"):
            return float(context.position)
        case FunctionCall(name="last"):
            return float(context.size)
        case FunctionCall(name=name, arguments=arguments):
            return called(name, [evaluate(each, context, truths) for each in arguments], context.node)
        case Calculation(left=left, operator=operator, right=right):
            one, other = evaluate(left, context, truths), evaluate(right, context, truths)
            return calculated(number(one), operator, number(other))
        case Minus(value=part):
            return -number(evaluate(part, context, truths))
        case _:
            return is_true(value, context, truths)


def _nodes(value: Value, context: Context, truths: TruthCache) -> list[Node]:
    nodes = evaluate(value, context, truths)
    assert isinstance(nodes, list)
    return nodes


def nodes_at(path: Location, context: Node, truths: TruthCache) -> list[Node]:
    """The nodes at a path, each once."""
    nodes = [context]
    for step in path.steps:
        reached = in_document_order([node for start in nodes for node in nodes_of(step, start)])
        nodes = [node for node in reached if all(meets(each, node, truths) for each in step.predicates)]
    return nodes


def meets(predicate: Expression, node: Node, truths: TruthCache, position: int = 1, size: int = 1) -> bool:
    """Whether a predicate is true of a node."""
    key = id(predicate), id(node), position, size
    if key not in truths:
        truths[key] = is_true(predicate, Context(node, position, size), truths)
    return truths[key]


def nodes_of(step: Step, context: Node) -> Iterator[Node]:
    """The nodes that one step leads to, whether or not they meet its predicates."""
    for start in with_descendants(context) if step.is_descendant else [context]:
        for node in start.attributes if step.kind is NodeKind.ATTRIBUTE else start.children:
            if node.kind is step.kind and step.name in (None, node.name):
                yield node


def nodes_along(step: AxisStep, context: Node, truths: TruthCache) -> list[Node]:
    """The nodes that one step leads to from a node, in the order of its axis."""
    nodes = [node for node in axis_nodes(step.axis, context) if _passes(step, node)]
    return filtered(nodes, step.predicates, truths)


def filtered(nodes: list[Node], predicates: Sequence[Expression], truths: TruthCache) -> list[Node]:
    """The nodes that meet all predicates. Each predicate counts those that meet the predicates before it."""
    for predicate in predicates:
        size = len(nodes)
        nodes = [node for at, node in enumerate(nodes, 1) if meets(predicate, node, truths, at, size)]
    return nodes


def axis_nodes(axis: str, node: Node) -> list[Node]:
    """The nodes of an axis, in its order: away from the context node."""
    match axis:
        case "self":
            return [node]
        case "child":
            return node.children
        case "attribute":
            return node.attributes
        case "descendant":
            return list(with_descendants(node))[1:]
        case "descendant-or-self":
            return list(with_descendants(node))
        case "parent":
            return _ancestors(node)[:1]
        case "ancestor":
            return _ancestors(node)
        case "ancestor-or-self":
            return [node, *_ancestors(node)]
    if axis in ("following-sibling", "preceding-sibling"):
        is_child = node.parent is not None and node.kind is not NodeKind.ATTRIBUTE
        others = node.parent.children if is_child and node.parent is not None else []
    else:
        left_out = {id(each) for each in [*with_descendants(node), *_ancestors(node)]}
        others = [each for each in with_descendants(_root_of(node)) if id(each) not in left_out]
    if axis.startswith("following"):
        return [each for each in others if each.order > node.order]
    return [each for each in reversed(others) if each.order < node.order]


def in_document_order(nodes: list[Node]) -> list[Node]:
    """The nodes, each once."""
    return sorted({id(node): node for node in nodes}.values(), key=lambda node: node.order)


def calculated(left: float, operator: str, right: float) -> float:
    """Arithmetic as IEEE 754 has it; `mod` is what is left of a division that truncates."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "div" if right == 0:
            if left == 0 or math.isnan(left):
                return math.nan
            return math.inf if (math.copysign(1, left) > 0) == (math.copysign(1, right) > 0) else -math.inf
        case "div":
            return left / right
        case "mod" if right == 0 or math.isinf(left):
            return math.nan
        case "mod":
            return math.fmod(left, right)
    raise ValueError(f"no operator: {operator!r}")


def _passes(step: AxisStep, node: Node) -> bool:
    """Whether a node passes the node test of a step."""
    if step.kind is None:
        return True
    if node.kind is not step.kind:
        return False
    if step.name is None:
        return True
    name = node.name or ""
    if step.name.endswith("}*"):
        return name.startswith(step.name[:-1])
    return name == step.name


def _ancestors(node: Node) -> list[Node]:
    """The parent, its parent, up to the root."""
    ancestors = []
    while node.parent is not None:
        node = node.parent
        ancestors.append(node)
    return ancestors


def _root_of(node: Node) -> Node:
    return [node, *_ancestors(node)][-1]
