"""The semantics of XPath subscriptions in the plainest code: the law, and the oracle of the tests.

XPath 1.0, the boolean value of an expression with the document's root as context node. It shares the AST, errors and
limits with the rest, no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from harken.errors import DecodeError, LimitError
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Kind, Location, Not, Or, Step
from harken.limits import DEFAULT_LIMITS, Limits

_SPACES = " \t\r\n"


@dataclass(slots=True, eq=False)
class Node:
    """A node of a document: the root, an element, an attribute, or a text."""

    kind: Kind
    name: str | None
    """The expanded name, `{uri}local` or `local`; None for the root and for texts."""
    value: str
    """Of an attribute or a text."""
    parent: Node | None
    attributes: list[Node] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    """Elements and texts, in document order."""


def read(document: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The root node of a document. Raises DecodeError or LimitError."""
    return _Reader(limits).read(document)


Known = dict[tuple[int, int], bool]
"""Predicates that were asked of nodes before, by identity: nested ones would be asked again and again."""


def holds(expression: Expression, document: bytes | str | Node) -> bool:
    """Whether an expression is true of a document."""
    root = document if isinstance(document, Node) else read(document)
    return is_true(expression, root, {})


def is_true(expression: Expression, context: Node, known: Known) -> bool:
    """Whether an expression is true with a node as context."""
    match expression:
        case And(items=items):
            return all(is_true(item, context, known) for item in items)
        case Or(items=items):
            return any(is_true(item, context, known) for item in items)
        case Not(item=item):
            return not is_true(item, context, known)
        case Exists(path=path):
            return len(nodes_at(path, context, known)) > 0
        case Comparison(path=path, operator=operator, value=value):
            return any(compares(string_value(node), operator, value) for node in nodes_at(path, context, known))


def nodes_at(path: Location, context: Node, known: Known) -> list[Node]:
    """The nodes at a path, each once."""
    found = [context]
    for step in path.steps:
        reached = {id(node): node for start in found for node in nodes_of(step, start)}
        found = [node for node in reached.values() if all(meets(each, node, known) for each in step.predicates)]
    return found


def meets(predicate: Expression, node: Node, known: Known) -> bool:
    """Whether a predicate is true of a node."""
    key = (id(predicate), id(node))
    if key not in known:
        known[key] = is_true(predicate, node, known)
    return known[key]


def nodes_of(step: Step, context: Node) -> Iterator[Node]:
    """The nodes that one step leads to, whatever its predicates say."""
    for start in _with_descendants(context) if step.is_descendant else [context]:
        for node in start.attributes if step.kind is Kind.ATTRIBUTE else start.children:
            if node.kind is step.kind and step.name in (None, node.name):
                yield node


def string_value(node: Node) -> str:
    """The string-value of a node: of an element or the root, all text below it."""
    if node.kind in (Kind.ATTRIBUTE, Kind.TEXT):
        return node.value
    return "".join(each.value for each in _with_descendants(node) if each.kind is Kind.TEXT)


def number(text: str) -> float:
    """`number()` of a string: blanks, a minus, digits with at most one point; NaN for everything else."""
    digits = text.strip(_SPACES)
    unsigned = digits[1:] if digits.startswith("-") else digits
    whole, _, fraction = unsigned.partition(".")
    if not set(whole + fraction) <= set("0123456789") or not whole + fraction:
        return math.nan
    return float(digits)


def compares(text: str, operator: str, value: str | float) -> bool:
    """Whether a string-value compares with a constant as an operator says."""
    if operator in ("=", "!=") and isinstance(value, str):
        return (text == value) == (operator == "=")
    left = number(text)
    right = number(value) if isinstance(value, str) else value
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


def _with_descendants(node: Node) -> Iterator[Node]:
    """A node and all elements and texts below it, in document order."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.children))


class _Reader:
    """Builds the tree of one document from what expat reports."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.root = Node(Kind.ROOT, None, "", None)
        self.open = [self.root]
        self.pieces: list[str] = []

    def read(self, document: bytes | str) -> Node:
        data = document.encode(errors="surrogatepass") if isinstance(document, str) else document
        if len(data) > self.limits.max_event_bytes:
            message = f"the document has {len(data):,} bytes, more than {self.limits.max_event_bytes:,}"
            raise LimitError(message, limit="max_event_bytes")
        parser = expat.ParserCreate("utf-8" if isinstance(document, str) else None, namespace_separator="}")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.pieces.append
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = self._instruction
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise DecodeError(f"the document is not well-formed XML: {error}") from None
        except ValueError as error:  # an encoding that Python does not know, or that has several bytes a character
            raise DecodeError(f"the document cannot be read: {error}") from None
        return self.root

    def _doctype(self, *_: object) -> None:
        raise DecodeError("the document has a DOCTYPE, which is refused")

    def _start(self, name: str, attributes: list[str]) -> None:
        self._end_text()
        if len(self.open) > self.limits.max_event_depth:
            message = f"the document is more than {self.limits.max_event_depth} elements deep"
            raise LimitError(message, limit="max_event_depth")
        element = self._add(Node(Kind.ELEMENT, _expanded(name), "", self.open[-1]))
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            element.attributes.append(Node(Kind.ATTRIBUTE, _expanded(key), value, element))
        self.open.append(element)

    def _end(self, name: str) -> None:
        self._end_text()
        self.open.pop()

    def _comment(self, text: str) -> None:
        self._end_text()

    def _instruction(self, target: str, text: str) -> None:
        self._end_text()

    def _end_text(self) -> None:
        if self.pieces and len(self.open) > 1:
            self._add(Node(Kind.TEXT, None, "".join(self.pieces), self.open[-1]))
        self.pieces.clear()

    def _add(self, node: Node) -> Node:
        self.open[-1].children.append(node)
        return node


def _expanded(name: str) -> str:
    """A name as expat gives it, `uri}local`, in Clark notation. A URI may have a brace, a local name has none."""
    return "{" + name if "}" in name else name
