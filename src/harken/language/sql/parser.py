"""Text → AST. The grammar is in sql.lark; here its rules become nodes, and what it rejects an error with a place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeVar

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from harken.errors import LimitError, ParseError
from harken.language.ast import (
    DEFAULT_ESCAPE,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    EscapeError,
    Expression,
    Holds,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Variable,
    arithmetic_depth,
    conjunction,
    disjunction,
    leaves,
    offset_of,
    predicates,
)
from harken.language.sql.habits import NO_ARITHMETIC, NO_FUNCTIONS, function_hint, name_hint
from harken.language.sql.syntax_errors import KEYWORDS, located, unexpected_character, unexpected_token
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema.paths import Path
from harken.schema.values import Kind, parse_date, parse_timestamp

_Made = TypeVar("_Made")
_SHORT = 256
"""Characters of a path that others may share."""


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """The expression that the text stands for. Raises ParseError or LimitError, each with its place."""
    if len(text) > limits.max_text_length:
        message = f"the text has {len(text):,} characters, more than {limits.max_text_length:,}"
        raise LimitError(message, limit="max_text_length").at(*located(text, limits.max_text_length))
    try:
        found: Any = _parser().parse(text)
        expression = _condition(found)
    except UnexpectedToken as problem:
        raise unexpected_token(problem, text) from None
    except UnexpectedCharacters as problem:
        raise unexpected_character(problem, text) from None
    except _RefusedError as refusal:
        hint = name_hint(text, refusal.at) or refusal.hint
        raise ParseError(refusal.message, hint=hint).at(*located(text, refusal.at)) from None
    _check_limits(expression, text, limits)
    return expression


class _RefusedError(Exception):
    """What was parsed makes no sense. Becomes a ParseError as soon as the text is at hand."""

    def __init__(self, message: str, at: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.at, self.hint = message, at, hint


class _Null:
    """NULL standing as a value, which the language has no use for."""

    def __init__(self, at: int) -> None:
        self.at = at


_Part = Expression | Operand | Token | _Null  # a Token is a NUMBER


def _recognise_keyword(token: Token) -> Token:
    if token.isascii():  # the capital of a dotless i is an I
        token.type = KEYWORDS.get(token.upper(), "NAME")
    return token


@cache
def _parser() -> Lark:
    return Lark.open(
        "sql.lark",
        rel_to=__file__,
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        transformer=_Nodes(),
        lexer_callbacks={"NAME": _recognise_keyword},
    )


@v_args(inline=True)
class _Nodes(Transformer[Token, Any]):
    """A method a rule of the grammar. It keeps no state, so that threads can share the parser."""

    def disjunction(self, *items: _Part) -> Expression:
        return disjunction([_condition(item) for item in items])

    def conjunction(self, *items: _Part) -> Expression:
        return conjunction([_condition(item) for item in items])

    def negation(self, _not: Token, item: _Part) -> Expression:
        return Not(_condition(item))

    def comparison(self, left: _Part, operator: Token, right: _Part) -> Expression:
        symbol = "<>" if operator == "!=" else str(operator)
        for side, other in ((left, right), (right, left)):
            if isinstance(side, _Null):
                wanted = f"{_named(other)} IS {'NOT ' if symbol == '<>' else ''}NULL"
                raise _RefusedError(f"{symbol} NULL is never true", side.at, f"write {wanted}")
        return Comparison(_compared(left), symbol, _compared(right))

    def between(self, operand: _Part, negated: Token | None, low: _Part, high: _Part) -> Expression:
        return _negated_if(negated, Between(_compared(operand), _compared(low), _compared(high)))

    def in_values(self, operand: _Part, negated: Token | None, values: list[_Part] | None) -> Expression:
        checked = _compared(operand)
        if values is None:
            raise _RefusedError("IN needs at least one value", offset_of(checked))
        for value in values:
            if isinstance(value, _Null):
                raise _null_in_list(checked, value, is_negated=negated is not None, is_alone=len(values) == 1)
        return _negated_if(negated, In(checked, tuple(_constant(value, "IN takes constants") for value in values)))

    def like(self, operand: _Part, negated: Token | None, pattern: _Part, escape: _Part | None) -> Expression:
        compared = _compared(operand)
        if isinstance(pattern, _Null):
            raise _RefusedError("LIKE NULL is never true", pattern.at, f"write {_named(compared)} IS NULL")
        text = _string(pattern, "LIKE takes a pattern in quotes")
        sign = DEFAULT_ESCAPE if escape is None else _escape(_string(escape, _ESCAPE_RULE))
        try:
            return _negated_if(negated, Like(compared, text, sign))
        except EscapeError as problem:
            raise _stray_escape(problem, text, sign) from None

    def is_null(self, operand: _Part, negated: Token | None, _null: Token) -> Expression:
        return _negated_if(negated, IsNull(_attribute(operand, "IS NULL asks about an attribute")))

    def contains(self, operand: _Part, negated: Token | None, value: _Part) -> Expression:
        attribute = _attribute(operand, "CONTAINS asks about an attribute")
        if isinstance(value, _Null):
            hint = f"write {attribute.name} IS NULL to ask whether it has no value at all"
            raise _RefusedError("a set of values never has NULL in it", value.at, hint)
        return _negated_if(negated, Contains(attribute, _constant(value, "CONTAINS takes a constant")))

    def values(self, *values: _Part) -> list[_Part]:
        return list(values)

    def arithmetic(self, left: _Part, operator: Token, right: _Part) -> Operand:
        return Arithmetic(_operand(left), str(operator), _operand(right))

    def negative(self, minus: Token, operand: _Part) -> Operand:
        at = minus.start_pos or 0
        if isinstance(operand, Token):
            return _number("-" + operand, at)
        if isinstance(operand, Constant) and operand.kind is Kind.NUMBER:
            return _made(at, Constant, -operand.value, at)  # type: ignore[operator]
        return Arithmetic(Constant(0), "-", _operand(operand))

    def path(self, *names: Token) -> Attribute:
        path = tuple(map(_key, names))
        is_short = sum(map(len, path)) <= _SHORT
        return Attribute(_shared(path) if is_short else path, names[0].start_pos or 0)

    def name(self, token: Token) -> Token:
        return token

    def call(self, name: Token, arguments: list[_Part] | None) -> Expression:
        checked = [_operand(argument) for argument in arguments or []]
        for argument in checked:
            if isinstance(argument, Arithmetic):
                raise _RefusedError("an operator takes attributes, constants and variables", offset_of(argument))
        return Call(_key(name), tuple(checked), name.start_pos or 0)  # type: ignore[arg-type]

    def variable(self, token: Token) -> Operand:
        return Variable(token[1:], token.start_pos or 0)

    def number(self, token: Token) -> Token:
        return token  # it stays a token until its sign is known: -2^63 fits in 64 bits, 2^63 does not

    def string(self, token: Token) -> Constant:
        return _made(token.start_pos or 0, Constant, _unquoted(token), token.start_pos or 0)

    def typed(self, keyword: Token, token: Token) -> Constant:
        at = keyword.start_pos or 0
        read: Callable[[str], Any] = parse_date if keyword.type == "DATE" else parse_timestamp
        return Constant(_made(token.start_pos or 0, read, _unquoted(token)), at)

    def true(self, token: Token) -> Constant:
        return Constant(True, token.start_pos or 0)

    def false(self, token: Token) -> Constant:
        return Constant(False, token.start_pos or 0)

    def null(self, token: Token) -> _Null:
        return _Null(token.start_pos or 0)


def _condition(part: _Part) -> Expression:
    """The part as a condition: an attribute or a constant is one if it is boolean."""
    if isinstance(part, Attribute):
        return Holds(part)
    if isinstance(part, Constant) and part.kind is Kind.BOOLEAN:
        return Holds(part)
    if isinstance(part, Token | Constant | Variable | Arithmetic):
        raise _RefusedError(
            "a condition is expected here, not a value",
            offset_of(_operand(part)),
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        )
    if isinstance(part, _Null):
        raise _RefusedError("NULL is not a condition", part.at, "write attribute IS NULL")
    return part


def _operand(part: _Part) -> Operand:
    """The part as something that can be compared."""
    if isinstance(part, Token):
        return _number(part, part.start_pos or 0)
    if isinstance(part, _Null):
        raise _RefusedError("NULL is not a value to compare with", part.at, "write attribute IS NULL")
    if isinstance(part, Attribute | Constant | Variable | Arithmetic):
        return part
    if isinstance(part, Call):
        hint = function_hint(part.name) or NO_FUNCTIONS
        raise _RefusedError(f"`{part.name}(…)` is not part of the language", part.at, hint)
    raise _RefusedError("a value is expected here, not a condition", offset_of(part), "join conditions with AND or OR")


def _compared(part: _Part) -> Operand:
    """The part as one side of a predicate, where arithmetic has to be over variables and numbers."""
    operand = _operand(part)
    if isinstance(operand, Arithmetic):
        _check_arithmetic(operand)
    return operand


def _check_arithmetic(part: Arithmetic) -> None:
    found = list(leaves(part))
    for leaf in found:
        if isinstance(leaf, Attribute):
            message = "arithmetic is over variables and numbers, not over attributes"
            raise _RefusedError(message, leaf.at, NO_ARITHMETIC)
        if isinstance(leaf, Constant) and leaf.kind is not Kind.NUMBER:
            raise _RefusedError("arithmetic is over variables and numbers", leaf.at)
    if not any(isinstance(leaf, Variable) for leaf in found):
        raise _RefusedError("arithmetic over constants alone", offset_of(part), "write the result")


def _attribute(part: _Part, message: str) -> Attribute:
    if isinstance(part, Attribute):
        return part
    raise _RefusedError(message, part.at if isinstance(part, _Null) else offset_of(_operand(part)))


def _named(part: _Part) -> str:
    """What a hint calls this part of a comparison."""
    return part.name if isinstance(part, Attribute) else "attribute"


def _null_in_list(operand: Operand, null: _Null, is_negated: bool, is_alone: bool) -> _RefusedError:
    name = _named(operand)
    wanted = f"write {name} IS {'NOT ' if is_negated else ''}NULL"
    if not is_negated:
        hint = wanted if is_alone else f"write {name} IN (…) OR {name} IS NULL"
        return _RefusedError("NULL in IN is never equal to anything", null.at, hint)
    hint = wanted if is_alone else f"leave NULL out: NOT IN is true only where {name} has a value"
    return _RefusedError("NOT IN with NULL in its list is never true", null.at, hint)


def _stray_escape(problem: EscapeError, pattern: Constant, escape: str) -> _RefusedError:
    """The refusal of an escape, at its place in the text, where a quote inside the pattern is written twice."""
    before = str(pattern.value)[: problem.index]
    sign = "a backslash" if escape == DEFAULT_ESCAPE else f"{escape} itself"
    hint = f"in this pattern {sign} is written twice: {escape * 2}"
    return _RefusedError(str(problem), pattern.at + 1 + len(before) + before.count("'"), hint)


def _constant(part: _Part, message: str) -> Constant:
    operand = _operand(part)
    if isinstance(operand, Constant):
        return operand
    raise _RefusedError(message, offset_of(operand))


_ESCAPE_RULE = "ESCAPE takes one character in quotes"


def _escape(constant: Constant) -> str:
    sign = str(constant.value)
    if len(sign) != 1:
        raise _RefusedError(_ESCAPE_RULE, constant.at)
    return sign


def _string(part: _Part, message: str) -> Constant:
    constant = _constant(part, message)
    if constant.kind is not Kind.STRING:
        raise _RefusedError(message, constant.at)
    return constant


def _number(text: str, at: int) -> Constant:
    if not text.lstrip("-").isdecimal():
        return _made(at, Constant, float(text), at)
    if len(text.lstrip("-0")) > 19:  # int() of a long text is slow, and past 4,300 digits an error
        raise _RefusedError("the number does not fit in 64 bits", at, "write it with a point to make it a float")
    return _made(at, Constant, int(text), at)


def _made(at: int, make: Callable[..., _Made], *arguments: Any) -> _Made:
    """What `make` makes, with its complaint at the given offset."""
    try:
        return make(*arguments)
    except (ValueError, TypeError) as problem:
        raise _RefusedError(str(problem), at) from None


def _negated_if(negated: Token | None, expression: Expression) -> Expression:
    return expression if negated is None else Not(expression)


def _key(token: Token) -> str:
    return token[1:-1].replace("``", "`") if token.type == "QUOTED_NAME" else str(token)


@lru_cache(maxsize=4_096)
def _shared(path: Path) -> Path:
    """Equal paths as one object: subscriptions of many shapes ask for the same attributes."""
    return path


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _check_limits(expression: Expression, text: str, limits: Limits) -> None:
    values = 0
    for predicate, depth in predicates(expression):
        if depth + arithmetic_depth(predicate) > limits.max_nesting:
            message = f"the expression is nested more than {limits.max_nesting} deep"
            raise LimitError(message, limit="max_nesting").at(*located(text, offset_of(predicate)))
        for leaf in leaves(predicate):
            values += isinstance(leaf, Constant)
            if values > limits.max_values:
                message = f"the text has more than {limits.max_values:,} constants"
                raise LimitError(message, limit="max_values").at(*located(text, leaf.at))
