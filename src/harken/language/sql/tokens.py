"""Text → tokens: one pass of one regular expression, which also finds characters that start no token."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from harken.schema.paths import RESERVED

SOFT = ("DATE", "TIMESTAMP", "CONTAINS", "ESCAPE", "ILIKE", "RLIKE", "REGEXP")
"""Words of the language that are names where an operand is expected."""
KEYWORDS = frozenset((*RESERVED, *SOFT))
NAMES = frozenset(("NAME", "QUOTED_NAME", *SOFT))
"""Kinds of tokens that may be names."""

# The kind of a sign is the sign itself, but for the comparisons; that of a keyword is the word in capitals.
NAME, QUOTED_NAME, NUMBER, STRING, VARIABLE = "NAME", "QUOTED_NAME", "NUMBER", "STRING", "VARIABLE"
COMPARATOR, OPEN_COMMENT, NO_TOKEN, END = "COMPARATOR", "OPEN_COMMENT", "NO_TOKEN", "END"

# An unclosed comment runs to the end of the text: many of them would take quadratic time otherwise.
_TOKEN = re.compile(
    r"([^\W\d]\w*"
    r"|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|'[^']*(?:''[^']*)*'"
    r"|<[=>]?|>=?|=|!="
    r"|--[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?"
    r"|`(?:[^`]|``)+`"
    r"|\?[^\W\d]\w*"
    r"|[(),.+\-*/%])"
)
_COMMENTS = ("--", "/*")
_SHORTEST_COMMENT = len("/**/")
_NOTHING = "\0"
"""Marks a word that is no token: no token starts with it."""
_BY_FIRST = {
    **dict.fromkeys("0123456789.", NUMBER),
    "'": STRING,
    "`": QUOTED_NAME,
    "?": VARIABLE,
    "/": OPEN_COMMENT,
    _NOTHING: NO_TOKEN,
}
_CACHE_SIZE = 65_536
_SHORT = 64
"""The longest name that is cached, in characters."""


class Tokens(NamedTuple):
    """The tokens of a text, without blanks and comments; the last one is its end, or a character that starts none."""

    words: list[str]
    kinds: list[str]
    starts: list[int]
    """Offsets in the text."""


def tokens_of(text: str) -> Tokens:
    """The tokens of a text, up to the first character that starts none."""
    pieces = _TOKEN.split(text)  # a gap, a token, a gap …
    words, starts = pieces[1::2], list(accumulate(map(len, pieces)))[::2]
    words.append("")
    gaps = "".join(pieces[::2])
    if gaps and not gaps.isspace():
        _end_at_stray(pieces, words, starts)
    if "--" in text or "/*" in text:
        kept = [not (word.startswith(_COMMENTS) and _is_closed(word)) for word in words]
        words = [word for word, is_kept in zip(words, kept, strict=True) if is_kept]
        starts = [start for start, is_kept in zip(starts, kept, strict=True) if is_kept]
    kinds = list(map(_kinds.get, words))
    for place, kind in enumerate(kinds):
        if kind is None:
            kinds[place] = _BY_FIRST.get(words[place][0]) or _kind_of_name(words[place])
    return Tokens(words, kinds, starts)  # type: ignore[arg-type]


def _is_closed(comment: str) -> bool:
    return comment[0] == "-" or (len(comment) >= _SHORTEST_COMMENT and comment.endswith("*/"))


def _end_at_stray(pieces: list[str], words: list[str], starts: list[int]) -> None:
    """End the tokens at the first character between them that is not blank."""
    place = next(place for place, gap in enumerate(pieces[::2]) if gap and not gap.isspace())
    gap = pieces[2 * place]
    stray = gap.lstrip()
    start = starts[place] - len(stray)
    del words[place:], starts[place:]
    words.append(_NOTHING + stray[0])
    starts.append(start)


def _kind_of_name(word: str) -> str:
    capitals = word.upper()
    kind = capitals if capitals in KEYWORDS and word.isascii() else NAME  # the capital of a dotless i is an I
    if len(_kinds) < _CACHE_SIZE and len(word) <= _SHORT:
        _kinds[word] = kind
    return kind


_kinds: dict[str, str] = {
    **{sign: sign for sign in "(),.+-*/%"},
    **dict.fromkeys(("=", "<>", "!=", "<", "<=", ">", ">="), COMPARATOR),
    "": END,
}
"""The kinds of signs and, as a cache, of names."""
