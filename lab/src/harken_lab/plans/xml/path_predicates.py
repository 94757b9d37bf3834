"""Branches of an XPath expression as values of the paper's tables: a linear path, an operator and a constant.

Equalities compare *keys*. A text is its own key unless it is too long for an index, and the key of a number is no text
that a document can have. All other operators compare texts and numbers as XPath 1.0 does.
"""

from __future__ import annotations

from hashlib import sha256
from math import isnan
from typing import NamedTuple

from harken.language.xpath.linear import Branch, BranchConjunction, LinearPath
from harken.language.xpath.numbers import number_of

EQUAL, ANY = "=", "any"
"""The operator of the first stage, and that of a path without a comparison."""
COMPARISON = """CASE {p}op WHEN '=' THEN {s}value = {p}value
    WHEN '!=' THEN {s}value <> {p}value
    WHEN '<' THEN {s}number < {p}number
    WHEN '<=' THEN {s}number <= {p}number
    WHEN '>' THEN {s}number > {p}number
    WHEN '>=' THEN {s}number >= {p}number
    WHEN 'number!=' THEN {s}number IS NULL OR {s}number <> {p}number
    WHEN 'text<' THEN substr({s}value, 1, 440) < {p}value
    WHEN 'text<=' THEN substr({s}value, 1, 440) <= {p}value
    WHEN 'text>' THEN substr({s}value, 1, 440) > {p}value
    WHEN 'text>=' THEN substr({s}value, 1, 440) >= {p}value
    ELSE 1 = 1 END"""
"""Whether a comparison holds. A value that is no number differs from every number, and is not less or greater."""
NUMERIC, ORDERED = STRINGS = "numeric", "ordered"
"""What `b < 'w'` compares: as XPath 1.0 has it, the numbers that both texts denote; or the texts, by code point, up to
440 characters: the key of a longer text has no more of it."""
_NUMBER = "\1"
"""The first character of a number's key. XML has no such character."""
_MOST_CHARACTERS, _KEPT_CHARACTERS = 500, 440
"""A longer text is stored as its beginning and its digest: PostgreSQL's B-trees hold at most 2,704 bytes."""


class PathKey(NamedTuple):
    """The key of a linear path in the tables."""

    path: LinearPath
    is_number: bool = False
    """Whether nodes at the end of the path are looked up as numbers."""


class PathPredicate(NamedTuple):
    """A branch without its branching points."""

    path: PathKey
    op: str
    value: str | None
    number: float | None


def text_key(text: str) -> str:
    """The key of a text. Two texts are equal if and only if their keys are, except for collisions of SHA-256."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    return text[:_KEPT_CHARACTERS] + sha256(text.encode()).hexdigest()


def number_key(number: float) -> str:
    """The key of a number: the same for all texts that denote it."""
    return f"{_NUMBER}{number + 0.0!r}"


def path_predicate(branch: Branch, strings: str = NUMERIC) -> PathPredicate | None:
    """A branch as a predicate; None if no document can satisfy it."""
    operator, value, key = branch.operator, branch.value, PathKey(branch.path)
    if operator is None or value is None:
        return PathPredicate(key, ANY, None, None)
    if isinstance(value, str) and operator in ("=", "!="):
        if "\0" in value:  # no document has a NUL, and some databases cannot store it
            return None if operator == EQUAL else PathPredicate(key, ANY, None, None)
        return PathPredicate(key, operator, text_key(value), None)
    if isinstance(value, str) and strings == ORDERED:  # no text has a NUL: a constant ends before its first
        kept, _, _ = value[:_KEPT_CHARACTERS].partition("\0")
        is_cut = len(kept) < len(value[:_KEPT_CHARACTERS])
        if is_cut:  # a text is less than what has a NUL behind it if and only if it is not greater than the rest
            operator = operator[0] + ("=" if operator[0] == "<" else "")
        return PathPredicate(key, f"text{operator}", kept, None)
    number = number_of(value)
    if isnan(number):
        return None
    if operator == EQUAL:
        return PathPredicate(PathKey(branch.path, is_number=True), EQUAL, number_key(number), None)
    return PathPredicate(key, "number!=" if operator == "!=" else operator, None, number)


PlacedPredicate = tuple[PathPredicate, tuple[tuple[int, int], ...]]
"""A predicate, and the branching points on its path."""


def path_predicates(conjunction: BranchConjunction, strings: str = NUMERIC) -> list[PlacedPredicate] | None:
    """All branches as predicates; None if no document can satisfy them."""
    placed = [(path_predicate(branch, strings), branch.points) for branch in conjunction.branches]
    satisfiable = [(predicate, points) for predicate, points in placed if predicate is not None]
    return satisfiable if len(satisfiable) == len(placed) else None
