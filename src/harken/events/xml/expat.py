"""Reads a document with expat, which decides what is well-formed, wherever the kernel is not sure."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from harken.errors import DecodeError, HarkenError, LimitError, Place, caret_excerpt
from harken.events.encodings import text_of
from harken.events.excerpt import settled
from harken.events.xml.tag_paths import TagPaths
from harken.limits import Limits

ELEMENT, ATTRIBUTE, TEXT = 1, 2, 3
_SEPARATOR = "\x01"
"""Stands between namespace and local name: XML excludes this character from documents."""
_WIDE_STARTS = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")
_PROLOG = re.compile(rb"\s*(?:<\?.*?\?>|<!--.*?-->)", re.DOTALL)
_DOCTYPE = re.compile(rb"\s*<!DOCTYPE")
_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})""")
_MOST_BYTES_OF_LINE = 1_000
_SLICE = 65_536
_HANDLERS = (
    "StartElementHandler",
    "EndElementHandler",
    "CharacterDataHandler",
    "CommentHandler",
    "ProcessingInstructionHandler",
    "StartDoctypeDeclHandler",
)

_REASONS = {
    2: "text stands where a tag is expected",
    3: "it has no root element",
    4: "it is not well-formed: a character or a token that XML does not allow here",
    5: "it ends inside a tag, a comment or another token",
    6: "it ends inside a character",
    7: "an end tag does not fit its start tag",
    8: "an attribute stands twice in one tag",
    9: "there is something after the root element",
    11: "an entity is not defined",
    14: "a character reference names no character of XML",
    17: "an XML declaration stands where none may",
    18: "its encoding is not known",
    19: "its encoding is not the one that it declares",
    20: "a CDATA section does not end",
    27: "a prefix is not declared",
    28: "a prefix must not be undeclared",
    30: "its XML declaration is malformed",
    38: "the prefix `xml` must not be redeclared",
    39: "the prefix `xmlns` must not be declared",
    40: "a reserved namespace must not be declared",
}
"""Explanations of expat's error codes."""
_NO_ELEMENT = 3
_OF_ENCODING = (18, 19)


class ParsedNodes(NamedTuple):
    """The nodes of one document, as `Documents` has them."""

    path: NDArray[np.int32]
    parent: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    text: NDArray[np.uint8]


def read_by_expat(data: bytes, paths: TagPaths, limits: Limits, *, is_text: bool = False) -> ParsedNodes:
    """The nodes of a document. Raises DecodeError or LimitError, with line and column.

    With `is_text`, the document was a string and is UTF-8, whatever encoding it declares.
    """
    check_size(len(data), limits)
    _reject_doctype(data)
    if not is_text:
        try:
            text = text_of(data).encode()
        except DecodeError as rejection:
            if isinstance(rejection.__cause__, UnicodeDecodeError):
                _read(data, paths, limits, None)  # expat's error is more precise, if it raises one
            raise rejection.at(_place_of(rejection)) from None
        check_size(len(text), limits)
        data = text
    return _read(data, paths, limits, "utf-8")


def _place_of(rejection: DecodeError) -> Place:
    """The place of the first byte that cannot be decoded; the beginning if the encoding itself is wrong."""
    cause = rejection.__cause__
    if not isinstance(cause, UnicodeDecodeError):
        return Place(1, 1)
    before = cause.object[: cause.start].decode(cause.encoding)
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _read(data: bytes, paths: TagPaths, limits: Limits, encoding: str | None) -> ParsedNodes:
    if encoding is not None and 0 in data[:2]:  # expat would read it as UTF-16
        place = Place(1, 1 + data.index(0))
        raise DecodeError(f"the document cannot be read: {_REASONS[4]}", place=place)
    reader = _Reader(data, paths, limits, encoding)
    try:
        return reader.nodes()
    except HarkenError as error:
        raise settled(error) from None
    except expat.ExpatError as error:
        raise _malformed(data, error) from None
    except (LookupError, ValueError):  # pyexpat asks Python for encodings that expat does not know
        message = f"the document cannot be read: its encoding{_declared(data)} is not known"
        raise DecodeError(message, place=Place(1, 1)) from None


def check_size(size: int, limits: Limits) -> None:
    """Raise LimitError if a document has too many bytes."""
    if size > limits.max_event_bytes:
        message = f"the document has {size} bytes, more than {limits.max_event_bytes}"
        raise LimitError(message, limit="max_event_bytes", place=Place(1, 1))


def feed(parser: Any, data: bytes) -> None:
    """Feed data to a parser in slices: after a handler raised, expat goes on to the end of the slice.

    expat reads an incomplete token again from its beginning, so slices grow until the token ends.
    """
    at, size, progress = 0, _SLICE, -1
    while at < len(data):
        parser.Parse(data[at : at + size], False)
        at += size
        size = _SLICE if parser.CurrentByteIndex > progress else 2 * size
        progress = parser.CurrentByteIndex


def _reject_doctype(data: bytes) -> None:
    """Reject a DOCTYPE before expat reads it: expat would go on to the end of the data after the rejection."""
    prolog = data
    if data.startswith(_WIDE_STARTS):
        order = "utf-16-le" if data.startswith((b"\xff\xfe", b"<\x00")) else "utf-16-be"
        if "<!DOCTYPE".encode(order) not in data:
            return
        prolog = data.decode(order, "replace").lstrip("\ufeff").encode("utf-8", "replace")
    elif b"<!DOCTYPE" not in data:
        return
    at = 3 if prolog.startswith(b"\xef\xbb\xbf") else 0
    while match := _PROLOG.match(prolog, at):
        at = match.end()
    match = _DOCTYPE.match(prolog, at)
    if match:
        start = match.end() - len(b"<!DOCTYPE")
        line = prolog.count(b"\n", 0, start) + 1
        before = prolog[prolog.rfind(b"\n", 0, start) + 1 : start]
        raise doctype_rejected(Place(line, len(before.decode(errors="replace")) + 1))


def doctype_rejected(place: Place) -> DecodeError:
    return DecodeError(
        "the document has a DOCTYPE, which Harken rejects: it may define entities",
        place=place,
        hint="take the DOCTYPE out",
    )


def malformed(error: expat.ExpatError, what: str = "document", data: bytes = b"", *, has_begun: bool) -> DecodeError:
    """expat's error with its place. `has_begun`: whether the root element has begun."""
    reason = _REASONS.get(error.code) or f"it is not well-formed: {expat.ErrorString(error.code)}"
    if error.code == _NO_ELEMENT and has_begun:  # expat reports the same for an element left open at the end
        reason = "it ends before its root element does"
    place = Place(error.lineno, error.offset + 1)
    return DecodeError(f"the {what} cannot be read: {reason}", place=place, excerpt=_excerpt(data, place))


def _malformed(data: bytes, error: expat.ExpatError) -> DecodeError:
    if not data.strip():
        return DecodeError("the document is empty", place=Place(1, 1))
    rejection = malformed(error, "document", data, has_begun=data.lstrip().startswith(b"<"))
    if error.code in _OF_ENCODING:
        rejection.message += _declared(data)
    return rejection


def _declared(data: bytes) -> str:
    match = _ENCODING.search(data[:200])
    return f" `{match[1].decode()}`" if match else ""


def _excerpt(data: bytes, place: Place) -> str | None:
    """The line with a caret; None for long lines and for UTF-16."""
    start = 0
    for _ in range(place.line - 1):
        start = data.find(b"\n", start) + 1
        if start == 0:
            return None
    end = data.find(b"\n", start, start + _MOST_BYTES_OF_LINE)
    line = data[start : end if end >= 0 else start + _MOST_BYTES_OF_LINE]
    if not line or data.startswith(_WIDE_STARTS) or place.column is None or place.column > len(line) + 1:
        return None
    return caret_excerpt(line.decode(errors="replace"), 1, place.column)


class _Reader:
    """Gathers the nodes of one document while expat reads it."""

    def __init__(self, data: bytes, paths: TagPaths, limits: Limits, encoding: str | None) -> None:
        self._data = data
        self._paths, self._limits = paths, limits
        self._path: list[int] = [0]
        self._parent: list[int] = [-1]
        self._begin: list[int] = [0]
        self._end: list[int] = [0]
        self._texts: list[bytes] = []
        self._size = 0
        self._values: list[bytes] = []
        self._values_size = 0
        self._numbers: dict[tuple[int, int, str], int] = {}
        self._parser: Any = expat.ParserCreate(encoding, _SEPARATOR)
        self._parser.ordered_attributes = True
        self._parser.buffer_text = True
        self._parser.buffer_size = _SLICE

    def nodes(self) -> ParsedNodes:
        parser = self._parser
        parser.StartDoctypeDeclHandler = self._reject
        self._follow_elements()
        try:
            feed(parser, self._data)
            parser.Parse(b"", True)
        finally:  # break the reference cycle of parser and handlers
            for name in _HANDLERS:
                setattr(parser, name, None)
        self._end[0] = self._size
        begin, end = np.array(self._begin, np.int64), np.array(self._end, np.int64)
        path = np.array(self._path, np.int32)
        is_attribute = self._paths.kind[path] == ATTRIBUTE
        begin[is_attribute] += self._size
        end[is_attribute] += self._size
        text = np.frombuffer(b"".join([*self._texts, *self._values]), np.uint8)
        return ParsedNodes(path, np.array(self._parent, np.int32), begin, end, text)

    def _follow_elements(self) -> None:
        """Set the handlers. They are closures, because they run for every node and attribute access is slow."""
        paths, parents, begins, ends, texts = self._path, self._parent, self._begin, self._end, self._texts
        numbers, number = self._numbers, self._number
        max_levels, max_nodes = self._limits.max_event_depth, self._limits.max_document_nodes
        open_elements = [0]
        size = 0
        is_in_text = False

        def start(name: str, attributes: list[str]) -> None:
            nonlocal is_in_text
            is_in_text = False
            if len(open_elements) > max_levels:
                raise self._beyond(f"elements are nested deeper than {max_levels}", "max_event_depth")
            parent, element = open_elements[-1], len(paths)
            key = paths[parent], ELEMENT, name
            paths.append(numbers.get(key) or number(key))
            parents.append(parent)
            begins.append(size)
            ends.append(size)
            open_elements.append(element)
            if attributes:
                self._add_attributes(element, attributes)
            if len(paths) > max_nodes + 1:
                raise self._beyond(f"the document has more than {max_nodes} nodes", "max_document_nodes")

        def stop(_: str) -> None:
            nonlocal is_in_text
            is_in_text = False
            ends[open_elements.pop()] = size

        def add_text(text: str) -> None:
            nonlocal is_in_text, size
            data = text.encode()
            texts.append(data)
            begin = size
            size = self._size = begin + len(data)
            if is_in_text:
                ends[-1] = size
                return
            is_in_text = True
            parent = open_elements[-1]
            key = paths[parent], TEXT, ""
            paths.append(numbers.get(key) or number(key))
            parents.append(parent)
            begins.append(begin)
            ends.append(size)
            if len(paths) > max_nodes + 1:
                raise self._beyond(f"the document has more than {max_nodes} nodes", "max_document_nodes")

        def split(*_: str) -> None:
            nonlocal is_in_text
            is_in_text = False

        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = stop
        self._parser.CharacterDataHandler = add_text
        self._parser.CommentHandler = self._parser.ProcessingInstructionHandler = split

    def _add_attributes(self, element: int, attributes: list[str]) -> None:
        path = self._path[element]
        for place in range(0, len(attributes), 2):
            value = attributes[place + 1].encode()
            key = path, ATTRIBUTE, attributes[place]
            self._path.append(self._numbers.get(key) or self._number(key))
            self._parent.append(element)
            self._begin.append(self._values_size)
            self._values_size += len(value)
            self._end.append(self._values_size)
            self._values.append(value)

    def _number(self, key: tuple[int, int, str]) -> int:
        """The number of a tag path, whose name is in expat's spelling."""
        parent, kind, raw = key
        uri, separator, local = raw.rpartition(_SEPARATOR)
        name = f"{{{uri}}}{local}" if separator else raw
        number = self._numbers[key] = self._paths.number(parent, kind, name.encode())
        return number

    def _reject(self, *_: object) -> None:
        raise doctype_rejected(self._place())

    def _beyond(self, message: str, limit: str) -> LimitError:
        return LimitError(message, limit=limit, place=self._place())

    def _place(self) -> Place:
        return Place(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
