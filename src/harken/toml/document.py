"""A TOML document that collects its faults, each with its line and a caret, for schemas and pipelines."""

from __future__ import annotations

import pathlib
import re
import tomllib
from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from harken.concurrency.caching import cached_property
from harken.errors import HarkenError, Place, SourceError, caret_excerpt, did_you_mean
from harken.toml.positions import Keys, Positions, find_positions

E = TypeVar("E", bound=HarkenError)

_PARSER_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_OPENING_QUOTES = re.compile(r'"""\n?|\'\'\'\n?|"|\'')


def needs_key(owner: str, name: str) -> str:
    """The message for a missing key, the same for all readers of TOML."""
    return f"{owner} needs `{name}`"


def unknown_key(owner: str, name: str) -> str:
    """The message for an unknown key."""
    return f"{owner}: unknown key `{name}`"


def read_text(source: str | pathlib.Path, what: str, most_bytes: int) -> str:
    """The text of a file. `what` names it in messages. Raises SourceError."""
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


class Document(Generic[E]):
    """A TOML text and its faults, which are errors of one type. `what` names the text in messages.

    `content` is empty if the text is not TOML; `faults` then holds the parser's message.
    """

    def __init__(self, text: str, error_type: type[E], what: str, source_name: str | None = None) -> None:
        self._text = text
        self._error_type = error_type
        self._source_name = source_name
        self._faults: list[tuple[int, E]] = []
        self.content: dict[str, Any] = {}
        try:
            self.content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            fault = self._syntax_fault(what, error)
            self.keep(fault, line=fault.place.line if fault.place else 0)

    @property
    def faults(self) -> list[E]:
        """All faults, in the order of the lines."""
        return [fault for _, fault in sorted(self._faults, key=lambda each: each[0])]

    def fault(self, keys: Keys, message: str, hint: str | None = None, *, into: tuple[str, int] | None = None) -> None:
        """Add a fault at a key or, with `into`, at an offset into the string value of the key."""
        fault = self._error_type(message, hint=hint)
        self.keep(self.point(fault, keys) if into is None else self.point_into(fault, keys, *into))

    def keep(self, fault: E, line: int | None = None) -> None:
        """Add a fault. It is sorted by its own line, or by `line` if given."""
        self._faults.append((line if line is not None else fault.place.line if fault.place else 0, fault))

    def reject_unknown(
        self, names: Iterable[str], known: Collection[str], owner: str, keys: Keys = (), *, lists_known: bool = False
    ) -> list[str]:
        """Add a fault for each unknown key of a table, with a suggestion. Returns the unknown keys."""
        unknown = [name for name in names if name not in known]
        for name in unknown:
            hint = did_you_mean(name, known) or (f"it has {', '.join(known)}" if lists_known else None)
            self.fault((*keys, name), unknown_key(owner, name), hint)
        return unknown

    def point(self, fault: E, keys: Keys) -> E:
        """Place the fault at a key or, if the key is not in the text, at the closest enclosing table."""
        for length in range(len(keys), 0, -1):
            offset = self._offset(keys[:length])
            if offset is not None:
                return self._at(fault, offset)
        return fault

    def point_at_start(self, fault: E) -> E:
        """Place the fault at the first line, for missing content that may stand anywhere."""
        return fault.at(Place(1, 1, self._source_name))

    def point_into(self, fault: E, keys: Keys, value: str, offset: int) -> E:
        """Place the fault at an offset into a string value, or at its start if it contains escapes."""
        span = self._positions.values.get(keys)
        opening = _OPENING_QUOTES.match(self._text, span[0]) if span is not None else None
        if span is None or opening is None:
            return self.point(fault, keys)
        is_verbatim = self._text.startswith(value, opening.end())
        return self._at(fault, opening.end() + offset if is_verbatim else span[0])

    def _syntax_fault(self, what: str, error: Exception) -> E:
        """Convert an error of Python's parser, with the place from its message."""
        if isinstance(error, RecursionError):
            return self._error_type(f"the {what} nests too deeply to be read")
        message = str(error)
        position = _PARSER_POSITION.search(message)
        fault = self._error_type(f"the {what} is not TOML: {_PARSER_POSITION.sub('', message)}")
        if position is None:
            return fault
        lines = self._text.split("\n")
        line = int(position[1]) if position[1] else len(lines)
        column = int(position[2]) if position[2] else len(lines[-1]) + 1
        return fault.at(Place(line, column, self._source_name), self._text)

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
        return [0, *(newline.end() for newline in re.finditer("\n", self._text))]
