"""Cuts a JSON array into its elements while reading it, so that it may be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harken.errors import DecodeError
from harken.events.excerpt import MAX_EXCERPT
from harken.events.pieces import Piece, too_long
from harken.limits import Limits

_STRUCTURE = re.compile(rb'["{}\[\],]')
_IN_STRING = re.compile(rb'["\\]')


def array_elements(chunks: Iterable[bytes], limits: Limits, line: int = 1) -> Iterator[Piece]:
    """The undecoded elements of the array that the chunks contain. Only brackets, commas and quotes are parsed."""
    splitter = _Splitter(limits, line)
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.finish()


class _Splitter:
    """Tracks strings and brackets across chunks."""

    def __init__(self, limits: Limits, line: int) -> None:
        self._limits = limits
        self._line, self._column = line, 1
        self._start = (line, 1)
        self._depth = 0
        self._quoted = False
        self._ended = False
        self._carry = b""
        self._count = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        chunk, self._carry = self._carry + chunk, b""
        begin = at = 0
        while not self._ended and (match := (_IN_STRING if self._quoted else _STRUCTURE).search(chunk, at)):
            mark, at = match[0], match.end()
            if mark == b'"':
                self._quoted = not self._quoted
            elif mark == b"\\":
                if at == len(chunk):  # the escaped character is in the next chunk
                    chunk, self._carry = chunk[:-1], mark
                    break
                at += 1
            elif mark == b",":
                if self._depth == 1:
                    yield self._cut(chunk[begin : at - 1])
                    begin = at
            elif mark in b"{[":
                self._depth += 1
                if self._depth == 1:
                    self._pass(chunk[begin:at])
                    begin = at
            else:
                self._depth -= 1
                if self._depth == 0:
                    yield from self._end(chunk[begin : at - 1])
                    begin = at
        self._add(chunk[begin:])

    def finish(self) -> Iterator[Piece]:
        rest = b"".join(self._parts)
        if not self._ended:
            yield Piece(rest, *self._start, DecodeError("the file ends inside the array that it starts with"))
        elif rest.strip():
            yield Piece(rest, *self._start, DecodeError("there is text after the end of the array"))

    def _end(self, last: bytes) -> Iterator[Piece]:
        self._ended = True
        piece = self._cut(last)
        if self._count > 1 or piece.data.strip():  # not for []
            yield piece

    def _cut(self, last: bytes) -> Piece:
        self._add(last)
        error = too_long(self._limits) if self._size > self._limits.max_event_bytes else None
        piece = Piece(b"".join(self._parts), *self._start, error)
        self._count += 1
        self._parts, self._size = [], 0
        self._column += 1  # the comma or bracket
        return piece

    def _add(self, text: bytes) -> None:
        if not self._size:
            blank = text[: len(text) - len(text.lstrip())]
            self._pass(blank)
            text = text[len(blank) :]
            self._start = (self._line, self._column)
        self._size += len(text)
        self._parts.append(text)
        if self._size > self._limits.max_event_bytes:
            self._parts = [b"".join(self._parts)[: 4 * MAX_EXCERPT]]
        self._pass(text)

    def _pass(self, text: bytes) -> None:
        lines = text.count(b"\n")
        self._line += lines
        width = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
        self._column = width + 1 if lines else self._column + width
