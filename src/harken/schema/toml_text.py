"""TOML files as people write them: read as text, and complained about with the line that is wrong."""

from __future__ import annotations

import pathlib
import re
from bisect import bisect_right
from functools import cached_property
from typing import TypeVar

from harken.errors import HarkenError, Place, SourceError, caret_excerpt
from harken.schema.positions import Keys, Positions, find_positions

E = TypeVar("E", bound=HarkenError)

_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_OPENING = re.compile(r'"""\n?|\'\'\'\n?|"|\'')


def read_text(source: str | pathlib.Path, what: str, most_bytes: int) -> str:
    """The text of a file; `what` is what messages call it. Raises SourceError."""
    try:
        with pathlib.Path(source).open("rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"cannot read the {what} file {source}: {reason}") from error
    if len(content) > most_bytes:
        raise SourceError(f"the {what} file {source} has more than {most_bytes:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"the {what} file {source} is not UTF-8: byte {error.start} is wrong") from error


class TomlText:
    """A text, and the places in it. It is walked through when the first place is asked for."""

    def __init__(self, text: str, source_name: str | None = None) -> None:
        self._text = text
        self._source_name = source_name

    def syntax_fault(self, kind: type[E], what: str, error: Exception) -> E:
        """What the parser has raised, as one of ours."""
        if isinstance(error, RecursionError):
            return kind(f"the {what} nests too deeply to be read")
        message = str(error)
        found = _TOML_POSITION.search(message)
        fault = kind(f"the {what} is not TOML: {_TOML_POSITION.sub('', message)}")
        if found is None:
            return fault
        lines = self._text.split("\n")
        line = int(found[1]) if found[1] else len(lines)
        column = int(found[2]) if found[2] else len(lines[-1]) + 1
        return fault.at(Place(line, column, self._source_name), self._text)

    def point(self, fault: E, keys: Keys) -> E:
        """The fault, at the place of a key or, if that is not found, of the table around it, if it has one."""
        for length in range(len(keys), 0, -1):
            offset = self._offset(keys[:length])
            if offset is not None:
                return self._at(fault, offset)
        return fault

    def point_at_start(self, fault: E) -> E:
        """The fault, at the first line: something is missing that may stand anywhere."""
        return fault.at(Place(1, 1, self._source_name))

    def point_into(self, fault: E, keys: Keys, value: str, offset: int) -> E:
        """The fault, at an offset into a string; at its beginning if it is not written as it is read."""
        span = self._positions.values.get(keys)
        opening = _OPENING.match(self._text, span[0]) if span is not None else None
        if span is None or opening is None:
            return self.point(fault, keys)
        inside = self._text.startswith(value, opening.end())
        return self._at(fault, opening.end() + offset if inside else span[0])

    def _offset(self, keys: Keys) -> int | None:
        offset = self._positions.keys.get(keys)
        if offset is None and keys in self._positions.values:
            offset = self._positions.values[keys][0]
        return offset

    def _at(self, fault: E, offset: int) -> E:
        line = bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        fault.at(Place(line, offset - start + 1, self._source_name))
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self._text)
        fault.excerpt = caret_excerpt(self._text[start:end], 1, offset - start + 1)
        return fault

    @cached_property
    def _positions(self) -> Positions:
        return find_positions(self._text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self._text))]
