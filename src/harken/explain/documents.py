"""Why a document did or did not match an XPath text: the expression as a tree, with the nodes that each part met.

A part inside a predicate is evaluated at every node that its step leads to, and holds if it holds at one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from harken.language.explanation import Clause, Explanation, Met
from harken.language.registry import FindEvent
from harken.language.xpath.ast import (
    FALSE,
    TRUE,
    And,
    AxisPath,
    AxisStep,
    Comparison,
    Exists,
    Expression,
    FilteredNodes,
    FunctionCall,
    Location,
    NodeKind,
    NodeUnion,
    Not,
    Or,
    Step,
    Truth,
    Value,
    ValueComparison,
)
from harken.language.xpath.core_functions import ValueKind, kind_of
from harken.language.xpath.expression_building import constant, truth_of
from harken.language.xpath.front_end import XPathFrontEnd
from harken.language.xpath.printer import (
    prefixes_of,
    print_axis_step,
    print_name,
    print_operand,
    print_part,
    print_test,
)
from harken.limits import DEFAULT_LIMITS, Limits
from harken.reference.document_trees import Node, read
from harken.reference.document_values import compares, string_value
from harken.reference.documents import (
    Context,
    TruthCache,
    evaluate,
    filtered,
    in_document_order,
    meets,
    nodes_along,
    nodes_of,
)
from harken.schema.paths import DOCUMENT

_MOST_NODES = 8
_MOST_CHARACTERS = 80
_NOT_TOGETHER = "each branch holds somewhere, but not below one `{name}`"
_INSIDE = Step(False, NodeKind.ELEMENT, None)
"""Stands for the step above a predicate whose own step is along another axis."""
_OTHER_NODE = "for another node than the part below"


def explain(expression: Expression, document: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Explanation:
    """Explain an expression on a document, by the reference semantics. Raises DecodeError or LimitError."""
    root = read(document, limits)
    tree = _Explainer(prefixes_of(expression)).part(expression, [Context(root)], None)
    return Explanation(tree.truth is True, tree)


def explain_xpath(front_end: XPathFrontEnd, text: str, find_event: FindEvent) -> Explanation:
    """Explain an XPath text on an event: the explainer of the language `xpath`."""
    expression = front_end.parse(text)
    (name,) = DOCUMENT
    document = find_event(frozenset({name})).get(name)
    if not isinstance(document, str | bytes):
        note = "the event has no document" if document is None else "the attribute is not a string"
        shown = print_part(expression, prefixes_of(expression), is_top=True)
        return Explanation(False, Clause(shown, False, (Met(name, ()),), note))
    return explain(expression, document, front_end.limits)


class _Explainer:
    """Explains the parts of one expression."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        self.truths: TruthCache = {}
        self.rests: list[Expression] = []
        """Expressions made while explaining. They are kept, because the cache of truths goes by identity."""

    def part(self, part: Expression, contexts: Sequence[Context], step: Step | None) -> Clause:
        """Explain a part at the nodes that a step leads to, or at the root; if it holds, at those where it holds."""
        chosen = [each for each in contexts if meets(part, each.node, self.truths, each.position, each.size)]
        truth = bool(chosen)
        contexts = chosen or contexts
        match part:
            case And(items=items):
                parts = tuple(self.part(item, contexts, step) for item in items)
                note = None if truth or not all(clause.truth for clause in parts) else self._apart(step)
                return Clause("and", truth, (), note, parts)
            case Or(items=items):
                return Clause("or", truth, (), None, tuple(self.part(item, contexts, step) for item in items))
            case Not(item=item):
                below = self.part(item, contexts, step)
                return Clause("not", truth, (), None if truth is not below.truth else _OTHER_NODE, (below,))
            case Exists(path=path) | Comparison(path=path):
                return self._leaf(part, path, [context.node for context in contexts], truth, step)
            case ValueComparison(left=left, right=right):
                return self._values(part, (left, right), contexts, truth, step)
            case Truth(value=FunctionCall(arguments=arguments)) if arguments:
                return self._values(part, arguments, contexts, truth, step)
            case Truth(value=value):
                return self._values(part, (value,), contexts, truth, step)

    # Conditions that the index does not decide

    def _values(
        self,
        part: ValueComparison | Truth,
        operands: Sequence[Value],
        contexts: Sequence[Context],
        truth: bool,
        step: Step | None,
    ) -> Clause:
        """A comparison of any values, or the truth of one: what each of them is."""
        parts: list[Clause] = []
        met: list[Met] = []
        notes: list[str] = []
        for operand in operands:
            kind = kind_of(operand)
            if kind is ValueKind.NODES:
                walk = self._nodes(operand, contexts)
                parts += walk.parts
                met += self._met(walk.nodes)
                notes += walk.notes
            elif kind is ValueKind.BOOLEAN:
                condition = truth_of(operand)
                if condition not in (TRUE, FALSE):
                    parts.append(self.part(condition, contexts, step))
            elif constant(operand) is None:
                shown = print_operand(operand, self.prefixes, is_top=step is None)
                values = dict.fromkeys(evaluate(operand, context, self.truths) for context in contexts)
                met.append(Met(shown, tuple(map(_plain_value, values))))
        shown = print_part(part, self.prefixes, is_top=step is None)
        return Clause(shown, truth, tuple(met), "; ".join(dict.fromkeys(notes)) or None, tuple(parts))

    def _nodes(self, nodes: Value, contexts: Sequence[Context]) -> _Walk:
        """Explain how far a set of nodes can be followed."""
        match nodes:
            case Location(steps=steps):
                walk = _Walk([context.node for context in contexts])
                for step in steps:
                    self._follow(walk, step, [list(nodes_of(step, node)) for node in walk.nodes])
            case AxisPath(start=start, steps=axis_steps):
                walk = self._nodes(start, contexts)
                for axis_step in axis_steps:
                    bare = AxisStep(axis_step.axis, axis_step.kind, axis_step.name)
                    self._follow(walk, axis_step, [nodes_along(bare, node, self.truths) for node in walk.nodes])
            case FilteredNodes(nodes=inner):
                walk = self._nodes(inner, contexts)
                self._follow(walk, nodes, [walk.nodes])
            case NodeUnion(parts=parts):
                walks = [self._nodes(each, contexts) for each in parts]
                walk = _Walk([], [part for each in walks for part in each.parts])
                walk.nodes = in_document_order([node for each in walks for node in each.nodes])
            case _:
                walk = _Walk([node for context in contexts[:1] for node in _found(nodes, context, self.truths)])
        return walk

    def _follow(self, walk: _Walk, step: Step | AxisStep | FilteredNodes, groups: Sequence[list[Node]]) -> None:
        """Follow a step to groups of nodes, one from each node before it, which its predicates count."""
        if not walk.nodes:
            return
        shown = "the parenthesis" if isinstance(step, FilteredNodes) else f"`{self._step_test(step)}`"
        reached = in_document_order([node for group in groups for node in group])
        if not reached:
            where = " or ".join(list(dict.fromkeys(map(self._tag_path, walk.nodes)))[:3])
            walk.notes.append(f"no {shown} from {where}")
        for predicate in step.predicates if reached else ():
            at = [Context(node, place, len(group)) for group in groups for place, node in enumerate(group, 1)]
            groups = [_filtered(group, predicate, self.truths) for group in groups]
            walk.parts.append(self.part(predicate, at, _INSIDE))
            if not any(groups):
                walk.notes.append(f"no node of {shown} meets its predicates")
                break
        walk.nodes = in_document_order([node for group in groups for node in group])

    def _step_test(self, step: Step | AxisStep) -> str:
        bare = AxisStep(step.axis, step.kind, step.name) if isinstance(step, AxisStep) else step
        return print_axis_step(bare, self.prefixes) if isinstance(bare, AxisStep) else self._test(bare)

    def _leaf(
        self, leaf: Exists | Comparison, path: Location, contexts: Sequence[Node], truth: bool, above: Step | None
    ) -> Clause:
        """A path or a comparison: the steps as far as they lead, and the predicates on the way."""
        shown = print_part(leaf, self.prefixes, is_top=above is None)
        parts: list[Clause] = []
        nodes = list(contexts)
        for place, step in enumerate(path.steps):
            reached = _unique(chain.from_iterable(nodes_of(step, node) for node in nodes))
            if not reached:
                return Clause(shown, truth, (), self._missing(step, nodes), tuple(parts))
            rest = _rest(leaf, path, place)
            self.rests.append(rest)
            passed = [node for node in reached if all(self._holds(each, node) for each in step.predicates)]
            if truth:
                passed = [node for node in passed if self._holds(rest, node)]
            explained = passed or reached
            parts += (self.part(each, list(map(Context, explained)), step) for each in step.predicates)
            note = None if truth else self._not_together(step, rest, reached)
            if note is None and not passed:
                which = "its predicate" if len(step.predicates) == 1 else "all its predicates"
                note = f"no `{self._test(step)}` meets {which}"
            if note is not None:
                return Clause(shown, truth, self._met(reached), note + _more(reached), tuple(parts))
            nodes = passed
        if isinstance(leaf, Comparison) and truth:
            nodes = [node for node in nodes if compares(string_value(node), leaf.operator, leaf.value)]
        note = _more(nodes).removeprefix(", ") or None
        return Clause(shown, truth, self._met(nodes), note, tuple(parts))

    def _not_together(self, step: Step, rest: Expression, nodes: Sequence[Node]) -> str | None:
        """A note if each branch holds at some node of a step, but no node meets them all."""
        branches = [each for predicate in step.predicates for each in _conjuncts(predicate)]
        if rest != Exists(Location(())):
            branches.append(rest)
        if len(branches) < 2 or any(all(self._holds(each, node) for each in branches) for node in nodes):
            return None
        met_somewhere = all(any(self._holds(each, node) for node in nodes) for each in branches)
        return self._apart(step) if met_somewhere else None

    def _holds(self, part: Expression, node: Node) -> bool:
        return meets(part, node, self.truths)

    def _apart(self, step: Step | None) -> str:
        return _NOT_TOGETHER.format(name="/" if step is None else self._test(step))

    def _missing(self, step: Step, nodes: Sequence[Node]) -> str:
        """A note on a step that leads nowhere, and from where."""
        places = list(dict.fromkeys(self._tag_path(node) for node in nodes))
        where = " or ".join(places[:3]) + (f" or {len(places) - 3} more" if len(places) > 3 else "")
        is_attribute = step.kind is NodeKind.ATTRIBUTE and not step.is_descendant
        return f"no `{self._test(step)}` {'on' if is_attribute else 'below'} {where}"

    def _test(self, step: Step) -> str:
        return print_test(step, self.prefixes)

    def _met(self, nodes: Sequence[Node]) -> tuple[Met, ...]:
        return tuple(Met(self._place(node), (_shortened(string_value(node)),)) for node in nodes[:_MOST_NODES])

    def _tag_path(self, node: Node) -> str:
        """The names from the root to a node."""
        steps = [self._name(each) for each in _way_to(node)]
        return "/" + "/".join(steps)

    def _place(self, node: Node) -> str:
        """The names from the root to a node, with positions among siblings of the same name."""
        return "/" + "/".join(self._name(each) + _position(each) for each in _way_to(node))

    def _name(self, node: Node) -> str:
        if node.kind is NodeKind.TEXT:
            return "text()"
        return ("@" if node.kind is NodeKind.ATTRIBUTE else "") + print_name(node.name or "", self.prefixes)


@dataclass(slots=True)
class _Walk:
    """Where the steps of an explanation have come to."""

    nodes: list[Node]
    parts: list[Clause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _found(nodes: Value, context: Context, truths: TruthCache) -> list[Node]:
    found = evaluate(nodes, context, truths)
    return found if isinstance(found, list) else []


def _filtered(nodes: list[Node], predicate: Expression, truths: TruthCache) -> list[Node]:
    return filtered(nodes, (predicate,), truths)


def _rest(leaf: Exists | Comparison, path: Location, place: int) -> Expression:
    """The rest of a leaf below the step at a place, without that step's predicates."""
    below = Location(path.steps[place + 1 :])
    return Exists(below) if isinstance(leaf, Exists) else Comparison(below, leaf.operator, leaf.value)


def _conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    return predicate.items if isinstance(predicate, And) else (predicate,)


def _unique(nodes: chain[Node]) -> list[Node]:
    return list({id(node): node for node in nodes}.values())


def _way_to(node: Node) -> list[Node]:
    """The nodes from the document's element to a node."""
    way: list[Node] = []
    current: Node | None = node
    while current is not None and current.parent is not None:
        way.append(current)
        current = current.parent
    return way[::-1]


def _position(node: Node) -> str:
    """`[2]` for the second of several siblings of one name."""
    if node.kind is NodeKind.ATTRIBUTE or node.parent is None:
        return ""
    alike = [sibling for sibling in node.parent.children if sibling.kind is node.kind and sibling.name == node.name]
    return f"[{1 + next(at for at, each in enumerate(alike) if each is node)}]" if len(alike) > 1 else ""


def _more(nodes: Sequence[Node]) -> str:
    return f", and {len(nodes) - _MOST_NODES:,} more nodes" if len(nodes) > _MOST_NODES else ""


def _plain_value(value: object) -> object:
    """A string or a number as it is shown."""
    if isinstance(value, str):
        return _shortened(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
