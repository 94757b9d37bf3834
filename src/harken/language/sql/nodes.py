"""Parts of a text → nodes: each function makes one sort of node, or rejects parts that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

from harken.errors import HarkenError, LimitError
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
    Function,
    Holds,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Operand,
    RLike,
    Variable,
    XPathBoolean,
    like_pieces,
    offset_of,
)
from harken.language.functions import ALIASES, FUNCTIONS, Signature
from harken.language.sql.habits import NO_FUNCTIONS, function_hint
from harken.schema.paths import Path
from harken.schema.values import Kind, parse_date, parse_timestamp

_Made = TypeVar("_Made")
_SHORT = 256
"""The longest path that is shared, in characters."""
_LARGE = 19
"""Number of digits from which an integer may not fit in 64 bits."""


class RejectedError(Exception):
    """A rejected part. The parser, which has the text, makes a ParseError of it."""

    def __init__(self, message: str, at: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.at, self.hint = message, at, hint


class Null:
    """NULL as a value, which the language does not have."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class LargeNumber:
    """A number that may be too large, depending on its sign: -2^63 fits in 64 bits, 2^63 does not."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at


Part = Expression | Operand | Null | LargeNumber
_OPERANDS = frozenset((Attribute, Constant, Variable, Arithmetic, Function))
_PREDICATES = frozenset((Comparison, Between, In, Like, Not, IsNull))
_ONLY_CONSTANTS = {Constant}


# Operands


def attribute(path: Path, at: int) -> Attribute:
    return Attribute(_shared(path) if len(path) == 1 or sum(map(len, path)) <= _SHORT else path, at)


@lru_cache(maxsize=16_384)
def _shared(path: Path) -> Path:
    """Equal paths as one object: many shapes read the same attributes."""
    return path


def number(text: str, at: int) -> Constant | LargeNumber:
    if text.isdecimal():
        return Constant(int(text), at) if len(text) < _LARGE else LargeNumber(text, at)
    value = float(text)
    return Constant(value, at) if isfinite(value) else LargeNumber(text, at)


def string_constant(text: str, at: int) -> Constant:
    return Constant(text[1:-1].replace("''", "'"), at)


def day_or_time(is_day: bool, text: str, at: int, text_at: int) -> Constant:
    read: Callable[[str], Any] = parse_date if is_day else parse_timestamp
    return Constant(_made(text_at, read, string_constant(text, text_at).value), at)


def negative(part: Part, at: int) -> Operand:
    if isinstance(part, LargeNumber):
        return _large("-" + part.text, at)
    if isinstance(part, Constant) and part.kind is Kind.NUMBER:
        return _made(at, Constant, -part.value, at)  # type: ignore[operator]
    return Arithmetic(Constant(0), "-", _number(part))


def arithmetic(left: Part, operator: str, right: Part) -> Operand:
    return Arithmetic(_number(left), operator, _number(right))


def call(name: str, arguments: Sequence[Part], at: int) -> Part:
    """A function of the language or, under any other name, a predicate of an operator."""
    small = name.lower()
    small = ALIASES.get(small, small)
    signature = FUNCTIONS.get(small)
    if signature is not None:
        return _function(small, signature, arguments, at)
    around = _SEARCHES.get(small)
    if around is not None:
        subject, pattern = _pair(small, arguments, at)
        return Like(compared(subject), _escaped(_string(pattern, f"{small} takes a string in quotes"), *around))
    if small in _REGULAR:
        return regular(*_pair(small, arguments, at))
    if small == "xpath_boolean":
        return xpath_boolean(*_pair(small, arguments, at))
    checked = [operand(argument) for argument in arguments]
    for argument in checked:
        if isinstance(argument, Arithmetic | Function):
            raise RejectedError("an operator takes attributes, constants and variables", offset_of(argument))
    return Call(name, tuple(checked), at)  # type: ignore[arg-type]


_SEARCHES: dict[str, tuple[str, str]] = {"startswith": ("", "%"), "endswith": ("%", ""), "contains": ("%", "%")}
"""Functions parsed as LIKE, with what stands before and after the string in the pattern."""
_REGULAR = frozenset(("rlike", "regexp", "regexp_like"))
"""Functions parsed as RLIKE."""


def _pair(name: str, arguments: Sequence[Part], at: int) -> tuple[Part, Part]:
    if len(arguments) != 2:
        raise RejectedError(f"`{name}` takes 2 arguments, not {len(arguments)}", at)
    return arguments[0], arguments[1]


def _escaped(searched: Constant, before: str, after: str) -> Constant:
    """A pattern for a plain string."""
    plain = str(searched.value).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return Constant(before + plain + after, searched.at)


def _function(name: str, signature: Signature, arguments: Sequence[Part], at: int) -> Function:
    least, most = signature.least, signature.most
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        noun = "argument" if wanted == "1" else "arguments"
        raise RejectedError(f"`{name}` takes {wanted} {noun}, not {len(arguments)}", at)
    checked = tuple([operand(argument) for argument in arguments])
    for place, argument in enumerate(checked):
        parameter = signature.parameter(place)
        kind = kind_of(argument)
        named = f"the {parameter.name} that `{name}` takes is"
        if parameter.is_constant and not isinstance(argument, Constant):
            raise RejectedError(f"{named} written in the text", offset_of(argument))
        if parameter.is_attribute and not isinstance(argument, Attribute):
            raise RejectedError(f"{named} an attribute", offset_of(argument))
        if kind is not None and kind not in parameter.kinds:
            wanted = " or ".join(sorted(parameter.kinds))
            raise RejectedError(f"{named} a {wanted}, and this is a {kind}", offset_of(argument))
    if all(map(_is_constant, checked)):
        raise RejectedError("a function of constants alone", at, "write the result")
    return Function(name, checked, at)


def kind_of(part: Operand) -> Kind | None:
    """The kind of an operand, if the text determines it."""
    if isinstance(part, Constant):
        return part.kind
    if isinstance(part, Arithmetic):
        return Kind.NUMBER
    if isinstance(part, Function):
        signature = FUNCTIONS[part.name]
        if signature.result is not None:
            return signature.result
        kinds = (argument.kind for argument in part.arguments if isinstance(argument, Constant))
        return next(kinds, None)
    return None


def operand(part: Part) -> Operand:
    """The part as an operand."""
    if type(part) in _OPERANDS:
        return part  # type: ignore[return-value]
    if isinstance(part, LargeNumber):
        return _large(part.text, part.at)
    if isinstance(part, Null):
        raise RejectedError("NULL is not a value to compare with", part.at, "write attribute IS NULL")
    if isinstance(part, Call):
        hint = function_hint(part.name) or NO_FUNCTIONS
        raise RejectedError(f"`{part.name}(…)` is not part of the language", part.at, hint)
    raise RejectedError("a value is expected here, not a condition", offset_of(part), "join conditions with AND or OR")


def compared(part: Part) -> Operand:
    """The part as an operand of a predicate. Rejects arithmetic over constants alone."""
    if type(part) is Attribute or type(part) is Constant:  # fast path
        return part
    side = operand(part)
    if isinstance(side, Arithmetic) and _is_constant(side):
        raise RejectedError("arithmetic over constants alone", offset_of(side), "write the result")
    return side


def _is_constant(part: Operand) -> bool:
    """Whether an operand has constants only. `_function` rejects such functions, so that none comes here."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Arithmetic):
            waiting += (node.left, node.right)
        elif not isinstance(node, Constant):
            return False
    return True


# Conditions


def condition(part: Part) -> Expression:
    """The part as a condition: an attribute, a constant or a function is one if it is boolean."""
    if type(part) in _PREDICATES:  # fast path
        return part  # type: ignore[return-value]
    if isinstance(part, Attribute):
        return Holds(part)
    if isinstance(part, Constant | Function) and kind_of(part) in (Kind.BOOLEAN, None):
        return Holds(part)
    if isinstance(part, Constant | Function | Variable | Arithmetic | LargeNumber):
        raise RejectedError(
            "a condition is expected here, not a value",
            offset_of(operand(part)),
            "compare it with an attribute; for one of several values write x IN ('a', 'b')",
        )
    if isinstance(part, Null):
        raise RejectedError("NULL is not a condition", part.at, "write attribute IS NULL")
    return part


def comparison(left: Part, operator: str, right: Part) -> Expression:
    symbol = "<>" if operator == "!=" else operator
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Null):
            wanted = f"{_named(other)} IS {'NOT ' if symbol == '<>' else ''}NULL"
            raise RejectedError(f"{symbol} NULL is never true", side.at, f"write {wanted}")
    return Comparison(compared(left), symbol, compared(right))


def between(part: Part, low: Part, high: Part) -> Expression:
    return Between(compared(part), compared(low), compared(high))


def listed(part: Part, values: Sequence[Part], is_negated: bool) -> Expression:
    checked = compared(part)
    if not values:
        raise RejectedError("IN needs at least one value", offset_of(checked))
    if set(map(type, values)) == _ONLY_CONSTANTS:
        return In(checked, tuple(values))  # type: ignore[arg-type]
    for value in values:
        if isinstance(value, Null):
            raise _null_in_list(checked, value, is_negated, is_alone=len(values) == 1)
    return In(checked, tuple([_constant(value, "IN takes constants") for value in values]))


def like(part: Part, pattern: Part, escape: Part | None = None, folds: bool = False) -> Expression:
    """LIKE or, if it folds case, ILIKE."""
    word = "ILIKE" if folds else "LIKE"
    side, text = compared(part), _pattern(part, pattern, word)
    sign = DEFAULT_ESCAPE if escape is None else _escape(_string(escape, _ESCAPE_RULE))
    try:
        if not folds:
            return Like(side, text, sign)
        like_pieces(str(text.value), sign)
    except EscapeError as problem:
        raise _stray_escape(problem, text, sign) from None
    if sign != sign.lower():
        raise RejectedError("ILIKE takes no capital letter for its escape", offset_of(side))
    return Like(Function("lower", (side,), offset_of(side)), Constant(str(text.value).lower(), text.at), sign)


def regular(part: Part, pattern: Part) -> Expression:
    """RLIKE."""
    text = _pattern(part, pattern, "RLIKE")
    problem = _regular_problem(str(text.value))
    if problem is not None:
        message, index = problem
        raise RejectedError(message, _inside(text, index), "a regular expression is one of RE2's syntax")
    return RLike(compared(part), text)


def xpath_boolean(part: Part, text: Part) -> Expression:
    """An XPath expression about a document."""
    from harken.language.xpath.parser import parse as parse_xpath

    document = _attribute(part, "the document that `xpath_boolean` reads is an attribute")
    xpath = operand(text)
    if not isinstance(xpath, Constant) or not isinstance(xpath.value, str):
        raise RejectedError("the XPath that `xpath_boolean` takes is a string written in the text", offset_of(xpath))
    try:
        parse_xpath(xpath.value)
    except LimitError:
        pass  # the front end applies the configured limits
    except HarkenError as problem:
        place = problem.place
        index = 0 if place is None or place.column is None or place.line > 1 else place.column - 1
        raise RejectedError(f"in the XPath: {problem.message}", _inside(xpath, index), problem.hint) from None
    return XPathBoolean(document, xpath)


def is_null(part: Part) -> Expression:
    return IsNull(_attribute(part, "IS NULL asks about an attribute"))


def is_truth(part: Part, wanted: bool) -> Expression:
    return IsTruth(condition(part), wanted)


def contains(part: Part, value: Part) -> Expression:
    subject = _attribute(part, "CONTAINS asks about an attribute")
    if isinstance(value, Null):
        hint = f"write {subject.name} IS NULL to ask whether it has no value at all"
        raise RejectedError("a set of values never has NULL in it", value.at, hint)
    return Contains(subject, _constant(value, "CONTAINS takes a constant"))


# What parts have to be


def _number(part: Part) -> Operand:
    """The part as one side of arithmetic."""
    side = operand(part)
    if kind_of(side) not in (Kind.NUMBER, None):
        raise RejectedError("arithmetic is over numbers", offset_of(side))
    return side


def _large(text: str, at: int) -> Constant:
    if not text.lstrip("-").isdecimal():
        return _made(at, Constant, float(text), at)
    if len(text.lstrip("-0")) > _LARGE:  # int() of a long text is slow, and past 4,300 digits an error
        raise RejectedError("the number does not fit in 64 bits", at, "write it with a point to make it a float")
    return _made(at, Constant, int(text), at)


def _attribute(part: Part, message: str) -> Attribute:
    if isinstance(part, Attribute):
        return part
    raise RejectedError(message, part.at if isinstance(part, Null) else offset_of(operand(part)))


def _constant(part: Part, message: str) -> Constant:
    value = operand(part)
    if isinstance(value, Constant):
        return value
    raise RejectedError(message, offset_of(value))


def _string(part: Part, message: str) -> Constant:
    constant = _constant(part, message)
    if constant.kind is not Kind.STRING:
        raise RejectedError(message, constant.at)
    return constant


def _pattern(part: Part, pattern: Part, word: str) -> Constant:
    if isinstance(pattern, Null):
        raise RejectedError(f"{word} NULL is never true", pattern.at, f"write {_named(part)} IS NULL")
    return _string(pattern, f"{word} takes a pattern in quotes")


_ESCAPE_RULE = "ESCAPE takes one character in quotes"


def _escape(constant: Constant) -> str:
    sign = str(constant.value)
    if len(sign) != 1:
        raise RejectedError(_ESCAPE_RULE, constant.at)
    return sign


def _made(at: int, make: Callable[..., _Made], *arguments: Any) -> _Made:
    """The result of `make`. Its ValueError or TypeError becomes a RejectedError at an offset."""
    try:
        return make(*arguments)
    except (ValueError, TypeError) as problem:
        raise RejectedError(str(problem), at) from None


# Errors


def _named(part: Part) -> str:
    """The name of this part of a comparison in a hint."""
    return part.name if isinstance(part, Attribute) else "attribute"


def _null_in_list(part: Operand, null: Null, is_negated: bool, is_alone: bool) -> RejectedError:
    name = _named(part)
    wanted = f"write {name} IS {'NOT ' if is_negated else ''}NULL"
    if not is_negated:
        hint = wanted if is_alone else f"write {name} IN (…) OR {name} IS NULL"
        return RejectedError("NULL in IN is never equal to anything", null.at, hint)
    hint = wanted if is_alone else f"leave NULL out: NOT IN is true only where {name} has a value"
    return RejectedError("NOT IN with NULL in its list is never true", null.at, hint)


def _stray_escape(problem: EscapeError, pattern: Constant, escape: str) -> RejectedError:
    """The error for a stray escape, at its offset in the text."""
    sign = "a backslash" if escape == DEFAULT_ESCAPE else f"{escape} itself"
    hint = f"in this pattern {sign} is written twice: {escape * 2}"
    return RejectedError(str(problem), _inside(pattern, problem.index), hint)


def _inside(pattern: Constant, index: int) -> int:
    """The offset of a character of a pattern: in the text a quote is written twice."""
    before = str(pattern.value)[:index]
    return pattern.at + 1 + len(before) + before.count("'")


@lru_cache(maxsize=4_096)
def _regular_problem(pattern: str) -> tuple[str, int] | None:
    """RE2's error about a regular expression, and the index where it is; None if there is none."""
    import re2  # imported on first use

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as problem:
        reason, part = problem.args[0], b""
        if isinstance(reason, bytes):
            reason, _, part = reason.partition(b": ")
        shown = part.decode(errors="replace")
        message = f"the regular expression cannot be read: {reason.decode(errors='replace')}"
        return f"{message}, at `{shown}`" if shown else message, max(pattern.find(shown), 0)
    except UnicodeEncodeError as problem:
        return "the regular expression is not text", problem.start
    return None
