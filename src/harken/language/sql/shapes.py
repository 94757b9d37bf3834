"""Parsing by shape: texts that differ only in their constants are parsed once.

A text is cut at its constants in one pass of a regular expression. What remains is its shape. The first text of a
shape is parsed; its AST, with a slot in place of each constant, becomes a template, and of every other text only the
constants are read. Whatever goes wrong with them (a stray escape, a date that is none) is left to the parser, which
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
from harken.language.ast import (
    And,
    Attribute,
    Between,
    Comparison,
    Constant,
    Contains,
    Expression,
    Holds,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    like_pieces,
)
from harken.language.sql import parser as sql
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


@dataclass(frozen=True, slots=True)
class Slot(Constant):
    """A constant of a template: the value that it stands for is among the constants of the text at hand."""

    index: int = 0

    def given(self, constants: Sequence[Value]) -> Value:
        return constants[self.index]


@dataclass(frozen=True, slots=True)
class _Template:
    """The first expression of a shape with slots for its constants, and how those are read that are not plain."""

    expression: Expression
    readers: tuple[tuple[int, _Reader], ...]


class ShapeCache:
    """Templates by shape, for texts that are checked against one schema.

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
        self._templates: dict[str, _Template] = {}

    def parse(self, text: str) -> tuple[Expression, Sequence[Value]]:
        """A template and the constants that go with it, as `normalise` takes them; or a plain expression and none.

        Raises ParseError or LimitError, each with its place, and what `accept` raises.
        """
        if len(text) > self.limits.max_text_length or "\0" in text:
            return self._parse_alone(text), ()
        shape, constants = _cut(text)
        template = self._templates.get(shape)
        if template is not None:
            try:
                for index, read in template.readers:
                    constants[index] = read(constants[index])
            except (ValueError, InvalidValueError):  # a stray escape, no date, no value of its domain
                return self._parse_alone(text), ()
            self.hits += 1
            return template.expression, constants
        expression = self._parse_alone(text)
        self.misses += 1
        template = _template(expression, text, self.schema) if len(constants) <= _MOST_CONSTANTS else None
        if template is not None:
            if len(self._templates) >= self.max_shapes:
                self._templates.clear()  # rare, and cheaper than keeping an order of use for every text
            self._templates[shape] = template
        return expression, ()

    def _parse_alone(self, text: str) -> Expression:
        expression = sql.parse(text, self.limits)
        self.accept(expression, text)
        return expression


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


def _template(expression: Expression, text: str, schema: Schema | None) -> _Template | None:
    """The template that an expression makes, or None if it cannot be told which of its constants is which."""
    starts = [found.start() for found in _CUT.finditer(text) if _constant(found[0]) is not None]
    slots = _Slots(text, starts, schema)
    try:
        template = slots.expression(expression)
    except _NoTemplateError:
        return None
    if sorted(slots.taken) != list(range(len(starts))):
        return None
    return _Template(template, tuple(slots.readers))


class _NoTemplateError(Exception):
    """A constant stands where a template cannot put another."""


class _Slots:
    """Makes a template of an expression. A constant's slot is the first cut at or after the place where it starts."""

    def __init__(self, text: str, starts: list[int], schema: Schema | None) -> None:
        self.text = text
        self.starts = starts
        self.schema = schema
        self.taken: list[int] = []
        self.readers: list[tuple[int, _Reader]] = []

    def expression(self, node: Expression) -> Expression:
        match node:
            case And(items=items) | Or(items=items):
                return type(node)(tuple(map(self.expression, items)))
            case Not(item=item):
                return Not(self.expression(item))
            case Comparison(left=Attribute() as left, operator=operator, right=right):
                return Comparison(left, operator, self.operand(right, left))
            case Comparison(left=left, operator=operator, right=Attribute() as right):
                return Comparison(self.operand(left, right), operator, right)
            case Between(operand=Attribute() as operand, low=low, high=high):
                return Between(operand, self.operand(low, operand), self.operand(high, operand))
            case In(operand=Attribute() as operand, values=values):
                return In(operand, tuple([self.constant(value, operand) for value in values]))
            case Like(operand=Attribute() as operand, pattern=pattern, escape=escape):
                return Like(operand, self.pattern(pattern, escape), escape)
            case Contains(attribute=attribute, value=value):
                return Contains(attribute, self.constant(value, attribute))
            case IsNull() | Holds():
                return node
            case _:
                raise _NoTemplateError

    def operand(self, operand: Operand, attribute: Attribute) -> Operand:
        return self.constant(operand, attribute) if isinstance(operand, Constant) else operand

    def constant(self, constant: Constant, attribute: Attribute) -> Constant:
        """A slot for a constant that is compared with an attribute, whose domain may list its values."""
        if isinstance(constant.value, bool):
            return constant
        slot = self.slot(constant)
        domain = None if self.schema is None else self.schema.domain_of(attribute.path)
        if isinstance(domain, CodedDomain):
            self.readers.append((slot.index, domain.read))
        return slot

    def pattern(self, constant: Constant, escape: str) -> Constant:
        slot = self.slot(constant)

        def read(text: str) -> str:
            like_pieces(text, escape)  # raises if an escape is stray
            return text

        self.readers.append((slot.index, read))
        return slot

    def slot(self, constant: Constant) -> Slot:
        index = bisect_left(self.starts, constant.at)
        if index == len(self.starts):
            raise _NoTemplateError
        self.taken.append(index)
        before = self.text[constant.at : self.starts[index]].strip().upper()
        if before:
            if before not in _READERS:
                raise _NoTemplateError
            self.readers.append((index, _READERS[before]))
        return Slot(constant.value, constant.at, index)


# What may stand before a constant, and how the constant is read then.
_READERS: dict[str, _Reader] = {"-": neg, "DATE": parse_date, "TIMESTAMP": parse_timestamp}
