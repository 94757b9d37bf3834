"""Rows from JSON: an object per line, or an array of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from harken.errors import HarkenError
from harken.events.excerpt import MAX_EXCERPT, settled, shorten
from harken.events.json_array import array_elements
from harken.events.json_text import decode_text, parse_object
from harken.events.pieces import Piece, chunks, first_line, lines, place_in
from harken.events.row import Row
from harken.limits import Limits


def read_json(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of an array if the text begins with one, else of lines."""
    return rows_of_pieces(json_pieces(stream, limits), source, limits)


def read_json_lines(stream: BinaryIO, source: str, limits: Limits) -> Iterator[Row]:
    """The rows of lines with an object each; blank lines are skipped."""
    return rows_of_pieces(json_line_pieces(stream, limits), source, limits)


def json_pieces(stream: BinaryIO, limits: Limits) -> Iterator[Piece]:
    """The elements of an array if the text begins with one, else its lines."""
    head, line = first_line(stream, limits)
    if head.lstrip().startswith(b"["):
        return array_elements(chunks(stream, head), limits, line)
    return _full_lines(stream, limits, head, line)


def json_line_pieces(stream: BinaryIO, limits: Limits) -> Iterator[Piece]:
    """The lines of a stream that are not blank."""
    return _full_lines(stream, limits, *first_line(stream, limits))


def _full_lines(stream: BinaryIO, limits: Limits, head: bytes, line: int) -> Iterator[Piece]:
    return (piece for piece in lines(stream, limits, head, line) if not piece.data.isspace())


def rows_of_pieces(pieces: Iterable[Piece], source: str, limits: Limits, first: int = 0) -> Iterator[Row]:
    """A row for every piece; `first` is the position of the first row."""
    for position, piece in enumerate(pieces, first):
        try:
            if piece.error is not None:
                raise piece.error
            text = decode_text(piece.data)
            content = parse_object(text, limits)
        except HarkenError as error:
            error.place = place_in(piece, error.place, source)
            yield Row(position, piece.line, None, settled(error), shorten(piece.excerpt))
        else:
            # Most lines are short, and the text is already decoded.
            excerpt = text.strip() if len(text) <= MAX_EXCERPT else shorten(piece.excerpt)
            yield Row(position, piece.line, content, None, excerpt)
