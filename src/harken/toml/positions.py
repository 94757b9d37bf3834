"""Positions of the tables, keys and values in a TOML text, which Python's own parser does not report."""

from __future__ import annotations

import contextlib
import re
import tomllib
from dataclasses import dataclass, field

Keys = tuple[str | int, ...]
"""The path from the root of a document to a table or a value: the second `[[sink]]` is ("sink", 1)."""

_PART = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEYS = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_HEADER = re.compile(rf"(?P<bracket>\[\[?)[ \t]*(?P<keys>{_KEYS})[ \t]*\]\]?")
_PAIR = re.compile(rf"(?P<keys>{_KEYS})[ \t]*=[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_.-]+")
_SCALAR = re.compile(
    r'''"""(?:[^"\\]++|\\[\s\S]|"{1,2}(?!"))*+"{3,5}'''
    r"""|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}"""
    r'''|"(?:[^"\\\n]|\\.)*"'''
    r"""|'[^'\n]*'"""
    # A date and a time may have a space between them.
    r"""|\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+"""
    r"""|[^\s,\[\]{}#"']+"""
)


@dataclass(frozen=True, slots=True)
class Positions:
    """Offsets into a text: the begin of every header and key, and the begin and end of every value.

    `a.b = 1` also gives the table `a` a position. A table with several parts has the position of the first.
    """

    keys: dict[Keys, int] = field(default_factory=dict)
    values: dict[Keys, tuple[int, int]] = field(default_factory=dict)


def find_positions(text: str) -> Positions:
    """The positions in a TOML text; in invalid TOML, those before the first fault."""
    walk = _Walk(text)
    with contextlib.suppress(_LostError, RecursionError):
        walk.document()
    return walk.positions


class _LostError(Exception):
    """The text is not TOML from here on."""


class _Walk:
    """Walks through a text once, statement by statement."""

    def __init__(self, text: str) -> None:
        self.positions = Positions()
        self._text = text
        self._at = 0
        self._table: Keys = ()
        self._last_of: dict[Keys, int] = {}

    def document(self) -> None:
        self._skip_blank()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                self._header()
            else:
                self._pair(self._table)
            self._skip_blank()

    def _header(self) -> None:
        start = self._at
        header = self._take(_HEADER)
        self._table = self._path(_split(header["keys"]), header["bracket"] == "[[", start)
        self.positions.keys.setdefault(self._table, start)

    def _path(self, parts: tuple[str, ...], many: bool, start: int) -> Keys:
        """The path that a header opens. Below an array of tables, `[[…]]`, it leads through the last table so far."""
        path: Keys = ()
        for place, part in enumerate(parts):
            path = (*path, part)
            if many and place == len(parts) - 1:
                self._last_of[path] = self._last_of.get(path, -1) + 1
                self.positions.keys.setdefault(path, start)
            if path in self._last_of:
                path = (*path, self._last_of[path])
        return path

    def _pair(self, table: Keys) -> None:
        start = self._at
        path = table + _split(self._take(_PAIR)["keys"])
        for length in range(len(table) + 1, len(path) + 1):
            self.positions.keys.setdefault(path[:length], start)
        self._value(path)

    def _value(self, path: Keys) -> None:
        start = self._at
        opening = self._text[start : start + 1]
        if opening == "[":
            self._items(path, "]")
        elif opening == "{":
            self._items(path, "}")
        else:
            self._take(_SCALAR)
        self.positions.values.setdefault(path, (start, self._at))

    def _items(self, path: Keys, closing: str) -> None:
        """The elements of a list, or the pairs of an inline table."""
        self._at += 1
        count = 0
        self._skip_blank()
        while not self._text.startswith(closing, self._at):
            if closing == "]":
                self._value((*path, count))
            else:
                self._pair(path)
            count += 1
            self._skip_blank()
            if self._text.startswith(",", self._at):
                self._at += 1
                self._skip_blank()
            elif not self._text.startswith(closing, self._at):
                raise _LostError
        self._at += 1

    def _skip_blank(self) -> None:
        self._take(_BLANK)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _LostError
        self._at = match.end()
        return match


def _split(written: str) -> tuple[str, ...]:
    """The parts of a dotted key. Python's parser reads those with quotes."""
    if _BARE.fullmatch(written):
        return tuple(written.split("."))
    try:
        table: object = tomllib.loads(f"{written} = 0")
    except ValueError:
        return (written,)
    keys: list[str] = []
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return tuple(keys)
