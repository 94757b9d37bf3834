"""XPath expressions as functions of a node tree: how expressions that no program decides are decided exactly.

Each part is compiled once, to a closure. A step goes from a whole set of nodes, and the truth of a predicate at a node
is found once, unless it depends on positions. So an expression of q parts takes at most O(q n²) on a document of n
nodes, and O(q n³) with positions; `max_xpath_visits` bounds both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harken.errors import LimitError
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
from harken.language.xpath.core_functions import (
    CORE_FUNCTIONS,
    PURE,
    ValueKind,
    calculated,
    compared,
    kind_of,
    string_of,
    to_boolean,
    to_number,
)
from harken.language.xpath.expression_building import ANYWHERE, MIRRORED, uses_position
from harken.language.xpath.parser import parse_accepted
from harken.language.xpath.printer import print_expression
from harken.matchers.documents.node_functions import TREE_FUNCTIONS, compare_nodes, compare_with_value
from harken.matchers.documents.node_tree import AXES_OF_NODE, ROOT_NODE, NodeTree, along

Evaluate = Callable[[NodeTree, int, int, int], Any]
"""A value at a context node, its position and the number of nodes there."""


class NodeCondition:
    """An expression, or its text, that is compiled when it is first needed."""

    __slots__ = ("_holds", "_source")

    def __init__(self, source: Expression | str) -> None:
        self._source = source
        self._holds: Evaluate | None = None

    @property
    def text(self) -> str:
        """A text of the expression."""
        return self._source if isinstance(self._source, str) else print_expression(self._source)

    def holds(self, tree: NodeTree) -> bool:
        """Whether it is true of a document. Raises LimitError."""
        tree.visits = 0
        tree.memo.clear()
        try:
            if self._holds is None:
                source = self._source
                self._holds = condition(parse_accepted(source) if isinstance(source, str) else source)
            return bool(self._holds(tree, ROOT_NODE, 1, 1))
        except RecursionError:
            raise LimitError("the expression is nested too deeply to be evaluated", limit="max_nesting") from None


def condition(expression: Expression) -> Evaluate:
    """The truth of an expression."""
    match expression:
        case And(items=items):
            tests = [condition(item) for item in items]
            return lambda tree, *at: _all(tests, tree, at)
        case Or(items=items):
            tests = [condition(item) for item in items]
            return lambda tree, *at: _any(tests, tree, at)
        case Not(item=item):
            test = condition(item)
            return lambda tree, *at: not test(tree, *at)
        case Exists(path=path):
            found = nodes_of(path)
            return lambda tree, *at: bool(found(tree, *at))
        case Comparison(path=path, operator=operator, value=value):
            return _relation(path, operator, value)
        case ValueComparison(left=left, operator=operator, right=right):
            return _relation(left, operator, right)
        case Truth(value=value):
            return as_boolean(value)


def _all(tests: list[Evaluate], tree: NodeTree, at: tuple[int, int, int]) -> bool:
    for test in tests:  # noqa: SIM110 -- a generator takes another frame of Python's stack
        if not test(tree, *at):
            return False
    return True


def _any(tests: list[Evaluate], tree: NodeTree, at: tuple[int, int, int]) -> bool:
    for test in tests:  # noqa: SIM110 -- as above
        if test(tree, *at):
            return True
    return False


def _relation(left: Value, operator: str, right: Value) -> Evaluate:
    one, other = evaluator_of_value(left), evaluator_of_value(right)
    are_nodes = kind_of(left) is ValueKind.NODES, kind_of(right) is ValueKind.NODES
    if are_nodes == (True, True):
        return lambda tree, *at: compare_nodes(tree, one(tree, *at), operator, other(tree, *at))
    if are_nodes == (True, False):
        return lambda tree, *at: compare_with_value(tree, one(tree, *at), operator, other(tree, *at))
    if are_nodes == (False, True):
        mirrored = MIRRORED[operator]
        return lambda tree, *at: compare_with_value(tree, other(tree, *at), mirrored, one(tree, *at))
    return lambda tree, *at: compared(one(tree, *at), operator, other(tree, *at))


# Values


def evaluator_of_value(value: Value) -> Evaluate:
    """A value, as nodes, a string, a number or a boolean."""
    match value:
        case str() | float():
            return lambda *_: value
        case Location() | DocumentRoot() | AxisPath() | FilteredNodes() | NodeUnion():
            return nodes_of(value)
        case FunctionCall(name="position"):
            return lambda tree, node, position, size: float(position)
        case FunctionCall(name="last"):
            return lambda tree, node, position, size: float(size)
        case FunctionCall(name=name, arguments=arguments):
            return _call(name, arguments)
        case Calculation(left=left, operator=operator, right=right):
            one, other = as_number(left), as_number(right)
            return lambda tree, *at: calculated(one(tree, *at), operator, other(tree, *at))
        case Minus(value=part):
            number = as_number(part)
            return lambda tree, *at: -number(tree, *at)
        case _:
            return condition(value)


def as_string(value: Value) -> Evaluate:
    """`string()` of a value."""
    evaluate = evaluator_of_value(value)
    if kind_of(value) is ValueKind.STRING:
        return evaluate
    if kind_of(value) is not ValueKind.NODES:
        return lambda tree, *at: string_of(evaluate(tree, *at))

    def first_string(tree: NodeTree, *at: int) -> str:
        nodes = evaluate(tree, *at)
        return tree.string_value(nodes[0]) if nodes else ""

    return first_string


def as_number(value: Value) -> Evaluate:
    """`number()` of a value."""
    if kind_of(value) is ValueKind.NUMBER:
        return evaluator_of_value(value)
    text = as_string(value) if kind_of(value) is ValueKind.NODES else evaluator_of_value(value)
    return lambda tree, *at: to_number(text(tree, *at))


def as_boolean(value: Value) -> Evaluate:
    """`boolean()` of a value."""
    evaluate = evaluator_of_value(value)
    if kind_of(value) is ValueKind.NODES:
        return lambda tree, *at: bool(evaluate(tree, *at))
    return lambda tree, *at: to_boolean(evaluate(tree, *at))


_CONVERTED = {ValueKind.STRING: as_string, ValueKind.NUMBER: as_number, ValueKind.BOOLEAN: as_boolean}


def _call(name: str, arguments: tuple[Value, ...]) -> Evaluate:
    signature = CORE_FUNCTIONS[name]
    arguments = arguments or ((Location(()),) if signature.of_context else ())
    kinds = signature.arguments
    parts = [
        evaluator_of_value(each) if kind is ValueKind.NODES else _CONVERTED[kind](each)
        for each, kind in zip(arguments, kinds + kinds[-1:] * len(arguments), strict=False)
    ]
    function = TREE_FUNCTIONS.get(name)
    if function is not None:
        return lambda tree, *at: function(tree, at[0], *[part(tree, *at) for part in parts])
    pure = PURE[name]
    return lambda tree, *at: pure(*[part(tree, *at) for part in parts])


# Nodes


def nodes_of(value: Value) -> Evaluate:
    """A set of nodes, as an ascending list."""
    match value:
        case Location(steps=steps):
            return _path(_from_context, [part for step in steps for part in _axis_steps(step)])
        case DocumentRoot():
            return _from_root
        case AxisPath(start=DocumentRoot(), steps=path_steps):
            return _once(_path(_from_root, path_steps))
        case AxisPath(start=start, steps=path_steps):
            return _path(nodes_of(start), path_steps)
        case FilteredNodes(nodes=inner, predicates=predicates):
            return _filter(nodes_of(inner), predicates)
        case NodeUnion(parts=parts):
            sets = [nodes_of(part) for part in parts]
            return lambda tree, *at: sorted({node for each in sets for node in each(tree, *at)})
    raise TypeError(f"no nodes: {value!r}")


def _from_context(tree: NodeTree, node: int, position: int, size: int) -> list[int]:
    return [node]


def _from_root(tree: NodeTree, node: int, position: int, size: int) -> list[int]:
    return [ROOT_NODE]


def _once(evaluate: Evaluate) -> Evaluate:
    """Nodes that do not depend on the context, found once for a document."""

    def nodes(tree: NodeTree, *at: int) -> Any:
        if evaluate not in tree.memo:
            tree.memo[evaluate] = evaluate(tree, *at)
        return tree.memo[evaluate]

    return nodes


def _axis_steps(step: Step) -> list[AxisStep]:
    """A step of a location as steps along axes."""
    if not step.is_descendant:
        axis = "attribute" if step.kind is NodeKind.ATTRIBUTE else "child"
        return [AxisStep(axis, step.kind, step.name, step.predicates)]
    if step.kind is NodeKind.ATTRIBUTE:
        return [ANYWHERE, AxisStep("attribute", step.kind, step.name, step.predicates)]
    return [AxisStep("descendant", step.kind, step.name, step.predicates)]


def _path(start: Evaluate, steps: Sequence[AxisStep]) -> Evaluate:
    """The nodes that steps lead to."""
    if not steps:
        return start
    taken = [_step(step) for step in steps]

    def nodes(tree: NodeTree, *at: int) -> list[int]:
        current: list[int] = start(tree, *at)
        for step in taken:
            if not current:
                return current
            current = step(tree, current)
        return current

    return nodes


def _step(step: AxisStep) -> Callable[[NodeTree, list[int]], list[int]]:
    """The nodes that one step leads to from any of some nodes."""
    axis, kind, name = step.axis, step.kind, step.name
    tests = [condition(each) for each in step.predicates]
    if any(map(uses_position, step.predicates)):
        return lambda tree, nodes: _by_position(tree, nodes, axis, (kind, name), tests)

    def reached(tree: NodeTree, nodes: list[int]) -> list[int]:
        found = along(tree, axis, nodes)
        passing = tree.passing(kind, name)
        if passing is not None:
            path = tree.path
            found = [node for node in found if path[node] in passing]
        for test in tests:
            found = _passed(tree, found, test)
        return found

    return reached


def _passed(tree: NodeTree, nodes: list[int], test: Evaluate) -> list[int]:
    """The nodes at which a predicate without positions is true."""
    truths = tree.memo.get(test)
    if truths is None:
        truths = tree.memo[test] = {}
    kept = []
    for node in nodes:
        truth = truths.get(node)
        if truth is None:
            truth = truths[node] = test(tree, node, 1, 1)
        if truth:
            kept.append(node)
    return kept


def _by_position(
    tree: NodeTree, nodes: list[int], axis: str, node_test: tuple[NodeKind | None, str | None], tests: list[Evaluate]
) -> list[int]:
    """The nodes that a step with positions leads to: they count along the axis, from each node."""
    follow = AXES_OF_NODE[axis]
    passing = tree.passing(*node_test)
    united: set[int] = set()
    for node in nodes:
        found = follow(tree, node)
        tree.visit(len(found) + 1)
        if passing is not None:
            found = [each for each in found if tree.path[each] in passing]
        united.update(_counted(tree, found, tests))
    return sorted(united)


def _counted(tree: NodeTree, nodes: list[int], tests: list[Evaluate]) -> list[int]:
    """The nodes that meet all predicates, each of which counts those that meet the ones before it."""
    for test in tests:
        size = len(nodes)
        nodes = [node for place, node in enumerate(nodes, 1) if test(tree, node, place, size)]
    return nodes


def _filter(inner: Evaluate, predicates: Sequence[Expression]) -> Evaluate:
    tests = [condition(each) for each in predicates]
    return lambda tree, *at: _counted(tree, inner(tree, *at), tests)
