"""Text → tokens: one pass of one regular expression, which also finds characters that start no token."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

END = ""
"""The word of a token that is the end of the text."""
NOTHING = "\0"
"""Prefix of the word for a character that starts no token."""
QUOTES = ("'", '"')

# NCName of Namespaces in XML 1.0.
_FIRST = (
    r"A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    r"\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = rf"[{_FIRST}][{_FIRST}0-9.\-\u00b7\u0300-\u036f\u203f\u2040]*"
_SIGNS = (
    r"//?|\[|\]|@"
    r"|<=?|>=?|!=|="
    r"|'[^']*'|\"[^\"]*\""
    r"|[0-9]+(?:\.[0-9]*)?|\.[0-9]+|\.\.?"
    r"|\(:?|\)|::|[*,;|+\-$]"
)
_QUALIFIED = rf"{_NAME}(?::(?:{_NAME}|\*))?"
_TOKEN = re.compile(rf"({_QUALIFIED}|{_SIGNS})")
_STEP = rf"(?:text\(\)|@?(?:{_QUALIFIED}|\*))"
_RUN = re.compile(rf"(\.?//?{_STEP}(?://?{_STEP})*|{_STEP}(?://?{_STEP})*|{_SIGNS})")
_BLANKS = " \t\r\n"
_NAME_START = re.compile(f"[{_FIRST}]")


class Tokens(NamedTuple):
    """The tokens of a text, without blanks; the last one but one is its end, or a character that starts none.

    Another end follows, so that every token but the last has one behind it.
    """

    words: list[str]
    starts: list[int]
    """Offsets in the text."""


def tokens_of(text: str) -> Tokens:
    """The tokens of a text, up to the first character that starts none."""
    return _split(_TOKEN, text)


def runs_of(text: str) -> Tokens:
    """As `tokens_of`, but a path without predicates and blanks is one token."""
    return _split(_RUN, text)


def _split(token: re.Pattern[str], text: str) -> Tokens:
    pieces = token.split(text)  # a gap, a token, a gap …
    words, starts = pieces[1::2], list(accumulate(map(len, pieces)))[::2]
    words += (END, END)
    starts.append(starts[-1])
    if "".join(pieces[::2]).strip(_BLANKS):
        _end_at_stray(pieces, words, starts)
    return Tokens(words, starts)


def is_name(word: str) -> bool:
    """Whether the word of a token is a name, with or without a prefix."""
    return _NAME_START.match(word) is not None


def is_number(word: str) -> bool:
    """Whether the word of a token is a number."""
    return word[:1].isdigit() or (word[:1] == "." and word[1:2].isdigit())


def _end_at_stray(pieces: list[str], words: list[str], starts: list[int]) -> None:
    """End the tokens at the first character between them that is not blank."""
    place = next(place for place, gap in enumerate(pieces[::2]) if gap.strip(_BLANKS))
    stray = pieces[2 * place].lstrip(_BLANKS)
    start = starts[place] - len(stray)
    del words[place:], starts[place:]
    words += (NOTHING + stray[0], END)
    starts += (start, start)
