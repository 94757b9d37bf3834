"""Splits an XML file into documents: each element of a given name becomes a document.

The file may be larger than memory. expat reads it and reports where elements begin and end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.parsers import expat

from harken.errors import DecodeError, HarkenError, LimitError, Place
from harken.events.encodings import UTF_8, encoding_of
from harken.events.excerpt import MAX_EXCERPT, settled
from harken.events.pieces import Piece, too_long
from harken.events.xml.expat import malformed
from harken.limits import DEFAULT_LIMITS, Limits

_CHUNK = 65_536
_MOST_LEVELS = 10_000
"""Maximal nesting of elements in the file: expat keeps each open element in memory."""
_START_TAG = re.compile(rb"""<[^\s/>]+(?:[^>"']|"[^"]*"|'[^']*')*>""")
_NAME = re.compile(rb"<[^\s/>]+")
_ESCAPES = {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}

Scope = dict[str, str]
"""Namespaces by declaring attribute, such as `xmlns:a`."""


def documents_of(stream: BinaryIO, limits: Limits = DEFAULT_LIMITS) -> Iterator[Piece]:
    """A whole file as one document."""
    data = stream.read(limits.max_event_bytes + 1)
    if len(data) > limits.max_event_bytes:
        yield Piece(data[: 4 * MAX_EXCERPT], 1, error=too_long(limits))
    else:
        yield Piece(data, 1)


def split(stream: BinaryIO, tag: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Piece]:
    """Every element named `tag` that is not inside another one, as a document, with its place in the source.

    `tag` is a local name, or a name with its prefix as written. If the file is malformed, the last piece has the error.
    """
    splitter = _Splitter(tag, limits)
    try:
        for chunk in _in_utf_8(stream):
            splitter.feed(chunk)
            yield from splitter.taken()
            if splitter.is_stuck:
                raise splitter.beyond("a tag, comment or instruction is longer than an event may be")
        splitter.finish()
        yield from splitter.taken()
    except (HarkenError, expat.ExpatError) as error:
        yield from splitter.taken()
        yield splitter.broken(error)


class _Splitter:
    """Tracks the elements of a file. Only the bytes of the open record are kept in memory."""

    def __init__(self, tag: str, limits: Limits) -> None:
        self._tag, self._limits = tag, limits
        self._most_levels = max(_MOST_LEVELS, limits.max_event_depth)
        self._parser: Any = expat.ParserCreate("utf-8")
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._stop
        self._parser.StartDoctypeDeclHandler = self._check_doctype
        self._buffer = bytearray()
        self._buffer_start = 0
        self._scopes: list[Scope] = [{}]
        self._level = 0
        self._has_bytes = False
        self._record = self._record_level = -1
        self._added = b""
        self._place = (1, 1)
        self._is_too_long = False
        self._ready: list[Piece] = []
        self._waiting: list[bytes] = []
        self._size = self._least = 0

    def taken(self) -> list[Piece]:
        """Return the complete pieces, and forget them."""
        ready, self._ready = self._ready, []
        return ready

    @property
    def is_stuck(self) -> bool:
        """Whether one token is longer than a document may be."""
        seen = self._buffer_start + len(self._buffer) - max(0, self._parser.CurrentByteIndex)
        return bool(seen + self._size > self._limits.max_event_bytes + 2 * _CHUNK)

    def feed(self, chunk: bytes) -> None:
        """Take more bytes. expat rereads an incomplete token from its beginning, so it gets twice as many next time."""
        self._has_bytes = True
        self._waiting.append(chunk)
        self._size += len(chunk)
        if self._size < self._least:
            return
        before = self._parser.CurrentByteIndex
        self._parse()
        is_stuck = self._parser.CurrentByteIndex <= before
        self._least = max(_CHUNK, 2 * self._least) if is_stuck else 0

    def _parse(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        self._buffer += data
        self._parser.Parse(data, False)
        here = max(0, self._parser.CurrentByteIndex)
        if self._record >= 0 and here - self._record > self._limits.max_event_bytes and not self._is_too_long:
            self._reject_record()
        keep = here if self._record < 0 or self._is_too_long else self._record
        self._forget(keep)

    def finish(self) -> None:
        self._parse()
        self._parser.Parse(b"", True)
        self.close()

    def close(self) -> None:
        """Break the reference cycle of parser and splitter."""
        self._parser.StartElementHandler = self._parser.EndElementHandler = None
        self._parser.StartDoctypeDeclHandler = None

    def broken(self, error: HarkenError | expat.ExpatError) -> Piece:
        """The last piece, with the error that ends the splitting."""
        self.close()
        if isinstance(error, expat.ExpatError):
            if not self._has_bytes:
                return Piece(b"", 1, 1, DecodeError("the file is empty"))
            error = malformed(error, "file", has_begun=bool(self._level))
            if self._record >= 0 and not self._is_too_long:
                error.message += f"; a `{self._tag}` that begins in line {self._place[0]} is not complete"
        place = error.place or Place(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
        error.place = None
        return Piece(bytes(self._buffer[: 4 * MAX_EXCERPT]), place.line, place.column or 1, settled(error))

    def beyond(self, message: str) -> LimitError:
        return LimitError(message, limit="max_event_bytes")

    def _start(self, name: str, attributes: list[str]) -> None:
        self._level += 1
        if self._level > self._most_levels:
            raise LimitError(f"elements are nested deeper than {self._most_levels}", limit="max_event_depth")
        if self._record >= 0:
            return
        if name == self._tag or name.rpartition(":")[2] == self._tag:
            self._record = self._parser.CurrentByteIndex
            self._record_level = self._level
            self._place = (self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
            self._is_too_long = False
            self._added = self._missing(attributes)
            return
        declared = {key: value for key, value in _pairs(attributes) if key == "xmlns" or key.startswith("xmlns:")}
        self._scopes.append(self._scopes[-1] | declared if declared else self._scopes[-1])

    def _missing(self, attributes: list[str]) -> bytes:
        """The namespace declarations that a record inherits, as text for its start tag."""
        declared = set(attributes[::2])
        return "".join(
            f' {key}="{"".join(_ESCAPES.get(each, each) for each in value)}"'
            for key, value in self._scopes[-1].items()
            if key not in declared and value
        ).encode()

    def _stop(self, _: str) -> None:
        self._level -= 1
        if self._record < 0:
            self._scopes.pop()
        elif self._level < self._record_level:
            if not self._is_too_long:
                self._cut()
            self._record = -1

    def _cut(self) -> None:
        """Cut out a complete record. The parser is at the beginning of its end tag."""
        start = self._record - self._buffer_start
        tag = _START_TAG.match(self._buffer, start)
        name = _NAME.match(self._buffer, start)
        assert tag is not None
        assert name is not None
        here = self._parser.CurrentByteIndex - self._buffer_start
        end = tag.end() if self._buffer[tag.end() - 2] == ord("/") else self._buffer.index(b">", here) + 1
        if end - start + len(self._added) > self._limits.max_event_bytes:
            self._reject_record()
            return
        data = bytes(self._buffer[start : name.end()]) + self._added + bytes(self._buffer[name.end() : end])
        self._ready.append(Piece(data, *self._place))

    def _reject_record(self) -> None:
        start = self._record - self._buffer_start
        self._is_too_long = True
        beginning = bytes(self._buffer[start : start + 4 * MAX_EXCERPT])
        self._ready.append(Piece(beginning, *self._place, too_long(self._limits)))

    def _forget(self, keep: int) -> None:
        """Drop the bytes before offset `keep`."""
        if keep - self._buffer_start > 0:
            del self._buffer[: keep - self._buffer_start]
            self._buffer_start = keep

    def _check_doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        if has_subset:
            raise DecodeError(
                "the file has a DOCTYPE with definitions inside, which Harken rejects: they may define entities",
                hint="take the DOCTYPE out",
            )


def _pairs(attributes: list[str]) -> Iterator[tuple[str, str]]:
    return zip(attributes[::2], attributes[1::2], strict=True)


def _in_utf_8(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, recoded to UTF-8 from the declared encoding, without a byte order mark."""
    head = stream.read(_CHUNK)
    try:
        encoding, mark = encoding_of(head)
    except DecodeError as error:
        message = error.message.replace("the document cannot be read", "the file cannot be read")
        raise DecodeError(message, place=Place(1, 1)) from None
    chunk = head[mark:]
    if encoding == UTF_8:
        while chunk:
            yield chunk
            chunk = stream.read(_CHUNK)
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while chunk:
            yield decoder.decode(chunk).encode()
            chunk = stream.read(_CHUNK)
        yield decoder.decode(b"", True).encode()
    except UnicodeDecodeError as error:
        yield error.object[: error.start].decode(encoding).encode()  # the text before the fault
        raise DecodeError(f"the file is not in its declared encoding `{encoding}`") from None
