"""Server-sent events: bytes in, frames out, as the HTML standard parses them (section 9.2.6)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile("\r\n|\n|\r")


class Frame(NamedTuple):
    """One event of a stream. `id` is the last id that the stream gave, with this frame or before it."""

    event: str
    data: str
    id: str


class FrameParser:
    """Cuts a stream into frames. Bytes come in pieces of any size."""

    def __init__(self, id: str = "", retry: float | None = None) -> None:
        self.id = id
        """The id of the last complete frame; also of one without data, which is no event."""
        self.retry = retry
        """Seconds to wait before a lost stream is reopened, as the server says."""
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pieces: list[str] = []
        self._is_start = True
        self._ends_in_return = False
        self._event, self._data, self._next_id = "", list[str](), id

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes."""
        for line in self._lines(self._text.decode(data)):
            if line:
                self._field(line)
            else:
                yield from self._end()

    def _lines(self, text: str) -> Iterator[str]:
        if self._is_start and text:
            text, self._is_start = text.removeprefix("\ufeff"), False
        if self._ends_in_return and text:
            text, self._ends_in_return = text.removeprefix("\n"), False  # the second half of \r\n
        self._ends_in_return = self._ends_in_return or text.endswith("\r")
        *whole, rest = _LINE_END.split(text)
        for line in whole:
            yield "".join([*self._pieces, line])
            self._pieces = []
        if rest:
            self._pieces.append(rest)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")  # a comment has no name
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._next_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value) / 1_000

    def _end(self) -> Iterator[Frame]:
        self.id = self._next_id
        if self._data:
            yield Frame(self._event or "message", "\n".join(self._data), self.id)
        self._event, self._data = "", []
