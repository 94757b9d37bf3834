"""Adds reference values to XML documents as elements, looked up by a key in each document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from xml.parsers import expat

import numpy as np

from harken.errors import DecodeError, HarkenError, SourceError
from harken.events.arrow_rows import is_arrow, rows_from_arrow
from harken.events.encodings import text_of
from harken.events.xml.documents import read_documents
from harken.events.xml.tag_paths import TagPaths
from harken.limits import DEFAULT_LIMITS, Limits

_NAME = r"[^\W\d][\w.\-]*"
_STEP = rf"(?:\{{[^{{}}]*\}})?{_NAME}"
_KEY = re.compile(rf"((?:/{_STEP})+)(?:/(@{_STEP}|text\(\)))?")
_ELEMENT, _ATTRIBUTE, _TEXT = 1, 2, 3
"""Kinds of nodes."""
_LAST_TAG = re.compile(r"</[^<>]*>\s*\Z")
_ENCODING = re.compile(r"""(<\?xml\s[^>]*?)\sencoding\s*=\s*["']([^"']*)["']""")
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


class DocumentKey:
    """The first value at a plain path of a document: `/order/customer/@id`, `/order/customer`, `/order/no/text()`.

    Names in a namespace are written `{uri}name`. White space around a value is stripped.
    """

    def __init__(self, path: str, limits: Limits = DEFAULT_LIMITS) -> None:
        match = _KEY.fullmatch(path)
        if match is None:
            hint = "write child steps from the root on, such as /order/customer/@id"
            raise HarkenError(f"{path!r:.80} is no plain path to a key", hint=hint)
        names = [(_ELEMENT, name.encode()) for name in re.findall(rf"/({_STEP})", match[1])]
        last = match[2]
        if last is not None:
            names.append((_TEXT, b"") if last == "text()" else (_ATTRIBUTE, last[1:].encode()))
        self._steps = names[::-1]
        self._limits = limits
        self._matched: tuple[TagPaths | None, int, set[int]] = None, 0, set()

    def __getstate__(self) -> dict[str, Any]:
        # Tag paths belong to a process.
        return {"_steps": self._steps, "_limits": self._limits, "_matched": (None, 0, set())}

    def __call__(self, document: str) -> str | None:
        """The value; None if the document has none, or is malformed."""
        data = np.frombuffer(document.encode(errors="replace"), np.uint8)
        read = read_documents(data, np.array([0, len(data)]), np.zeros(1, np.int32), self._limits, is_text=True)
        wanted = self._paths(read.paths)
        for node in np.flatnonzero(np.isin(read.path, list(wanted))).tolist() if wanted else ():
            text = read.text[read.begin[node] : read.end[node]].tobytes().decode().strip()
            if text:
                return text
        return None

    def _paths(self, paths: TagPaths) -> set[int]:
        """The numbers of the tag paths that equal this path."""
        previous, seen, wanted = self._matched
        if previous is not paths:
            seen, wanted = 0, set()
        count = len(paths)
        if seen < count or previous is not paths:
            wanted = wanted | {number for number in range(seen, count) if self._fits(paths, number)}
            self._matched = paths, count, wanted
        return wanted

    def _fits(self, paths: TagPaths, number: int) -> bool:
        for kind, name in self._steps:
            if paths.kind[number] != kind or paths.name(number) != name:
                return False
            number = int(paths.parent[number])
        return number == 0


class Enrichment:
    """Adds the reference values of a document's key to it: bytes in, bytes out.

    `key` is a plain path such as `/order/customer/@id`. `table` maps keys to mappings of element names to values, or is
    an Arrow table whose `column`, the first unless it is named, has the keys. The values are appended as the last child
    of the root element: `<reference><region>EU</region></reference>`, in no namespace. A list is an element for each of
    its items, a null is left out. A document without a key, or with an unknown one, stays as it is, and so does a
    malformed one. A changed document is UTF-8.

    Raises HarkenError if the path or a name cannot be used, or if the table has a key twice.
    """

    def __init__(
        self,
        key: str,
        table: Any,
        element: str = "reference",
        column: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._key = DocumentKey(key, limits)
        self._elements: dict[str, str] = {}
        for value, values in _rows(table, column):
            if value in self._elements:
                raise SourceError(f"the reference table has several rows for the key {value!r:.60}")
            self._elements[value] = element_of(element, values)

    def __call__(self, document: bytes) -> bytes:
        try:
            text = text_of(document)
        except DecodeError:
            return document
        key = self._key(text)
        added = None if key is None else self._elements.get(key)
        if not added:
            return document
        return inserted_in_bytes(text, added)


def element_of(name: str, values: Mapping[str, Any]) -> str:
    """An element with a child for every value that is not null; empty if there is none. Raises HarkenError."""
    require_name(name)
    inner = "".join(_children(values))
    return f"<{name}>{inner}</{name}>" if inner else ""


def require_name(name: str) -> None:
    """Raise HarkenError if this is no name of an element, or has a prefix."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise HarkenError(f"{name!r:.60} is no name of an XML element", hint="rename the column")


def inserted(document: str, element: str) -> str:
    """The document with an element added as the last child of the root element. The document must be well-formed."""
    if "xmlns" in document:
        element = re.sub(rf"\A<({_NAME})", r'<\1 xmlns=""', element)
    last = None if document.rstrip().endswith(("-->", "?>")) else _LAST_TAG.search(document)
    if last is not None:
        return f"{document[: last.start()]}{element}{document[last.start() :]}"
    return _inserted_carefully(document.encode(), element.encode()).decode()


def inserted_in_bytes(document: str, element: str) -> bytes:
    """`inserted`, as bytes in UTF-8, with a declaration of another encoding removed."""
    return inserted(_ENCODING.sub(_if_utf8, document, count=1), element).encode()


def _if_utf8(declaration: re.Match[str]) -> str:
    return declaration[0] if declaration[2].lower() in ("utf-8", "us-ascii") else declaration[1]


def _inserted_carefully(document: bytes, element: bytes) -> bytes:
    """`inserted` for a document whose root element is empty or not the last thing in it."""
    start, end = _root(document)
    if document[end : end + 2] == b"</":
        return document[:end] + element + document[end:]
    # For an empty element, expat reports the beginning also as its end.
    name = re.compile(rb"<([^\s/>]+)").match(document, start)
    close = re.compile(rb"""(?:[^>"']|"[^"]*"|'[^']*')*?(/\s*>)""").match(document, start)
    if name is None or close is None:
        return document
    return document[: close.start(1)] + b">" + element + b"</" + name[1] + b">" + document[close.end(1) :]


def _root(document: bytes) -> tuple[int, int]:
    """The offsets of the root element's start tag and end tag."""
    parser = expat.ParserCreate("utf-8")
    places: list[int] = []
    level = 0

    def start(name: str, attributes: Any) -> None:
        nonlocal level
        if level == 0:
            places.append(parser.CurrentByteIndex)
        level += 1

    def stop(name: str) -> None:
        nonlocal level
        level -= 1
        if level == 0:
            places.append(parser.CurrentByteIndex)

    parser.StartElementHandler, parser.EndElementHandler = start, stop
    parser.Parse(document, True)
    parser.StartElementHandler = parser.EndElementHandler = None
    return places[0], places[1]


def _children(values: Mapping[str, Any]) -> Iterable[str]:
    for name, value in values.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is not None:
                require_name(name)
                yield f"<{name}>{_NO_CHARACTER.sub(chr(0xFFFD), _text(item)).translate(_ESCAPES)}</{name}>"


def _rows(table: Any, column: str | None) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if not is_arrow(table):
        yield from ((_text(key), values) for key, values in dict(table).items())
        return
    for row in rows_from_arrow(table):
        values = dict(row.content or {})
        name = next(iter(values)) if column is None else column
        if name not in values:
            raise SourceError(f"the reference table has no column `{name}`")
        key = values.pop(name)
        if key is not None:
            yield _text(key), values


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    # XPath reads no exponents.
    float: lambda value: format(Decimal(repr(value)), "f") if value - value == 0 else str(value),
    Decimal: lambda value: format(value, "f"),
    datetime: datetime.isoformat,
    date: date.isoformat,
}


def _text(value: Any) -> str:
    write = _TEXTS.get(type(value))
    if write is None:
        raise HarkenError(f"a {type(value).__name__} is no value of an element", hint="numbers, strings and times are")
    return write(value)
