"""Parsing by shape: texts that differ only in their constants are parsed once.

A text is cut at its constants in one pass of a regular expression. What remains is its shape. When a shape comes the
second time its expression becomes a template, with a hole in place of each constant; later texts of the shape are not
parsed, only their constants are read. Nor is a text of a new shape parsed if all its conjuncts have known shapes, and
each is one constraint.

Texts with invalid constants (a stray escape, an impossible date) are left to the parser, whose errors have places. Only
the parse is shared: the normal form is made for each text.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import neg
from typing import Any, NamedTuple

from harken.errors import InvalidValueError
from harken.language.ast import (
    And,
    Attribute,
    Between,
    Constant,
    Expression,
    Like,
    Predicate,
    RLike,
    XPathBoolean,
    arithmetic_depth,
    leaves,
    like_pieces,
    predicates,
)
from harken.language.ast import constants as constants_of
from harken.language.compiled import FlatPlan, Plan
from harken.language.normal_form import NormalForm
from harken.language.normalise import Template, conjoined
from harken.language.planning import plan_of
from harken.language.sql import parser
from harken.language.sql.doubts import Doubts, doubts_of
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import CodedDomain, Schema
from harken.schema.values import Value, parse_date, parse_timestamp

# Names in backticks and comments are cut out too, so that nothing inside them is taken for a constant; also
# unclosed comments, many of which would take quadratic time otherwise.
_CUT = re.compile(
    r"('[^']*(?:''[^']*)*'"
    r"|`(?:[^`]|``)+`|--[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?"
    r"|(?:(?<!\w)[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_CONSTANT_STARTS = frozenset("'.0123456789")
# Marks a constant in a shape. Texts with a NUL are not cut.
_MARK = "\0"
_MARKS: dict[type, str] = {str: "\0s", int: "\0i", float: "\0f"}
# The AND of BETWEEN has a constant behind it, that of two conjuncts hardly ever.
_BETWEEN_CONJUNCTS = re.compile(" (?:AND|and) (?!\0)")
# Conjuncts that are recognised without parsing, and whose constants are used as they were cut.
_PLAIN = re.compile(
    r"[^\W\d][\w.]* (?:[<>=!]{1,2} \0.|(?:NOT )?BETWEEN \0. AND \0.|(?:NOT )?IN \(\0.(?:, \0.)*\)|IS (?:NOT )?NULL)",
    re.IGNORECASE,
)
# Larger numbers stay in the shape, for the parser to reject or, as with -2^63, to take.
_TOO_MANY_DIGITS = 19
_LARGEST_FLOAT = sys.float_info.max
# A shape with more is not kept: such long lists rarely recur with the same number of values.
_MOST_CONSTANTS = 256

_Reader = Callable[[Any], Value]
# Prefixes of a constant, and how the constant behind each is read.
_READERS: dict[str, _Reader] = {"-": neg, "DATE": parse_date, "TIMESTAMP": parse_timestamp}


_Booleans = tuple[tuple[int, bool], ...]
_Readers = tuple[tuple[int, _Reader], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What texts that differ only in their constants have in common, and how their constants are read."""

    template: Template
    doubts: Doubts
    booleans: _Booleans
    """TRUE and FALSE are part of a shape, and constants too: each with its index among all constants."""
    readers: _Readers
    """Functions that convert or check a constant, with its index."""

    def read(self, constants: list[Value]) -> list[Value] | None:
        """The constants of a text from those cut out of it, changed in place; None if one is invalid."""
        for index, value in self.booleans:
            constants.insert(index, value)
        try:
            for index, read in self.readers:
                constants[index] = read(constants[index])
        except (ValueError, InvalidValueError):  # a stray escape, an invalid date, a value outside its domain
            return None
        return constants


class _Conjunct(NamedTuple):
    """A shape of conjuncts, each of which is one constraint on one attribute."""

    template: Template
    checks: list[_Reader]
    """Functions that check every constant."""
    cuts: int
    """Number of constants."""


_ONCE, _NEVER = 1, 2
"""A shape seen once; a shape that gets no template."""


class ShapeCache:
    """The known shapes of texts that are checked against one schema.

    `accept` is called with the expression of each text that is parsed, and may raise to reject it. Threads may share a
    cache: at worst, a race parses a shape twice.
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
        self._known: dict[str, Shape | int] = {}
        self._conjuncts: dict[str, _Conjunct | int] = {}

    def plan(self, text: str) -> tuple[Plan, Callable[[], Iterator[str]]]:
        """The plan of a text, and a function that gives its warnings.

        Raises ParseError or LimitError, each with its place, what `accept` raises, and what `plan_of` does.
        """
        if len(text) > self.limits.max_text_length or "\0" in text:
            return self._parsed(self._expression(text), text)
        key, constants = _cut(text)
        shape = self._known.get(key)
        if isinstance(shape, Shape):
            values = shape.read(constants)
            if values is None:
                return self._parsed(self._expression(text), text)
            self.hits += 1
            return plan_of(shape.template, values, self.limits), partial(shape.doubts, text, values)
        parts = _BETWEEN_CONJUNCTS.split(key)
        form = self._conjoined(parts, constants)
        if form is not None:
            self.hits += 1
            return FlatPlan(form), lambda: self._doubts(parser.parse(text, self.limits), text)
        expression = self._expression(text)
        self.misses += 1
        is_short = len(constants) <= _MOST_CONSTANTS
        if is_short and not self._keep_conjuncts(parts, expression) and self._is_second(self._known, key):
            self._known[key] = self._shape(expression, text) or _NEVER
        return self._parsed(expression, text)

    def _expression(self, text: str) -> Expression:
        expression = parser.parse(text, self.limits)
        self.accept(expression, text)
        return expression

    def _parsed(self, expression: Expression, text: str) -> tuple[Plan, Callable[[], Iterator[str]]]:
        constants = constants_of(expression)
        template = Template(expression, self.schema, constants)
        plan = plan_of(template, [constant.value for constant in constants], self.limits)
        return plan, lambda: self._doubts(expression, text)

    def _doubts(self, expression: Expression, text: str) -> Iterator[str]:
        return doubts_of(expression, self.schema)(text, [constant.value for constant in constants_of(expression)])

    def _conjoined(self, parts: list[str], constants: list[Value]) -> NormalForm | None:
        """The normal form of conjuncts of known shapes, if each is a single constraint; else None."""
        limits = self.limits
        if len(constants) > limits.max_values or not limits.max_nesting or not limits.max_conjunctions:
            return None
        filled: list[tuple[Template, Sequence[Value]]] = []
        first = 0
        for part in parts:
            conjunct = self._conjuncts.get(part)
            if not isinstance(conjunct, _Conjunct):
                return None
            values = constants[first : first + conjunct.cuts]
            try:
                for check in conjunct.checks:
                    values = [check(value) for value in values]
            except (ValueError, InvalidValueError):
                return None
            filled.append((conjunct.template, values))
            first += conjunct.cuts
        return conjoined(filled)

    def _keep_conjuncts(self, parts: list[str], expression: Expression) -> bool:
        """Remember the conjuncts of a text. Returns whether all of them can serve other texts."""
        items = expression.items if isinstance(expression, And) else (expression,)
        conjuncts = self._conjuncts
        if len(items) != len(parts):
            return False
        for part in parts:
            if part not in conjuncts and not _PLAIN.fullmatch(part):
                return False
        all_serve = True
        for part, item in zip(parts, items, strict=True):
            if self._is_second(conjuncts, part):
                conjuncts[part] = self._conjunct(item, part.count(_MARK)) or _NEVER
            all_serve &= conjuncts.get(part) != _NEVER
        return all_serve

    def _conjunct(self, item: Expression, cuts: int) -> _Conjunct | None:
        ((predicate, _),) = predicates(item)
        checks = _checks(predicate, self.schema)
        template = Template(item, self.schema)
        return None if checks is None or not template.is_constraint else _Conjunct(template, checks, cuts)

    def _shape(self, expression: Expression, text: str) -> Shape | None:
        reading = _reading(expression, text, self.schema)
        if reading is None:
            return None
        return Shape(Template(expression, self.schema), doubts_of(expression, self.schema), *reading)

    def _is_second(self, shapes: dict[str, Shape | int] | dict[str, _Conjunct | int], key: str) -> bool:
        """Whether a shape comes for the second time."""
        state = shapes.get(key)
        if state is None:
            if len(shapes) >= self.max_shapes:
                shapes.clear()  # rare, and cheaper than tracking use for every text
            shapes[key] = _ONCE
        return state == _ONCE


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
    """The value of a piece cut out of a text, or None if the piece stays in the shape."""
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
    """How the constants of other texts of this shape are read, or None if constants and cuts cannot be paired.

    The constants of the expression and the cuts of the text have the same order. A constant starts at its cut or, with
    a prefix such as a sign, between the previous cut and its own.
    """
    cuts = [(piece.start(), _constant(piece[0])) for piece in _CUT.finditer(text)]
    starts = [start for start, value in cuts if value is not None]
    values: list[Any] = [value for _, value in cuts if value is not None]
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
                checks = _checks(predicate, schema)
                if checks is None or (before and before not in _READERS):
                    return None
                read_by = [*([_READERS[before]] if before else []), *checks]
                if reduce(lambda value, read: read(value), read_by, values[cut]) != leaf.value:
                    return None  # as startswith(a, 'x') is a LIKE 'x%'
                readers.extend((place, read) for read in read_by)
                cut += 1
            place += 1
    return (tuple(booleans), tuple(readers)) if cut == len(starts) else None


def _checks(predicate: Predicate, schema: Schema | None) -> list[_Reader] | None:
    """Functions that check the constants of a predicate: escapes of its pattern, or the domains of its attributes.

    None if the predicate has no attribute, or has arithmetic or functions, of which constants are parts. None also if a
    constant is compared with another one, which no domain checks: `'S' BETWEEN size AND ''`.
    """
    if arithmetic_depth(predicate) or isinstance(predicate, RLike | XPathBoolean):
        return None
    if isinstance(predicate, Like):
        return [_pattern_reader(predicate.escape)] if isinstance(predicate.operand, Attribute) else None
    paths = [leaf.path for leaf in leaves(predicate) if isinstance(leaf, Attribute)]
    if not paths:
        return None
    domains = [] if schema is None else [schema.domain_of(path) for path in paths]
    checks: list[_Reader] = [domain.read for domain in domains if isinstance(domain, CodedDomain)]
    return None if checks and _compares_constants(predicate) else checks


def _compares_constants(predicate: Predicate) -> bool:
    return (
        isinstance(predicate, Between)
        and isinstance(predicate.operand, Constant)
        and (isinstance(predicate.low, Constant) or isinstance(predicate.high, Constant))
    )


def _pattern_reader(escape: str) -> _Reader:
    def read(pattern: str) -> str:
        like_pieces(pattern, escape)  # raises if an escape is stray
        return pattern

    return read
