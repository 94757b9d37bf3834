"""What the parser complains of, in words: where it stumbled, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lark import Token, UnexpectedCharacters, UnexpectedToken

from harken.errors import ParseError, Place, did_you_mean

KEYWORDS = {
    "AND": "_AND",
    "OR": "_OR",
    "NOT": "NOT",
    "BETWEEN": "_BETWEEN",
    "IN": "_IN",
    "LIKE": "_LIKE",
    "ESCAPE": "_ESCAPE",
    "IS": "_IS",
    "NULL": "NULL",
    "CONTAINS": "_CONTAINS",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
}
_WORDS = {terminal: word for word, terminal in KEYWORDS.items()}
_OPERAND_TERMINALS = frozenset({"NAME", "QUOTED_NAME", "NUMBER", "STRING", "VARIABLE"})
_QUERY = re.compile(r"\s*(SELECT|WHERE)\s", re.IGNORECASE)
_SHOWN_WORDS = frozenset({"_AND", "_OR", "_IN", "_LIKE", "_BETWEEN", "NULL"})
_DOUBLED = {"==": "equality is written with one =", "=>": "write >=", "=<": "write <=", "><": "write <>"}
_STRAY_CHARACTERS = {
    '"': "a string is written in single quotes, 'like this', and a name in backticks, `like this`",
    "'": "the string that starts here is not closed; inside a string a quote is written twice, ''",
    "`": "the name that starts here is not closed",
    "\u2018": "a string is written in straight single quotes, 'like this'",
    "\u2019": "a string is written in straight single quotes, 'like this'",
    "\u201c": "a string is written in straight single quotes, 'like this'",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT, or <> for not equal",
    "?": "a variable is a question mark and a name: ?distance",
    ";": "a subscription is one expression, without a semicolon",
}


def located(text: str, offset: int) -> tuple[Place, str]:
    """The place of an offset in the text, and the text, as `HarkenError.at` takes them."""
    before = text[: max(offset, 0)]
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n")), text


def unexpected_token(problem: UnexpectedToken, text: str) -> ParseError:
    """The error for a token that cannot stand where it does."""
    token = problem.token
    expected = set(problem.accepts or problem.expected)
    if token.type == "$END":
        message = "the text is empty" if not text.strip() else "the text ends too early"
        return ParseError(message, hint=f"expected {_show_expected(expected)}").at(*located(text, len(text.rstrip())))
    at = token.start_pos or 0
    return ParseError(f"unexpected `{_shortened(token)}`", hint=_hint(token, text, at, expected)).at(*located(text, at))


def unexpected_character(problem: UnexpectedCharacters, text: str) -> ParseError:
    """The error for a character that starts no token."""
    at = problem.pos_in_stream or 0
    character = text[at]
    error = ParseError(f"unexpected character {character!r}", hint=_STRAY_CHARACTERS.get(character))
    return error.at(*located(text, at))


def _hint(token: Token, text: str, at: int, expected: set[str]) -> str:
    if _QUERY.match(text):
        return "write only the condition, as it would follow WHERE"
    if token.type == "NULL" and "_IN" in expected:
        return "write IS NOT NULL"
    keywords = [_WORDS[terminal] for terminal in expected if terminal in _WORDS]
    if token.type == "NAME":
        near = did_you_mean(token, keywords, case_sensitive=False)
        if near is not None:
            return near
    if token.type == "COMPARATOR":
        doubled = _DOUBLED.get(text[at - 1 : at + len(token)])
        if doubled is not None:
            return doubled
        if "_AND" in expected:
            return "join two comparisons with AND: low < x AND x < high"
    if token.type in _WORDS and "NAME" in expected:
        return f"`{token}` is a word of the language; as a name it is written in backticks"
    if {"_AND", "_OR"} <= expected and token.type in _OPERAND_TERMINALS | {"NOT", "LPAR", "TRUE", "FALSE"}:
        return "join two conditions with AND or OR"
    return f"expected {_show_expected(expected)}"


def _show_expected(expected: Iterable[str]) -> str:
    """What may stand at this place, in words."""
    expected = set(expected)
    shown = []
    if "NAME" in expected:
        shown.append("an attribute or a value" if "NUMBER" in expected else "a name")
    if "COMPARATOR" in expected:
        shown.append("a comparison")
    if "NAME" not in expected:
        shown.extend(sorted(_WORDS[terminal] for terminal in expected & _SHOWN_WORDS))
    shown.extend(
        sign for terminal, sign in (("LPAR", "`(`"), ("RPAR", "`)`"), ("COMMA", "`,`")) if terminal in expected
    )
    if "$END" in expected:
        shown.append("the end")
    return " or ".join(shown) or "something else"


def _shortened(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."
