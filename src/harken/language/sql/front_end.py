"""SQL as one of the languages of subscriptions: parse, check against the schema, normalise, warn."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from harken.errors import ContradictionError, HarkenError, LimitError
from harken.language.ast import (
    And,
    Attribute,
    Comparison,
    Constant,
    Expression,
    Or,
    XPathBoolean,
    leaves,
    predicates,
)
from harken.language.compiled import Compiled
from harken.language.places import located
from harken.language.sql import parser
from harken.language.sql.doubts import may_be_doubtful
from harken.language.sql.operator_plans import FaultAt, has_operators, plan_operators
from harken.language.sql.printer import print_expression
from harken.language.sql.shapes import ShapeCache
from harken.language.sql.type_check import check
from harken.language.xpath.parser import parse as parse_xpath
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema
from harken.schema.faults import first_of
from harken.schema.paths import Path
from harken.schema.signatures import NO_SIGNATURES, Signatures
from harken.schema.values import Value, show

# For texts that have passed the limits.
_NO_LIMITS = Limits(max_text_length=sys.maxsize, max_nesting=sys.maxsize, max_values=sys.maxsize)
_ALWAYS_TRUE = "it is always true: every event will match"


class SqlFrontEnd:
    """The front end of SQL."""

    def __init__(
        self,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        signatures: Signatures = NO_SIGNATURES,
    ) -> None:
        self.schema = schema
        self.limits = limits
        self._signatures = signatures
        self._shapes = ShapeCache(schema, limits, self._accept)
        self._may_call = re.compile(rf"\?|\b(?:{'|'.join(map(re.escape, signatures))})\b") if signatures else None
        self._tests: SqlFrontEnd | None = None
        """Compiles tests of variables, which no schema declares."""

    def compile(self, text: str) -> Compiled:
        if self._may_call is not None and self._may_call.search(text):
            expression = parser.parse(text, self.limits)
            if has_operators(expression):
                return self._compile_operators(text, expression)
        try:
            plan, doubts = self._shapes.plan(text)
        except RecursionError:  # where max_nesting exceeds Python's own limit
            message = "the expression is nested too deeply"
            raise LimitError(message, limit="max_nesting").at(*located(text, 0)) from None
        except ContradictionError as error:
            raise self._placed(error, text) from None
        warnings: tuple[str, ...] = (_ALWAYS_TRUE,) if plan.always else ()
        if may_be_doubtful(text, self.schema):
            warnings += tuple(doubts())
        return Compiled(text, "sql", plan, warnings)

    def faults(self, text: str) -> list[HarkenError]:
        faults: list[HarkenError] = [*check(parser.parse(text, self.limits), self.schema, text, self._signatures)]
        if not faults:
            self.compile(text)
        return faults

    def print(self, text: str, dialect: str) -> str:
        return print_expression(parser.parse(text, self.limits), dialect)

    def stats(self) -> Mapping[str, Any]:
        return {"shapes": {"hits": self._shapes.hits, "misses": self._shapes.misses}}

    def parse(self, text: str) -> Expression:
        """The expression of a text that was compiled before."""
        return parser.parse(text, _NO_LIMITS)

    def _compile_operators(self, text: str, expression: Expression) -> Compiled:
        """Compile a text with operators. Its plain parts are compiled as texts of their own."""
        self._accept(expression, text)
        if self._tests is None:
            self._tests = SqlFrontEnd(None, self.limits)
        tests = self._tests
        try:
            plan = plan_operators(
                *(expression, self.schema, self.limits),
                lambda part: self.compile(print_expression(part)),
                lambda part: tests.compile(print_expression(part)),
            )
        except FaultAt as fault:
            raise fault.error.at(*located(text, fault.at)) from None
        except (ContradictionError, LimitError) as error:
            raise error.at(*located(text, 0)) from None
        return Compiled(text, "sql", plan, (_ALWAYS_TRUE,) if plan.always else ())

    def _accept(self, expression: Expression, text: str) -> None:
        if self.schema is None and "(" not in text and "?" not in text:
            return  # without a schema only operators, functions and variables may be at fault
        faults = check(expression, self.schema, text, self._signatures)
        if faults:
            raise first_of(faults)
        for predicate, _ in predicates(expression):
            if isinstance(predicate, XPathBoolean):
                self._accept_xpath(predicate.xpath, text)

    def _accept_xpath(self, xpath: Constant, text: str) -> None:
        """Raise LimitError if an XPath inside the text is beyond a limit."""
        try:
            parse_xpath(str(xpath.value), self.limits)
        except HarkenError as error:
            raise error.at(*located(text, xpath.at)) from None

    def _placed(self, error: ContradictionError, text: str) -> HarkenError:
        """The error at the attribute that it is about, or at the start of the text."""
        expression = self.parse(text)
        operands = (leaf for each, _ in predicates(expression) for leaf in leaves(each))
        attribute = next((leaf for leaf in operands if isinstance(leaf, Attribute) and leaf.path == error.path), None)
        values = [] if attribute is None else _equal_to_several(expression, attribute.path)
        if attribute is not None and len(values) > 1:
            wanted = " AND ".join(f"{attribute.name} CONTAINS {show(value)}" for value in values[:2])
            error.hint = f"{error.hint}; where it may have several values, write {wanted}"
        return error.at(*located(text, 0 if attribute is None else attribute.at))


def _equal_to_several(expression: Expression, path: Path) -> list[Value]:
    """The distinct values that one AND compares an attribute with by =; [] if no AND has two."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And):
            values = dict.fromkeys(value for item in node.items for value in _equal_to(item, path))
            if len(values) > 1:
                return list(values)
        if isinstance(node, And | Or):
            waiting.extend(reversed(node.items))
    return []


def _equal_to(expression: Expression, path: Path) -> Iterator[Value]:
    """The constant that an expression compares an attribute with by =, if it is such a comparison."""
    if isinstance(expression, Comparison) and expression.operator == "=":
        for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
            if isinstance(side, Attribute) and side.path == path and isinstance(other, Constant):
                yield other.value
