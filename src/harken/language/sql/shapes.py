"""Parsing by shape: texts that differ only in their constants are parsed once.

A text is cut at its constants in one pass of a regular expression. What remains is its shape. The first text of a
shape is parsed, and its expression becomes a template, with a hole in place of each constant; of every other text only
the constants are read. Whatever goes wrong with them (a stray escape, a date that is none) is left to the parser, which
gives the error its place. Only the parse is shared: the normal form is made for each text.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import neg
from typing import Any

from harken.errors import InvalidValueError
from harken.language.ast import Attribute, Constant, Expression, Like, Predicate, leaves, like_pieces, predicates
from harken.language.ast import constants as constants_of
from harken.language.normalise import Template
from harken.language.sql import parser
from harken.language.sql.doubts import Doubts, doubts_of
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import CodedDomain, Schema
from harken.schema.values import Value, parse_date, parse_timestamp

# Names in backticks and comments are cut out too, so that nothing inside them is taken for a constant; a comment also
# where it is not closed, or the search for its end would start over at each of many.
_CUT = re.compile(
    r"('(?:[^']|'')*'"
    r"|`(?:[^`]|``)+`|--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?"
    r"|(?:(?<!\w)[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_CONSTANT_STARTS = frozenset("'.0123456789")
# What stands for a constant in a shape. Texts with a NUL of their own are not cut.
_MARKS: dict[type, str] = {str: "\0s", int: "\0i", float: "\0f"}
# Larger numbers stay in the shape, for the parser to refuse or, as with -2^63, to take.
_TOO_MANY_DIGITS = 19
_LARGEST_FLOAT = sys.float_info.max
# A shape with more is not kept: lists of such a length seldom come again with just as many values.
_MOST_CONSTANTS = 256

_Reader = Callable[[Any], Value]
# What may stand before a constant, and how the constant is read then.
_READERS: dict[str, _Reader] = {"-": neg, "DATE": parse_date, "TIMESTAMP": parse_timestamp}


_Booleans = tuple[tuple[int, bool], ...]
_Readers = tuple[tuple[int, _Reader], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What texts that differ only in their constants have in common, and how their constants are read."""

    template: Template
    doubts: Doubts
    booleans: _Booleans = ()
    """TRUE and FALSE are part of a shape, and yet constants: each with its place among all of them."""
    readers: _Readers = ()
    """What makes or judges a constant, by its place."""


class ShapeCache:
    """Shapes that are known, of texts that are checked against one schema.

    `accept` is called with the first expression of each shape, and may refuse it by raising. Threads may share a cache:
    at the worst, a race parses a shape twice.
    """

    def __init__(
        self,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        accept: Callable[[Expression, str], None] = lambda expression, text: None,
        max_shapes: int = 16_384,
    ) -> None:
        self.schema = schema
        self.limits = limits
        self.accept = accept
        self.max_shapes = max_shapes
        self.hits = 0
        self.misses = 0
        self._known: dict[str, Shape] = {}

    def parse(self, text: str) -> tuple[Shape, Sequence[Value]]:
        """The shape of a text, and the constants to fill its template with.

        Raises ParseError or LimitError, each with its place, and what `accept` raises.
        """
        if len(text) > self.limits.max_text_length or "\0" in text:
            return self._alone(self._expression(text))
        key, constants = _cut(text)
        shape = self._known.get(key)
        if shape is not None:
            for index, value in shape.booleans:
                constants.insert(index, value)
            try:
                for index, read in shape.readers:
                    constants[index] = read(constants[index])
            except (ValueError, InvalidValueError):  # a stray escape, no date, no value of its domain
                return self._alone(self._expression(text))
            self.hits += 1
            return shape, constants
        expression = self._expression(text)
        self.misses += 1
        shape, values = self._alone(expression)
        reading = _reading(expression, text, self.schema) if len(constants) <= _MOST_CONSTANTS else None
        if reading is not None:
            if len(self._known) >= self.max_shapes:
                self._known.clear()  # rare, and cheaper than keeping an order of use for every text
            self._known[key] = Shape(shape.template, shape.doubts, *reading)
        return shape, values

    def _expression(self, text: str) -> Expression:
        expression = parser.parse(text, self.limits)
        self.accept(expression, text)
        return expression

    def _alone(self, expression: Expression) -> tuple[Shape, Sequence[Value]]:
        """A shape for one text only, and its constants."""
        shape = Shape(Template(expression, self.schema), doubts_of(expression, self.schema))
        return shape, [constant.value for constant in constants_of(expression)]


def _cut(text: str) -> tuple[str, list[Value]]:
    """The shape of a text, and its constants in the order of the text."""
    parts = _CUT.split(text)
    constants: list[Value] = []
    for index in range(1, len(parts), 2):
        value = _constant(parts[index])
        if value is not None:
            constants.append(value)
            parts[index] = _MARKS[type(value)]
    return "".join(parts), constants


def _constant(part: str) -> str | int | float | None:
    """The value of what was cut out of a text, or None if it stays in the shape."""
    first = part[0]
    if first == "'":
        return part[1:-1].replace("''", "'")
    if first not in _CONSTANT_STARTS:
        return None
    if part.isdecimal():
        return int(part) if len(part) < _TOO_MANY_DIGITS else None
    number = float(part)
    return number if number <= _LARGEST_FLOAT else None


def _reading(expression: Expression, text: str, schema: Schema | None) -> tuple[_Booleans, _Readers] | None:
    """How the constants of other texts of this shape are read, or None if it cannot be told which is which.

    In one order are the constants of the expression and the cuts of the text. A constant starts at its cut or, if
    something belongs to it that stands before, such as a sign, between the cut before and its own.
    """
    starts = [found.start() for found in _CUT.finditer(text) if _constant(found[0]) is not None]
    booleans: list[tuple[int, bool]] = []
    readers: list[tuple[int, _Reader]] = []
    place = cut = 0
    for predicate, _ in predicates(expression):
        for leaf in leaves(predicate):
            if not isinstance(leaf, Constant):
                continue
            if isinstance(leaf.value, bool):
                booleans.append((place, leaf.value))
            elif cut == len(starts) or bisect_left(starts, leaf.at) != cut:
                return None
            else:
                before = text[leaf.at : starts[cut]].strip().upper()
                judges = _judges(predicate, schema)
                if judges is None or (before and before not in _READERS):
                    return None
                readers.extend((place, read) for read in ([_READERS[before]] if before else []) + judges)
                cut += 1
            place += 1
    return (tuple(booleans), tuple(readers)) if cut == len(starts) else None


def _judges(predicate: Predicate, schema: Schema | None) -> list[_Reader] | None:
    """What judges the constants of a predicate: its pattern's escapes, or the domains of what they are compared with.

    None if the predicate is about no attribute.
    """
    if isinstance(predicate, Like):
        return [_pattern_reader(predicate.escape)] if isinstance(predicate.operand, Attribute) else None
    paths = [leaf.path for leaf in leaves(predicate) if isinstance(leaf, Attribute)]
    if not paths:
        return None
    domains = [] if schema is None else [schema.domain_of(path) for path in paths]
    return [domain.read for domain in domains if isinstance(domain, CodedDomain)]


def _pattern_reader(escape: str) -> _Reader:
    def read(pattern: str) -> str:
        like_pieces(pattern, escape)  # raises if an escape is stray
        return pattern

    return read
