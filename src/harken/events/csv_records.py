"""Records of CSV text. Python's own reader cannot tell `""` from nothing and loses the place of an error."""

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
    """The cells of one record, None where a cell is empty and has no quotes; or the error instead of them."""

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
    """The text ends inside quotes: its record goes on in the next line."""


class CsvReader:
    """Cuts a stream into records. A line with bad quoting is refused alone, and reading goes on with the next."""

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
        """The record that starts with this line, with the lines that it goes on in."""
        text, error = _decoded(first.data)
        try:
            return CsvRecord(first.line, self._cells(text), error, first.excerpt)
        except _OpenError:
            return self._long_record(first)
        except _FaultError as fault:
            return CsvRecord(first.line, [], _placed(fault, text), first.excerpt)

    def _long_record(self, first: Piece) -> CsvRecord:
        """A record over several lines. If it has a fault after all, these are given back and read on their own."""
        taken = [first]
        size = len(first.data)
        try:
            while (line := self._next_line()) is not None:
                taken.append(line)
                size += len(line.data)
                if line.error is not None or size > self._limits.max_event_bytes:
                    return self._give_back(taken, too_long(self._limits))
                # In well-formed text the quotes close in the first line with an odd number of them.
                if line.data.count(b'"') % 2:
                    whole = first._replace(data=b"".join(piece.data for piece in taken))
                    text, error = _decoded(whole.data)
                    return CsvRecord(first.line, self._cells(text), error, whole.excerpt)
        except (_FaultError, _OpenError):
            pass
        return self._give_back(taken, DecodeError("a quote is opened here and not closed as it should be"))

    def _give_back(self, taken: list[Piece], error: HarkenError) -> CsvRecord:
        first, *rest = taken
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
            found = self._cell.match(text, at)
            if found is None:
                raise self._misquoted(text, at)
            quoted, plain, end = found.groups()
            cells.append((plain or None) if quoted is None else quoted.replace('""', '"'))
            if not end:
                return cells
            at = found.end()

    def _misquoted(self, text: str, at: int) -> Exception:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            reason = "a cell with quotes in it must be quoted as a whole, with the quotes inside doubled"
            return _FaultError(reason, text.index('"', at))
        if quoted.end() == len(text):
            return _OpenError()
        return _FaultError("there is text after a closing quote; quotes inside a cell are doubled", quoted.end() + 1)


def _decoded(data: bytes) -> tuple[str, DecodeError | None]:
    """The text of a record without its line's end. Also what is not UTF-8 has cells, which tell where it ends."""
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
