"""Cuts text into pieces, a record or a line each, holding at most one piece of limited size in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO, NamedTuple

from harken.errors import HarkenError, LimitError, Place
from harken.events.excerpt import MAX_EXCERPT
from harken.limits import Limits

BOM = b"\xef\xbb\xbf"
_CHUNK = 65_536


class Piece(NamedTuple):
    """The bytes of a line or a record, and where they start. With an error, `data` is only the beginning."""

    data: bytes
    line: int
    column: int = 1
    error: HarkenError | None = None

    @property
    def excerpt(self) -> str:
        return self.data[: 4 * MAX_EXCERPT].decode(errors="replace").strip()


def place_in(piece: Piece, inner: Place | None, source: str, *, is_exact: bool = False) -> Place:
    """Convert a place inside a piece to a place in the source. `is_exact`: the fault is at its start."""
    if inner is None or inner.column is None:
        return Place(piece.line, piece.column if is_exact else None, source)
    first = piece.column - 1 if inner.line == 1 else 0
    return Place(piece.line + inner.line - 1, inner.column + first, source)


def too_long(limits: Limits) -> LimitError:
    return LimitError(f"the event is longer than {limits.max_event_bytes} bytes", limit="max_event_bytes")


def lines(stream: BinaryIO, limits: Limits, head: bytes = b"", line: int = 1) -> Iterator[Piece]:
    """The lines of a stream with their line breaks, blank ones too. `head` is the part of the first already read."""
    longest = limits.max_event_bytes
    if head and not head.endswith(b"\n"):
        head += stream.readline(max(0, longest + 1 - len(head)))
    rest = iter(partial(stream.readline, longest + 1), b"")
    for number, data in enumerate(chain([head], rest) if head else rest, line):
        if len(data) > longest and not data.endswith(b"\n"):
            _skip_line(stream)
            yield Piece(data[: 4 * MAX_EXCERPT], number, error=too_long(limits))
        else:
            yield Piece(data, number)


def first_line(stream: BinaryIO, limits: Limits) -> tuple[bytes, int]:
    """The beginning of the first line that is not blank, without a byte order mark, and its number."""
    size = max(len(BOM), min(_CHUNK, limits.max_event_bytes + 1))
    line = 1
    head = stream.readline(size).removeprefix(BOM)
    while head.isspace():
        line += head.endswith(b"\n")
        head = stream.readline(size)
    return head, line


def chunks(stream: BinaryIO, head: bytes) -> Iterator[bytes]:
    """The rest of a stream, starting with `head`, which was already read."""
    while head:
        yield head
        head = stream.read(_CHUNK)


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
        pass
