"""Parsing by shape: texts that differ only in their constants are parsed once.

A text is cut at its constants in one pass of a regular expression. What remains is its shape. The first text of a
shape is parsed; its AST, with a slot in place of each constant, becomes a template that the constants of the next texts
are put into. Whatever goes wrong with a template (a number out of range, a stray escape) is left to the parser, which
gives the error its place. Only the parse is shared: the normal form is made for each text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from harken.language import sql
from harken.language.ast import (
    And,
    Between,
    Comparison,
    Constant,
    Contains,
    Expression,
    In,
    Like,
    Not,
    Or,
)
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.values import Value, parse_date, parse_timestamp

# Names in backticks and comments are cut out too, so that nothing inside them is taken for a constant; a comment also
# where it is not closed, or the search for its end would start over at each of many.
_CUT = re.compile(
    r"('(?:[^']|'')*'"
    r"|`(?:[^`]|``)+`|--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?"
    r"|(?:(?<!\w)[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_STRING_MARK, _INTEGER_MARK, _FLOAT_MARK = "\0s", "\0i", "\0f"
_LONGEST_INTEGER = 19
_CONSTANT_STARTS = frozenset("'.0123456789")

Constants = list[Value]
_Fill = Callable[[Constants], Any]


class ShapeCache:
    """Templates by shape. `parse` gives what `sql.parse` gives, except that nodes do not know their offsets.

    `accept` is called with the first expression of each shape, and may refuse it by raising: what it looks at has to
    be the same for all texts of a shape. Threads may share a cache: at the worst, a race parses a shape twice.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        accept: Callable[[Expression, str], None] | None = None,
        max_shapes: int = 16_384,
    ) -> None:
        self.limits = limits
        self.accept = accept
        self.max_shapes = max_shapes
        self.hits = 0
        self.misses = 0
        self._templates: dict[str, _Fill | None] = {}

    def parse(self, text: str) -> Expression:
        """The expression that the text stands for. Raises ParseError or LimitError, each with its place."""
        if len(text) > self.limits.max_text_length:
            return sql.parse(text, self.limits)
        shape, constants = _cut(text)
        template = self._templates.get(shape)
        if template is not None:
            try:
                expression: Expression = template(constants)
            except (ValueError, TypeError, IndexError):
                return sql.parse(text, self.limits)  # to raise what the text deserves, with its place
            self.hits += 1
            return expression
        self.misses += 1
        expression = sql.parse(text, self.limits)
        if self.accept is not None:
            self.accept(expression, text)
        if shape not in self._templates:
            if len(self._templates) >= self.max_shapes:
                self._templates.clear()  # rare, and cheaper than keeping an order of use for every text
            self._templates[shape] = _template(expression, text)
        return expression


def _cut(text: str) -> tuple[str, Constants]:
    """The shape of a text, and its constants in the order of the text."""
    parts = _CUT.split(text)
    constants: Constants = []
    for index in range(1, len(parts), 2):
        part = parts[index]
        first = part[0]
        if first == "'":
            constants.append(part[1:-1].replace("''", "'"))
            parts[index] = _STRING_MARK
        elif first not in _CONSTANT_STARTS:
            continue
        elif not part.isdecimal():
            constants.append(float(part))
            parts[index] = _FLOAT_MARK
        elif len(part) <= _LONGEST_INTEGER:  # a longer one stays in the shape: it is the parser's to refuse
            constants.append(int(part))
            parts[index] = _INTEGER_MARK
    return "".join(parts), constants


def _template(expression: Expression, text: str) -> _Fill | None:
    """A function from constants to the expression with those constants, or None if it cannot be told which is which."""
    cuts = [found for found in _CUT.finditer(text) if found[0][0] in _CONSTANT_STARTS]
    slots = _Slots(text, [found.start() for found in cuts])
    try:
        fill = slots.expression(expression)
    except _NoTemplateError:
        return None
    return fill if sorted(slots.taken) == list(range(len(cuts))) else None


class _NoTemplateError(Exception):
    """A constant is not written in a way that a template can repeat."""


class _Slots:
    """Makes a template of an expression. A constant's slot is the first cut at or after the place where it starts."""

    def __init__(self, text: str, starts: list[int]) -> None:
        self.text = text
        self.starts = starts
        self.taken: list[int] = []

    def expression(self, node: Expression) -> _Fill:
        match node:
            case And(items=items) | Or(items=items):
                fills = [self.expression(item) for item in items]
                make = type(node)
                return lambda constants: make(tuple([fill(constants) for fill in fills]))
            case Not(item=item):
                fill = self.expression(item)
                return lambda constants: Not(fill(constants))
            case Comparison(left=left, operator=operator, right=Constant() as right):
                value = self.constant(right)
                return lambda constants: Comparison(left, operator, value(constants))
            case Comparison(left=Constant() as left, operator=operator, right=right):
                value = self.constant(left)
                return lambda constants: Comparison(value(constants), operator, right)
            case Between(operand=operand, low=Constant() as low, high=Constant() as high):
                lowest, highest = self.constant(low), self.constant(high)
                return lambda constants: Between(operand, lowest(constants), highest(constants))
            case In(operand=operand, values=values):
                members = [self.constant(value) for value in values]
                return lambda constants: In(operand, tuple([member(constants) for member in members]))
            case Like(operand=operand, pattern=pattern, escape=escape):
                value = self.constant(pattern)
                return lambda constants: Like(operand, value(constants), escape)
            case Contains(attribute=attribute, value=constant):
                value = self.constant(constant)
                return lambda constants: Contains(attribute, value(constants))
            case _:
                return lambda constants: node

    def constant(self, constant: Constant) -> _Fill:
        if isinstance(constant.value, bool):
            return lambda constants: constant
        slot = bisect_left(self.starts, constant.at)
        if slot == len(self.starts):
            raise _NoTemplateError
        self.taken.append(slot)
        read = _READERS.get(self.text[constant.at : self.starts[slot]].strip().upper())
        if read is None:
            raise _NoTemplateError
        return lambda constants: Constant(read(constants[slot]))


# What may stand before a constant, and what it makes of the constant.
_READERS: dict[str, Callable[[Any], Value]] = {
    "": lambda value: value,
    "-": lambda value: -value,
    "DATE": parse_date,
    "TIMESTAMP": parse_timestamp,
}
