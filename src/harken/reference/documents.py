"""The semantics of XPath subscriptions in the plainest code: the law, and the oracle of the tests.

XPath 1.0, the boolean value of an expression with the document's root as context node. It shares only the AST,
errors and limits with the rest.
"""

from __future__ import annotations

import codecs
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from harken.errors import DecodeError, LimitError
from harken.language.xpath.ast import And, Comparison, Exists, Expression, Location, NodeKind, Not, Or, Step
from harken.limits import DEFAULT_LIMITS, Limits

_SPACES = " \t\r\n"

UNBOUNDED = Limits(max_event_bytes=sys.maxsize, max_event_depth=sys.maxsize)
"""For documents that have passed the configured limits."""


@dataclass(slots=True, eq=False)
class Node:
    """A node of a document: the root, an element, an attribute, or a text."""

    kind: NodeKind
    name: str | None
    """The expanded name, `{uri}local` or `local`; None for the root and for texts."""
    value: str
    """The text of an attribute or a text node."""
    parent: Node | None
    attributes: list[Node] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    """Elements and texts, in document order."""


def read(document: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The root node of a document. Raises DecodeError or LimitError."""
    return _Reader(limits).read(document)


TruthCache = dict[tuple[int, int], bool]
"""The truth of predicates at nodes, by the identity of both: nested predicates recur at the same nodes."""


def holds(expression: Expression, document: bytes | str | Node) -> bool:
    """Whether an expression is true of a document."""
    root = document if isinstance(document, Node) else read(document)
    return is_true(expression, root, {})


def is_true(expression: Expression, context: Node, truths: TruthCache) -> bool:
    """Whether an expression is true with a node as context."""
    match expression:
        case And(items=items):
            return all(is_true(item, context, truths) for item in items)
        case Or(items=items):
            return any(is_true(item, context, truths) for item in items)
        case Not(item=item):
            return not is_true(item, context, truths)
        case Exists(path=path):
            return len(nodes_at(path, context, truths)) > 0
        case Comparison(path=path, operator=operator, value=value):
            return any(compares(string_value(node), operator, value) for node in nodes_at(path, context, truths))


def nodes_at(path: Location, context: Node, truths: TruthCache) -> list[Node]:
    """The nodes at a path, each once."""
    nodes = [context]
    for step in path.steps:
        reached = {id(node): node for start in nodes for node in nodes_of(step, start)}
        nodes = [node for node in reached.values() if all(meets(each, node, truths) for each in step.predicates)]
    return nodes


def meets(predicate: Expression, node: Node, truths: TruthCache) -> bool:
    """Whether a predicate is true of a node."""
    key = (id(predicate), id(node))
    if key not in truths:
        truths[key] = is_true(predicate, node, truths)
    return truths[key]


def nodes_of(step: Step, context: Node) -> Iterator[Node]:
    """The nodes that one step leads to, whether or not they meet its predicates."""
    for start in _with_descendants(context) if step.is_descendant else [context]:
        for node in start.attributes if step.kind is NodeKind.ATTRIBUTE else start.children:
            if node.kind is step.kind and step.name in (None, node.name):
                yield node


def string_value(node: Node) -> str:
    """The string-value of a node: of an element or the root, all text below it."""
    if node.kind in (NodeKind.ATTRIBUTE, NodeKind.TEXT):
        return node.value
    return "".join(descendant.value for descendant in _with_descendants(node) if descendant.kind is NodeKind.TEXT)


def number(text: str) -> float:
    """`number()` of a string: blanks, a minus, digits with at most one point; NaN for everything else."""
    digits = text.strip(_SPACES)
    unsigned = digits[1:] if digits.startswith("-") else digits
    whole, _, fraction = unsigned.partition(".")
    if not set(whole + fraction) <= set("0123456789") or not whole + fraction:
        return math.nan
    return float(digits)


def compares(text: str, operator: str, value: str | float) -> bool:
    """Whether `text operator value` holds for a string-value."""
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
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


class _Reader:
    """Builds the tree of one document from expat's events."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.root = Node(NodeKind.ROOT, None, "", None)
        self.open = [self.root]
        self.pieces: list[str] = []

    def read(self, document: bytes | str) -> Node:
        self.check_size(len(document))
        data = (document if isinstance(document, str) else _decoded(document)).encode(errors="surrogatepass")
        self.check_size(len(data))
        if b"\0" in data:
            raise DecodeError("the document is not well-formed XML: it has a NUL character")
        parser = expat.ParserCreate("utf-8", namespace_separator="}")
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
        return self.root

    def check_size(self, size: int) -> None:
        if size > self.limits.max_event_bytes:
            message = f"the document has {size:,} bytes, more than {self.limits.max_event_bytes:,}"
            raise LimitError(message, limit="max_event_bytes")

    def _doctype(self, *_: object) -> None:
        raise DecodeError("the document has a DOCTYPE, which is rejected")

    def _start(self, name: str, attributes: list[str]) -> None:
        self._end_text()
        if len(self.open) > self.limits.max_event_depth:
            message = f"the document is more than {self.limits.max_event_depth} elements deep"
            raise LimitError(message, limit="max_event_depth")
        element = self._add(Node(NodeKind.ELEMENT, _expanded(name), "", self.open[-1]))
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            element.attributes.append(Node(NodeKind.ATTRIBUTE, _expanded(key), value, element))
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
            self._add(Node(NodeKind.TEXT, None, "".join(self.pieces), self.open[-1]))
        self.pieces.clear()

    def _add(self, node: Node) -> Node:
        self.open[-1].children.append(node)
        return node


def _decoded(document: bytes) -> str:
    """Decode a document in UTF-8, UTF-16 or a single-byte encoding that extends ASCII.

    Raises DecodeError for invalid bytes, and if the document declares another encoding than it has.
    """
    has_mark = document.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    codec = "utf-8"
    if document.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in document[:2]:
        codec = "utf-16-be" if document.startswith((b"\xfe\xff", b"\0")) else "utf-16-le"
    head = document.decode("latin-1" if codec == "utf-8" else codec, errors="replace")
    head = head.removeprefix("\xef\xbb\xbf" if codec == "utf-8" else "\ufeff")
    declaration = re.match(r"""<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""", head, re.ASCII)
    if declaration is not None:
        name = declaration[1].lower()
        if codec != "utf-8":
            agrees = name in ("utf-16", codec.replace("utf-16-", "utf-16"))
        elif has_mark:
            agrees = _is_utf_8(name)
        else:
            agrees = _is_utf_8(name) or _is_single_byte(name)
            codec = name
        if not agrees:
            raise DecodeError(f"the document is not in the encoding {declaration[1]} that it declares")
    try:
        return document.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DecodeError(f"the document is not in the encoding {codec}: {error.reason}") from None


def _is_utf_8(name: str) -> bool:
    try:
        return codecs.lookup(name).name == "utf-8"
    except LookupError:
        return False


def _is_single_byte(name: str) -> bool:
    """Whether each byte decodes alone, to a character or to none, and the bytes of ASCII to ASCII."""
    try:
        alone = [bytes([byte]).decode(name, errors="replace") for byte in range(256)]
        pairs = [(one, other) for one in range(256) for other in (0x40, 0x61, 0x80, 0xA1, 0xFE)]
        return (
            alone[:128] == [chr(byte) for byte in range(128)]
            and all(len(each) == 1 for each in alone)
            and all(bytes(pair).decode(name, errors="replace") == alone[pair[0]] + alone[pair[1]] for pair in pairs)
        )
    except (LookupError, ValueError):
        return False


def _expanded(name: str) -> str:
    """A name as expat gives it, `uri}local`, in Clark notation. A URI may have a brace, a local name has none."""
    return "{" + name if "}" in name else name
