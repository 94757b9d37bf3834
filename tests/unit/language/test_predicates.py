"""Comparisons of single values, and LIKE against the plainest matcher there is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from itertools import product
from typing import Any

import pytest

from harken.language.ast import like_pieces
from harken.language.predicates import compare, like_matcher
from harken.schema import EnumeratedDomain, HierarchicalDomain
from unit.deadline import without_hanging

# LIKE


def matcher(pattern: str, escape: str = "\\") -> Any:
    return like_matcher(pattern, escape)


def plainly_like(text: str, pieces: tuple[str | None, ...]) -> bool:
    """By the definition: `%` is nothing, or one character and `%` again."""

    @cache
    def fits(at: int, piece: int) -> bool:
        if piece == len(pieces):
            return at == len(text)
        wanted = pieces[piece]
        if wanted is None:
            return fits(at, piece + 1) or (at < len(text) and fits(at + 1, piece))
        return at < len(text) and wanted in ("", text[at]) and fits(at + 1, piece + 1)

    return fits(0, 0)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("%", "anything", True),
        ("_", "", False),
        ("_", "a", True),
        ("_", "ab", False),
        ("_", "é", True),
        ("_", "😀", True),
        ("_", "\n", True),
        ("a%b", "a\nb", True),
        ("abc", "abc", True),
        ("abc", "ABC", False),
        ("a%", "ba", False),
        ("%a", "ab", False),
        ("ab%ba", "aba", False),  # the two ends may not overlap
        ("ab%ba", "abba", True),
        ("a%a", "a", False),
        ("%aab%", "aaab", True),  # the first try is not the right one
        ("%a_b%", "aaxab", False),
        ("%a_b%", "aaxab axb", True),
        ("%ab%ab%", "ab", False),
        ("%ab%ab%", "abab", True),
        ("%%", "", True),
        ("_%", "", False),
        ("%_", "a", True),
        ("%__%", "a", False),
        (r"100\%", "100%", True),
        (r"100\%", "100x", False),
        (r"a\_b", "a_b", True),
        (r"a\_b", "axb", False),
        (r"a\\b", r"a\b", True),
        (r"\%%", "%x", True),
        ("a.c", "abc", False),
        ("[a]", "a", False),
        ("a*", "aa", False),
    ],
)
def test_like(pattern: str, text: str, matches: bool) -> None:
    assert matcher(pattern)(text) is matches


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "matches"),
    [
        ("100!%", "!", "100%", True),
        ("100!%", "!", "100!", False),
        (r"a\b", "!", r"a\b", True),
        ("%%%%", "%", "%%", True),
        ("__", "_", "_", True),
        ("__", "_", "ab", False),
    ],
)
def test_like_with_an_escape(pattern: str, escape: str, text: str, matches: bool) -> None:
    assert matcher(pattern, escape)(text) is matches


def words(letters: str, longest: int) -> Iterator[str]:
    for length in range(longest + 1):
        yield from map("".join, product(letters, repeat=length))


def test_like_on_everything_that_is_short() -> None:
    """Every pattern of up to five signs against every text of up to five letters."""
    texts = list(words("ab", 5))
    for pattern in words("a%_", 5):
        pieces, fits = tuple(like_pieces(pattern, "\\")), matcher(pattern)
        wrong = [text for text in texts if fits(text) is not plainly_like(text, pieces)]
        assert not wrong, f"{pattern!r} on {wrong}"


@pytest.mark.parametrize(
    "pattern",
    ["%a%a%a%a%a%b", "%a" * 200 + "%b", "%_a_a_a_a_b%", "%" * 1000 + "b", "%" + "_" * 500 + "b%", "a%" * 500 + "b"],
)
def test_like_never_takes_long(pattern: str) -> None:
    with without_hanging():
        assert matcher(pattern)("a" * 5_000) is False


# Comparison


@pytest.mark.parametrize(
    ("left", "operator", "right", "truth"),
    [
        (1, "=", 1.0, True),
        (1, "<>", 2, True),
        (1, "<", 1.5, True),
        (2, "<=", 2, True),
        (3, ">", 3, False),
        (3, ">=", 3, True),
        (2**53 + 1, "=", 2.0**53, False),
        (2**53 + 1, ">", 2.0**53, True),
        (0.0, "=", -0.0, True),
        ("a", "<", "b", True),
        ("Z", "<", "a", True),
        ("\uffff", "<", "\U00010000", True),
        (False, "<", True, True),
        (date(2026, 1, 1), "<", date(2026, 1, 2), True),
        (datetime(2026, 1, 1, tzinfo=UTC), "=", datetime(2026, 1, 1, tzinfo=UTC), True),
    ],
)
def test_compare(left: Any, operator: str, right: Any, truth: bool) -> None:
    assert compare(operator, left, right) is truth


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (None, 1),
        (1, None),
        (None, None),
        (1, "1"),
        (1, True),
        ("a", {"b": 1}),
        (date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01", date(2026, 1, 1)),
    ],
)
def test_what_does_not_compare_is_unknown(left: Any, operator: str, right: Any) -> None:
    assert compare(operator, left, right) is None


def test_a_domain_brings_its_order() -> None:
    size = EnumeratedDomain("size", ("small", "large", "unknown"), (("small", "large"),))
    assert compare("<", "small", "large", size) is True
    assert compare("<", "small", "unknown", size) is None
    assert compare("<>", "small", "unknown", size) is True


def test_a_hierarchy_brings_its_kinds() -> None:
    kinds = HierarchicalDomain("kinds", (("thing", None), ("toy", "thing"), ("lamp", "thing")))
    assert compare("<", "toy", "thing", kinds) is True
    assert compare("<=", "lamp", "toy", kinds) is False
