"""LIKE, exhaustively: the reference and the verifier on all short patterns and texts, against regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from harken.errors import ContradictionError, ParseError
from harken.events import Event
from harken.language.ast import Attribute, Constant, Expression, Like, Not
from harken.language.normalise import normalise
from harken.language.sql.parser import parse
from harken.matchers import verify
from harken.reference import expressions as reference
from harken.schema.values import show

_ESCAPED = re.compile(r"(?s)(\\.)|(%)|(_)|(.)")


def words(letters: str, longest: int) -> Iterator[str]:
    """All texts of these letters, up to a length."""
    for length in range(longest + 1):
        yield from map("".join, product(letters, repeat=length))


def expected(pattern: str, text: str) -> bool:
    """The pattern, with backslashes for escapes, as a regular expression."""
    parts = {1: lambda found: re.escape(found[0][1]), 2: lambda _: ".*", 3: lambda _: "."}
    regex = _ESCAPED.sub(lambda found: parts.get(found.lastindex, lambda each: re.escape(each[0]))(found), pattern)
    return re.fullmatch(f"(?s:{regex})", text) is not None


def verified(expression: Expression, events: list[Event]) -> list[bool]:
    """The verifier's answer for every event."""
    try:
        form = normalise(expression)
    except ContradictionError:
        return [False] * len(events)
    return [verify.is_match(form, event) for event in events]


def test_every_short_pattern_on_every_short_text():
    compare(words("ab%_", 4), [*words("ab", 4), "aabab", "ababa", "a\nb", "é", "😀a"])


@pytest.mark.parametrize("escape", ["\\", "!", "%", "_", "a"])
def test_escapes_are_either_used_or_rejected(escape):
    """An escape is followed by a wildcard or by itself: anything else, and nothing at all, is rejected."""
    valid = re.compile(rf"(?:[^{re.escape(escape)}]|{re.escape(escape)}[%_{re.escape(escape)}])*")
    for pattern in words("ab%_" + (escape if escape not in "ab%_" else "!"), 3):
        text = f"s LIKE {show(pattern)} ESCAPE {show(escape)}"
        if valid.fullmatch(pattern) is None:
            with pytest.raises(ParseError):
                parse(text)
        else:
            assert isinstance(parse(text), Like)


def test_escaped_patterns_on_every_short_text():
    valid = re.compile(r"(?:[^\\]|\\[%_\\])*")
    compare(filter(valid.fullmatch, words("a%\\", 4)), list(words("a%_\\", 3)))


def compare(patterns: Iterable[str], texts: list[str]) -> None:
    events = [{"s": text} for text in texts]
    canonical = [Event.of(event) for event in events]
    for pattern in patterns:
        like = Like(Attribute(("s",)), Constant(pattern))
        wanted = [expected(pattern, text) for text in texts]
        assert [reference.truth(like, event, event) for event in events] == wanted, pattern
        assert verified(like, canonical) == wanted, pattern
        assert verified(Not(like), canonical) == [not each for each in wanted], pattern
