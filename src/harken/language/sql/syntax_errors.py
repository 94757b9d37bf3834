"""What the parser complains of, in words: where it stumbled, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lark import Token, UnexpectedCharacters, UnexpectedToken

from harken.errors import ParseError, Place, did_you_mean
from harken.language.sql import habits

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
_OPERATOR = re.compile(r"\s*(?:[=<>!.]|(?:IN|LIKE|IS|BETWEEN|CONTAINS)\b)", re.IGNORECASE)
_CONTAINS_LIST = re.compile(r"\bCONTAINS\s*\([^()]{0,100}\Z", re.IGNORECASE)
_LAST_WORDS = re.compile(r"(?:(\w+)\s+)?(\w+)\s*\Z")
_SHOWN_WORDS = frozenset({"_AND", "_OR", "_IN", "_LIKE", "_BETWEEN", "NULL"})
_AFTER_IS = frozenset({"NULL", "NOT"})
_BEFORE = 200
"""Characters before a token in which the words before it are looked for."""


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
    for start in (at - 1, at):
        if start >= 0 and text.startswith("/*", start):
            error = ParseError("the comment that starts here is not closed", hint="end it with */")
            return error.at(*located(text, start))
    message, hint = f"unexpected `{_shortened(token)}`", _hint(token, text, at, expected)
    if _QUERY.match(text):
        hint = habits.ONLY_CONDITION
    elif _is_foreign(token, text, at, expected):
        message, hint = f"`{token}` is not part of the language", habits.OPERATORS[token.upper()]
    return ParseError(message, hint=hint).at(*located(text, at))


def unexpected_character(problem: UnexpectedCharacters, text: str) -> ParseError:
    """The error for a character that starts no token."""
    at = problem.pos_in_stream or 0
    character = text[at]
    if text.startswith("``", at):
        return ParseError("a name is empty", hint="write the name between the backticks").at(*located(text, at))
    hint = habits.sign_hint(text, at) or habits.name_hint(text, at) or habits.CHARACTERS.get(character)
    return ParseError(f"unexpected character {character!r}", hint=hint).at(*located(text, at))


def _is_foreign(token: Token, text: str, at: int, expected: set[str]) -> bool:
    """Whether the token is an operator of another language, and not a name or the rest of one."""
    is_operator = token.type == "NAME" and token.upper() in habits.OPERATORS and not expected <= _AFTER_IS
    return is_operator and not habits.starts_before(text, at) and not _starts_condition(token, text, at)


def _starts_condition(token: Token, text: str, at: int) -> bool:
    """Whether the token is a name with an operator behind it: what is missing is the AND or OR before it."""
    return token.type == "NAME" and _OPERATOR.match(text, at + len(token)) is not None


def _hint(token: Token, text: str, at: int, expected: set[str]) -> str:
    """What was probably meant or, if nothing comes to mind, what may stand there."""
    previous, last = _words_before(text, at)
    if expected <= _AFTER_IS:
        return _hint_after_is(token, is_negated=(previous, last) == ("IS", "NOT"))
    adjacent = _hint_for_adjacent(token, text, at)
    if adjacent is not None:
        return adjacent
    if token.type == "NULL" and "_IN" in expected:
        return "write IS NOT NULL"
    if token.type == "COMPARATOR":
        return _hint_for_comparator(text, at, expected)
    if last == "IN" and expected == {"LPAR"}:
        return "IN takes values in parentheses, x IN (1, 2); to ask for a value of a set write tags CONTAINS 'red'"
    starts_condition = _starts_condition(token, text, at)
    if last in habits.PREFIXES and token.type in _OPERAND_TERMINALS and not starts_condition:
        return habits.PREFIXES[last]
    if token.type == "NAME" and not starts_condition:
        keywords = [_WORDS[terminal] for terminal in expected if terminal in _WORDS]
        near = did_you_mean(token, keywords, case_sensitive=False)
        if near is not None:
            return near
    if token.type in ("_AND", "_OR") and "NAME" in expected:
        return f"a condition is missing before `{token}`; as a name it is written in backticks"
    if token.type in _WORDS and "NAME" in expected:
        return f"`{token}` is a word of the language; as a name it is written in backticks"
    if {"_AND", "_OR"} <= expected and token.type in _OPERAND_TERMINALS | {"NOT", "LPAR", "TRUE", "FALSE"}:
        return "join two conditions with AND or OR"
    if token.type == "COMMA" and _CONTAINS_LIST.search(text[max(0, at - _BEFORE) : at]):
        return "write one CONTAINS for each value, joined with AND or OR"
    if token.type == "COMMA" and {"_AND", "_OR"} <= expected:
        return "join two conditions with AND or OR; a number has no comma"
    if token.type == "PLUS":
        return "a number is written without +"
    return habits.sign_hint(text, at) or f"expected {_show_expected(expected)}"


def _words_before(text: str, at: int) -> tuple[str, str]:
    """The last two words before an offset, in capitals; "" for one that is not there."""
    found = _LAST_WORDS.search(text[max(0, at - _BEFORE) : at])
    previous, last = found.groups() if found is not None else ("", "")
    return (previous or "").upper(), last.upper()


def _hint_after_is(token: Token, is_negated: bool) -> str:
    """IS asks for NULL alone; other dialects let it ask for truth and for equality."""
    word = token.upper()
    if word in ("TRUE", "FALSE"):
        other = "FALSE" if word == "TRUE" else "TRUE"
        return f"write (x = {other} OR x IS NULL)" if is_negated else f"write x = {word}"
    if word in ("UNKNOWN", "MISSING", "NONE", "NIL"):
        return f"write IS {'NOT ' if is_negated else ''}NULL"
    if word == "DISTINCT":
        return "write x = 1" if is_negated else "write (x <> 1 OR x IS NULL)"
    operator = "<>" if is_negated else "="
    return f"IS asks for NULL alone; a value is compared with {operator}"


def _hint_for_adjacent(token: Token, text: str, at: int) -> str | None:
    """The hint for a token with no blank before it, which probably belongs to what it follows."""
    before = text[at - 1 : at]
    if before == "'" and token.type in _OPERAND_TERMINALS:
        return "inside a string a quote is written twice: 'it''s'"
    if token.type == "LPAR" and (before.isalnum() or before == "_"):
        return "the language has no functions"
    return habits.name_hint(text, at) if habits.starts_before(text, at) else None


def _hint_for_comparator(text: str, at: int, expected: set[str]) -> str:
    hint = habits.sign_hint(text, at)
    if hint is not None:
        return hint
    if "_LIKE" in expected:
        return "NOT is written before the whole comparison: NOT x = 1; or write <>"
    if "_AND" in expected:
        return "join two comparisons with AND: low < x AND x < high"
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
