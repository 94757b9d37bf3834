"""Parses columns in Spark's DDL, `id STRING, price DOUBLE`, without Spark, to report typing errors early.

Spark may still reject a text that is accepted here. It also rejects every text that is rejected here, with two
exceptions: duplicate names, which it rejects only when it reads, and types that no event uses, such as intervals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harken.errors import did_you_mean

MAX_DEPTH = 50

_TOKEN = re.compile(
    r"""(?:--[^\n]*|/\*[\s\S]*?\*/)|(?P<name>`(?:[^`]|``)+`)|(?P<number>\d+\b)|(?P<word>\w+)"""
    r"""|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")|(?P<mark>\S)""",
    re.ASCII,
)
# By type: the most numbers in parentheses that may follow it.
_PLAIN = {
    "binary": 0,
    "bigint": 0,
    "boolean": 0,
    "byte": 0,
    "date": 0,
    "dec": 2,
    "decimal": 2,
    "double": 0,
    "float": 0,
    "int": 0,
    "integer": 0,
    "long": 0,
    "numeric": 2,
    "real": 0,
    "short": 0,
    "smallint": 0,
    "string": 0,
    "timestamp": 1,
    "timestamp_ltz": 1,
    "timestamp_ntz": 1,
    "tinyint": 0,
    "variant": 0,
}
_NESTED = ("array", "map", "struct")
TYPES = tuple(word.upper() for word in (*_PLAIN, *_NESTED))
# By type name of another system, or that Spark accepts only for tables: the type to write instead.
_INSTEAD = {
    "bool": "BOOLEAN",
    "char": "STRING",
    "datetime": "TIMESTAMP",
    "number": "DOUBLE",
    "str": "STRING",
    "text": "STRING",
    "varchar": "STRING",
}
_QUOTE = "put a name with other characters in backticks"


@dataclass(frozen=True, slots=True)
class DdlColumn:
    """A column: its name, and the first word of its type in lower case."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class DdlFault:
    """A fault at an offset into the text."""

    message: str
    offset: int
    hint: str | None = None


def read_ddl(text: str) -> tuple[list[DdlColumn], list[DdlFault]]:
    """Parse columns. Returns them, and the faults of the text."""
    reader = _Reader(text)
    try:
        columns = reader.all_columns()
    except _StopError as stop:
        return [], [*reader.faults, stop.fault]
    return columns, reader.faults


class _StopError(Exception):
    """A fault after which the rest of the text cannot be parsed."""

    def __init__(self, fault: DdlFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int

    def __str__(self) -> str:
        return f"`{self.text}`" if self.text else "the end"


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield _Token(match.lastgroup, match[0], match.start())
    yield _Token("end", "", len(text))


class _Reader:
    def __init__(self, text: str) -> None:
        self.faults: list[DdlFault] = []
        self._tokens = list(_tokens(text))
        self._at = 0

    def all_columns(self) -> list[DdlColumn]:
        columns = self._columns(0)
        if self._next.kind != "end":
            raise _StopError(DdlFault(f"expected `,` before {self._next}", self._next.offset))
        return columns

    def _columns(self, depth: int) -> list[DdlColumn]:
        columns: list[DdlColumn] = []
        while True:
            offset = self._next.offset
            column = self._column(depth)
            if any(column.name == other.name for other in columns):
                self.faults.append(DdlFault(f"column `{column.name}` occurs twice", offset))
            columns.append(column)
            if not self._take(","):
                return columns

    def _column(self, depth: int) -> DdlColumn:
        token = self._next
        if token.kind not in ("name", "word"):
            hint = _QUOTE if token.kind in ("number", "text") else None
            raise _StopError(DdlFault(f"expected the name of a column, not {token}", token.offset, hint))
        self._at += 1
        name = token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text
        if depth:
            self._take(":")
        if self._next.kind != "word":
            hint = _QUOTE if self._next.kind == "mark" and self._next.text not in ",<>():" else None
            raise _StopError(DdlFault(f"column `{name}` has no type before {self._next}", self._next.offset, hint))
        column = DdlColumn(name, self._type(depth))
        if self._take_word("not"):
            self._expect_word("null")
        if self._take_word("comment"):
            if self._next.kind != "text":
                raise _StopError(DdlFault(f"expected a comment in quotes, not {self._next}", self._next.offset))
            self._at += 1
        return column

    def _type(self, depth: int) -> str:
        token = self._next
        if depth > MAX_DEPTH:
            raise _StopError(DdlFault(f"types nest more than {MAX_DEPTH} deep", token.offset))
        if token.kind != "word":
            raise _StopError(DdlFault(f"expected a type, not {token}", token.offset))
        self._at += 1
        word = token.text.lower()
        if word in _NESTED:
            self._expect("<")
            self._inner_types(word, depth + 1)
            self._expect(">")
        elif word in _PLAIN:
            self._numbers(_PLAIN[word])
            if word == "string" and self._take_word("collate"):
                self._at += self._next.kind == "word"
        else:
            self.faults.append(DdlFault(f"there is no type {token.text}", token.offset, _hint_for(token.text)))
            self._skip_brackets()
        return word

    def _inner_types(self, word: str, depth: int) -> None:
        if word == "struct":
            if self._next.text != ">":
                self._columns(depth)
            return
        self._type(depth)
        if word == "map":
            self._expect(",")
            self._type(depth)

    def _numbers(self, most: int) -> None:
        if not most or not self._take("("):
            return
        for _ in range(most):
            if self._next.kind != "number":
                raise _StopError(DdlFault(f"expected a number, not {self._next}", self._next.offset))
            self._at += 1
            if not self._take(","):
                break
        self._expect(")")

    def _skip_brackets(self) -> None:
        """Skip what an unknown type has in brackets."""
        depth = 0
        while self._next.text in ("<", "(") or (depth and self._next.kind != "end"):
            depth += (self._next.text in ("<", "(")) - (self._next.text in (">", ")"))
            self._at += 1

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, mark: str) -> bool:
        is_next = self._next.text == mark
        self._at += is_next
        return is_next

    def _take_word(self, word: str) -> bool:
        is_next = self._next.kind == "word" and self._next.text.lower() == word
        self._at += is_next
        return is_next

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise _StopError(DdlFault(f"expected `{mark}` before {self._next}", self._next.offset))

    def _expect_word(self, word: str) -> None:
        if not self._take_word(word):
            raise _StopError(DdlFault(f"expected {word.upper()} before {self._next}", self._next.offset))


def _hint_for(word: str) -> str:
    if word.lower() in _INSTEAD:
        return f"did you mean `{_INSTEAD[word.lower()]}`?"
    return did_you_mean(word, TYPES, case_sensitive=False) or f"the types are {', '.join(TYPES)}"
