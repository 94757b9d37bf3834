"""Why a document did or did not match an XPath text: the expression as a tree, with the nodes that each part met.

A part inside a predicate is evaluated at every node that its step leads to, and holds if it holds at one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from harken.language.explanation import Clause, Explanation, Met
from harken.language.registry import FindEvent
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.language.xpath.front_end import XPathFrontEnd
from harken.language.xpath.printer import prefixes_of, print_name, print_part, print_test
from harken.limits import DEFAULT_LIMITS, Limits
from harken.reference.documents import Node, TruthCache, compares, meets, nodes_of, read, string_value
from harken.schema.paths import DOCUMENT

_MOST_NODES = 8
_MOST_CHARACTERS = 80
_NOT_TOGETHER = "each branch holds somewhere, but not below one `{name}`"
_OTHER_NODE = "for another node than the part below"


def explain(expression: Expression, document: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Explanation:
    """Explain an expression on a document, by the reference semantics. Raises DecodeError or LimitError."""
    root = read(document, limits)
    tree = _Explainer(prefixes_of(expression)).part(expression, [root], None)
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

    def part(self, part: Expression, contexts: Sequence[Node], step: Step | None) -> Clause:
        """Explain a part at the nodes that a step leads to, or at the root; if it holds, at those where it holds."""
        chosen = [node for node in contexts if self._holds(part, node)]
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
                return self._leaf(part, path, contexts, truth, step)

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
            parts += (self.part(each, explained, step) for each in step.predicates)
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


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
