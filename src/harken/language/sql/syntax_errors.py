"""Syntax errors in words: where parsing failed, and what was probably meant."""

from __future__ import annotations

import re
from typing import NamedTuple

from harken.errors import ParseError, did_you_mean
from harken.language.places import located
from harken.language.sql import habits
from harken.language.sql.tokens import (
    COMPARATOR,
    END,
    KEYWORDS,
    NAME,
    NO_TOKEN,
    NUMBER,
    OPEN_COMMENT,
    QUOTED_NAME,
    STRING,
    VARIABLE,
)
from harken.schema.paths import RESERVED

_VALUES = frozenset((NAME, QUOTED_NAME, NUMBER, STRING, VARIABLE))
_QUERY = re.compile(r"\s*(SELECT|WHERE)\s", re.IGNORECASE)
_OPERATOR = re.compile(r"\s*(?:[=<>!.]|(?:IN|I?LIKE|RLIKE|REGEXP|IS|BETWEEN|CONTAINS)\b)", re.IGNORECASE)
_CONTAINS_LIST = re.compile(r"\bCONTAINS\s*\([^()]{0,100}\Z", re.IGNORECASE)
_LAST_WORDS = re.compile(r"(?:(\w+)\s+)?(\w+)\s*\Z")
_SHOWN_WORDS = frozenset({"AND", "OR", "IN", "LIKE", "BETWEEN", "NULL", "TRUE", "FALSE"})
_AFTER_IS = frozenset({"NULL", "TRUE", "FALSE", "NOT"})
_PERCENT = "% belongs in a LIKE pattern, in quotes: x LIKE 'a%'"
_BEFORE = 200
"""Characters before a token that are searched for words."""


class _Token(NamedTuple):
    """A token that cannot stand where it does."""

    word: str
    kind: str
    at: int
    text: str
    """The whole text."""
    expected: frozenset[str]
    """The kinds of tokens that may stand there."""

    @property
    def starts_condition(self) -> bool:
        """Whether the token is a name with an operator behind it: then AND or OR is missing before it."""
        return self.kind == NAME and _OPERATOR.match(self.text, self.at + len(self.word)) is not None

    @property
    def is_foreign(self) -> bool:
        """Whether the token is an operator of another language, and not a name or the rest of one."""
        is_operator = self.kind == NAME and self.word.upper() in habits.OPERATORS and not self.expected <= _AFTER_IS
        return is_operator and not habits.starts_before(self.text, self.at) and not self.starts_condition


def unexpected(text: str, word: str, kind: str, at: int, expected: frozenset[str]) -> ParseError:
    """The error for a token that is of none of the expected kinds."""
    if kind == END:
        message = "the text is empty" if not text.strip() else "the text ends too early"
        end = len(text.rstrip())
        hint = _PERCENT if text.endswith("%", 0, end) else f"expected {_show_expected(expected)}"
        return ParseError(message, hint=hint).at(*located(text, end))
    if kind == OPEN_COMMENT:
        return ParseError("the comment that starts here is not closed", hint="end it with */").at(*located(text, at))
    if kind == NO_TOKEN:
        return _unexpected_character(text, at)
    token = _Token(word, kind, at, text, expected)
    message, hint = f"unexpected `{_shortened(word)}`", _hint(token)
    if _QUERY.match(text):
        hint = habits.ONLY_CONDITION
    elif token.is_foreign:
        message, hint = f"`{word}` is not part of the language", habits.OPERATORS[word.upper()]
    elif (call := habits.opened_call(text, at)) is not None:
        name, at, hint = call
        message = f"`{name}(…)` is not part of the language"
    return ParseError(message, hint=hint).at(*located(text, at))


def _unexpected_character(text: str, at: int) -> ParseError:
    """The error for a character that starts no token."""
    character = text[at]
    if text.startswith("``", at):
        return ParseError("a name is empty", hint="write the name between the backticks").at(*located(text, at))
    hint = habits.sign_hint(text, at) or habits.name_hint(text, at) or habits.CHARACTERS.get(character)
    return ParseError(f"unexpected character {character!r}", hint=hint).at(*located(text, at))


def _hint(token: _Token) -> str:
    """What was probably meant or, if that is unclear, what may stand there."""
    word, kind, at, text, expected = token
    previous, last = _words_before(text, at)
    if expected <= _AFTER_IS:
        return _hint_after_is(word, is_negated=(previous, last) == ("IS", "NOT"))
    adjacent = _hint_for_adjacent(token)
    if adjacent is not None:
        return adjacent
    if kind == "NULL" and "IN" in expected:
        return "write IS NOT NULL"
    if kind == COMPARATOR:
        return _hint_for_comparator(token)
    if last == "IN" and expected == {"("}:
        return "IN takes values in parentheses, x IN (1, 2); to ask for a value of a set write tags CONTAINS 'red'"
    starts_condition = token.starts_condition
    if last in habits.PREFIXES and kind in _VALUES and not starts_condition:
        return habits.PREFIXES[last]
    if kind == NAME and not starts_condition:
        for words in (RESERVED, KEYWORDS):  # LIKE before ILIKE and RLIKE
            near = did_you_mean(word, sorted(words & expected), case_sensitive=False)
            if near is not None:
                return near
    if kind in ("AND", "OR") and NAME in expected:
        return f"a condition is missing before `{word}`; as a name it is written in backticks"
    if kind in KEYWORDS and NAME in expected:
        return f"`{word}` is a word of the language; as a name it is written in backticks"
    if {"AND", "OR"} <= expected and kind in _VALUES | {"NOT", "(", "TRUE", "FALSE"}:
        return "join two conditions with AND or OR"
    if kind == "," and _CONTAINS_LIST.search(text[max(0, at - _BEFORE) : at]):
        return "write one CONTAINS for each value, joined with AND or OR"
    if kind == "," and {"AND", "OR"} <= expected:
        return "join two conditions with AND or OR; a number has no comma"
    if kind == "%":
        return _PERCENT
    if kind == "+":
        return "a number is written without +"
    return habits.sign_hint(text, at) or f"expected {_show_expected(expected)}"


def _words_before(text: str, at: int) -> tuple[str, str]:
    """The last two words before an offset, in capitals; "" for one that is not there."""
    words = _LAST_WORDS.search(text[max(0, at - _BEFORE) : at])
    previous, last = words.groups() if words is not None else ("", "")
    return (previous or "").upper(), last.upper()


def _hint_after_is(word: str, is_negated: bool) -> str:
    """The hint for a word behind IS, which takes NULL, TRUE and FALSE; in other dialects also values."""
    match word.upper():
        case "UNKNOWN":
            return f"write x IS {'TRUE OR x IS FALSE' if is_negated else 'NOT TRUE AND x IS NOT FALSE'}"
        case "MISSING" | "NONE" | "NIL":
            return f"write IS {'NOT ' if is_negated else ''}NULL"
        case "DISTINCT":
            return "write x = 1" if is_negated else "write (x <> 1 OR x IS NULL)"
    return f"IS asks for NULL, TRUE and FALSE alone; a value is compared with {'<>' if is_negated else '='}"


def _hint_for_adjacent(token: _Token) -> str | None:
    """The hint for a token with no blank before it, which probably belongs to what it follows."""
    text, at = token.text, token.at
    before = text[at - 1 : at]
    if before == "'" and token.kind in _VALUES:
        return "inside a string a quote is written twice: 'it''s'"
    if token.kind == "(" and (before.isalnum() or before == "_"):
        return "a function is written before its argument: lower(x)"
    return habits.name_hint(text, at) if habits.starts_before(text, at) else None


def _hint_for_comparator(token: _Token) -> str:
    hint = habits.sign_hint(token.text, token.at)
    if hint is not None:
        return hint
    if "LIKE" in token.expected:
        return "NOT is written before the whole comparison: NOT x = 1; or write <>"
    if "AND" in token.expected:
        return "join two comparisons with AND: low < x AND x < high"
    return f"expected {_show_expected(token.expected)}"


def _show_expected(expected: frozenset[str]) -> str:
    """What may stand at this place, in words."""
    shown = []
    if NAME in expected:
        shown.append("an attribute or a value" if NUMBER in expected else "a name")
    else:
        shown.extend(["a comparison"] if COMPARATOR in expected else [])
        shown.extend(sorted(expected & _SHOWN_WORDS))
    shown.extend(f"`{sign}`" for sign in "()," if sign in expected)
    if END in expected:
        shown.append("the end")
    return " or ".join(shown) or "something else"


def _shortened(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."
