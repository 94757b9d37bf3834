"""Records of CSV text. Python's `csv` does not distinguish `""` from an empty cell, and loses the place of an error."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from harken.errors import DecodeError, HarkenError, Place, caret_excerpt
from harken.events.pieces import Piece, first_line, lines, too_long
from harken.limits import Limits

_QUOTED = re.compile(r'"(?:[^"]++|"")*+')


class CsvRecord(NamedTuple):
    """The cells of one record, or the error why it has none. An empty cell without quotes is None."""

    line: int
    cells: list[str | None]
    error: HarkenError | None
    raw: str


class _FaultError(Exception):
    """The text is not CSV from this index on."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.index = index


class _OpenError(Exception):
    """The text ends inside quotes: the record continues on the next line."""


class CsvReader:
    """Cuts a stream into records. A line with bad quoting is rejected, and reading goes on with the next line."""

    def __init__(self, stream: BinaryIO, delimiter: str, limits: Limits) -> None:
        head, line = first_line(stream, limits)
        self._lines = lines(stream, limits, head, line)
        self._waiting: deque[Piece] = deque()
        self._limits = limits
        self._delimiter = delimiter
        self._cell = re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{delimiter}]*+))({delimiter}|\Z)')

    def __iter__(self) -> Iterator[CsvRecord]:
        while (first := self._next_line()) is not None:
            if first.error is not None:
                yield CsvRecord(first.line, [], first.error, first.excerpt)
            elif first.data.strip(b" \r\n"):
                yield self._record(first)

    def _next_line(self) -> Piece | None:
        return self._waiting.popleft() if self._waiting else next(self._lines, None)

    def _record(self, first: Piece) -> CsvRecord:
        """The record that starts on this line, with its further lines."""
        text, error = _decoded(first.data)
        try:
            return CsvRecord(first.line, self._cells(text), error, first.excerpt)
        except _OpenError:
            return self._long_record(first)
        except _FaultError as fault:
            return CsvRecord(first.line, [], _placed(fault, text), first.excerpt)

    def _long_record(self, first: Piece) -> CsvRecord:
        """A record over several lines. If it is malformed, the lines after the first are read again as records."""
        pieces = [first]
        size = len(first.data)
        try:
            while (line := self._next_line()) is not None:
                pieces.append(line)
                size += len(line.data)
                if line.error is not None or size > self._limits.max_event_bytes:
                    return self._give_back(pieces, too_long(self._limits))
                # In well-formed text the quotes close in the first line with an odd number of them.
                if line.data.count(b'"') % 2:
                    whole = first._replace(data=b"".join(piece.data for piece in pieces))
                    text, error = _decoded(whole.data)
                    return CsvRecord(first.line, self._cells(text), error, whole.excerpt)
        except (_FaultError, _OpenError):
            pass
        return self._give_back(pieces, DecodeError("a quoted cell starts here and is not closed properly"))

    def _give_back(self, pieces: list[Piece], error: HarkenError) -> CsvRecord:
        first, *rest = pieces
        self._waiting.extendleft(reversed(rest))
        return CsvRecord(first.line, [], error, first.excerpt)

    def _cells(self, text: str) -> list[str | None]:
        if "\0" in text:
            raise _FaultError("the text has a NUL character", text.index("\0"))
        if '"' not in text:
            return [cell or None for cell in text.split(self._delimiter)]
        cells: list[str | None] = []
        at = 0
        while True:
            match = self._cell.match(text, at)
            if match is None:
                raise self._misquoted(text, at)
            quoted, plain, end = match.groups()
            cells.append((plain or None) if quoted is None else quoted.replace('""', '"'))
            if not end:
                return cells
            at = match.end()

    def _misquoted(self, text: str, at: int) -> Exception:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            reason = "a cell with quotes in it must be quoted as a whole, with the quotes inside doubled"
            return _FaultError(reason, text.index('"', at))
        if quoted.end() == len(text):
            return _OpenError()
        return _FaultError("there is text after a closing quote; quotes inside a cell are doubled", quoted.end() + 1)


def _decoded(data: bytes) -> tuple[str, DecodeError | None]:
    """The text of a record without its line break. Invalid UTF-8 is kept too: its quotes show where it ends."""
    error = None
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        error = DecodeError(f"the byte 0x{data[fault.start]:02x} is not part of UTF-8 text")
        text = data.decode(errors="replace")
    return text.removesuffix("\n").removesuffix("\r"), error


def _placed(fault: _FaultError, text: str) -> DecodeError:
    column = fault.index + 1
    return DecodeError(str(fault), place=Place(1, column), excerpt=caret_excerpt(text, 1, column))
