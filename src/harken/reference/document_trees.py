"""The tree of a document, in the plainest code: nodes with parents and children, built from expat's events."""

from __future__ import annotations

import codecs
import re
import sys
from dataclasses import dataclass, field
from xml.parsers import expat

from harken.errors import DecodeError, LimitError
from harken.language.xpath.ast import NodeKind
from harken.limits import DEFAULT_LIMITS, Limits

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
    order: int = 0
    """The place in document order: an element, its attributes, its children."""


def read(document: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The root node of a document. Raises DecodeError or LimitError."""
    return _Reader(limits).read(document)


class _Reader:
    """Builds the tree of one document from expat's events."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.root = Node(NodeKind.ROOT, None, "", None)
        self.open = [self.root]
        self.pieces: list[str] = []
        self.count = 0

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
            element.attributes.append(self._numbered(Node(NodeKind.ATTRIBUTE, _expanded(key), value, element)))
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
        return self._numbered(node)

    def _numbered(self, node: Node) -> Node:
        self.count += 1
        node.order = self.count
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
