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

from harken.language import sql
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
# Larger numbers stay in the shape, for the parser to refuse or, as with -2^63, to take.
_TOO_MANY_DIGITS = 19
_LARGEST_FLOAT = sys.float_info.max
_CONSTANT_STARTS = frozenset("'.0123456789")


@dataclass(frozen=True, slots=True)
class Slot(Constant):
    """A constant of a template: the value that it stands for is read from the constants of the text at hand."""

    index: int = 0
    read: Callable[[Any], Value] | None = None

    def given(self, constants: Sequence[Value]) -> Value:
        value = constants[self.index]
        return value if self.read is None else self.read(value)


class ShapeCache:
    """Templates by shape.

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
        self._templates: dict[str, Expression] = {}

    def parse(self, text: str) -> tuple[Expression, Sequence[Value]]:
        """A template and the constants to read into it, as `normalise` takes them; or a plain expression and none.

        Raises ParseError or LimitError, each with its place. Constants may not fit the template, as a pattern with a
        stray escape does not: then normalising raises ValueError, and the text is to be parsed by itself.
        """
        if len(text) <= self.limits.max_text_length:
            shape, constants = _cut(text)
            template = self._templates.get(shape)
            if template is not None:
                self.hits += 1
                return template, constants
        self.misses += 1
        expression = sql.parse(text, self.limits)
        if self.accept is not None:
            self.accept(expression, text)
        template = _template(expression, text)
        if template is not None:
            if len(self._templates) >= self.max_shapes:
                self._templates.clear()  # rare, and cheaper than keeping an order of use for every text
            self._templates[shape] = template
        return expression, ()


def _cut(text: str) -> tuple[str, list[Value]]:
    """The shape of a text, and its constants in the order of the text."""
    parts = _CUT.split(text)
    constants: list[Value] = []
    for index in range(1, len(parts), 2):
        part = parts[index]
        first = part[0]
        if first == "'":
            constants.append(part[1:-1].replace("''", "'"))
            parts[index] = _STRING_MARK
        elif first not in _CONSTANT_STARTS:
            continue
        elif part.isdecimal():
            if len(part) < _TOO_MANY_DIGITS:
                constants.append(int(part))
                parts[index] = _INTEGER_MARK
        else:
            number = float(part)
            if number <= _LARGEST_FLOAT:
                constants.append(number)
                parts[index] = _FLOAT_MARK
    return "".join(parts), constants


def _template(expression: Expression, text: str) -> Expression | None:
    """The expression with a slot for each constant, or None if it cannot be told which is which."""
    cuts = [found for found in _CUT.finditer(text) if found[0][0] in _CONSTANT_STARTS]
    slots = _Slots(text, [found.start() for found in cuts])
    try:
        template = slots.expression(expression)
    except _NoTemplateError:
        return None
    return template if sorted(slots.taken) == list(range(len(cuts))) else None


class _NoTemplateError(Exception):
    """A constant stands where a template cannot put another."""


class _Slots:
    """Makes a template of an expression. A constant's slot is the first cut at or after the place where it starts."""

    def __init__(self, text: str, starts: list[int]) -> None:
        self.text = text
        self.starts = starts
        self.taken: list[int] = []

    def expression(self, node: Expression) -> Expression:
        match node:
            case And(items=items) | Or(items=items):
                return type(node)(tuple(map(self.expression, items)))
            case Not(item=item):
                return Not(self.expression(item))
            case Comparison(left=Attribute() as left, operator=operator, right=right):
                return Comparison(left, operator, self.operand(right))
            case Comparison(left=left, operator=operator, right=Attribute() as right):
                return Comparison(self.operand(left), operator, right)
            case Between(operand=Attribute() as operand, low=low, high=high):
                return Between(operand, self.operand(low), self.operand(high))
            case In(operand=Attribute() as operand, values=values):
                return In(operand, tuple(map(self.constant, values)))
            case Like(operand=Attribute() as operand, pattern=pattern, escape=escape):
                return Like(operand, self.constant(pattern), escape)
            case Contains(attribute=attribute, value=value):
                return Contains(attribute, self.constant(value))
            case IsNull() | Holds():
                return node
            case _:
                raise _NoTemplateError

    def operand(self, operand: Operand) -> Operand:
        return self.constant(operand) if isinstance(operand, Constant) else operand

    def constant(self, constant: Constant) -> Constant:
        if isinstance(constant.value, bool):
            return constant
        slot = bisect_left(self.starts, constant.at)
        if slot == len(self.starts):
            raise _NoTemplateError
        self.taken.append(slot)
        before = self.text[constant.at : self.starts[slot]].strip().upper()
        if before not in _READERS:
            raise _NoTemplateError
        return Slot(constant.value, constant.at, slot, _READERS[before])


# What may stand before a constant, and how the constant is read then.
_READERS: dict[str, Callable[[Any], Value] | None] = {
    "": None,
    "-": neg,
    "DATE": parse_date,
    "TIMESTAMP": parse_timestamp,
}
