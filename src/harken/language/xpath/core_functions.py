"""XPath's core function library: what each function takes and returns, and those of strings and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from harken.language.xpath.ast import (
    AxisPath,
    Calculation,
    DocumentRoot,
    FilteredNodes,
    FunctionCall,
    Location,
    Minus,
    NodeUnion,
    Value,
)
from harken.language.xpath.numbers import number_of

BLANKS = " \t\r\n"


class ValueKind(StrEnum):
    """The four types of XPath 1.0."""

    NODES = "nodes"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"


class CoreFunction(NamedTuple):
    """The signature of a function."""

    result: ValueKind
    arguments: tuple[ValueKind, ...] = ()
    """The kinds that arguments are converted to."""
    required: int = 0
    is_variadic: bool = False
    """Whether the last argument may be repeated."""
    needs_nodes: bool = False
    """Whether arguments have to be nodes: nothing converts to them."""
    of_context: bool = False
    """Whether a missing argument is the context node."""

    def takes(self, count: int) -> bool:
        """Whether it can be called with this many arguments."""
        return self.required <= count and (self.is_variadic or count <= len(self.arguments))


_N, _S, _B = ValueKind.NUMBER, ValueKind.STRING, ValueKind.BOOLEAN
_NODES = ValueKind.NODES

CORE_FUNCTIONS: dict[str, CoreFunction] = {
    "last": CoreFunction(_N),
    "position": CoreFunction(_N),
    "count": CoreFunction(_N, (_NODES,), 1, needs_nodes=True),
    "sum": CoreFunction(_N, (_NODES,), 1, needs_nodes=True),
    "local-name": CoreFunction(_S, (_NODES,), needs_nodes=True, of_context=True),
    "namespace-uri": CoreFunction(_S, (_NODES,), needs_nodes=True, of_context=True),
    "name": CoreFunction(_S, (_NODES,), needs_nodes=True, of_context=True),
    "string": CoreFunction(_S, (_S,), of_context=True),
    "concat": CoreFunction(_S, (_S, _S, _S), 2, is_variadic=True),
    "starts-with": CoreFunction(_B, (_S, _S), 2),
    "contains": CoreFunction(_B, (_S, _S), 2),
    "substring-before": CoreFunction(_S, (_S, _S), 2),
    "substring-after": CoreFunction(_S, (_S, _S), 2),
    "substring": CoreFunction(_S, (_S, _N, _N), 2),
    "string-length": CoreFunction(_N, (_S,), of_context=True),
    "normalize-space": CoreFunction(_S, (_S,), of_context=True),
    "translate": CoreFunction(_S, (_S, _S, _S), 3),
    "boolean": CoreFunction(_B, (_B,), 1),
    "not": CoreFunction(_B, (_B,), 1),
    "true": CoreFunction(_B),
    "false": CoreFunction(_B),
    "lang": CoreFunction(_B, (_S,), 1),
    "number": CoreFunction(_N, (_N,), of_context=True),
    "floor": CoreFunction(_N, (_N,), 1),
    "ceiling": CoreFunction(_N, (_N,), 1),
    "round": CoreFunction(_N, (_N,), 1),
}


def kind_of(value: Value) -> ValueKind:
    """The type of a value. Every expression without variables has one."""
    match value:
        case Location() | DocumentRoot() | AxisPath() | FilteredNodes() | NodeUnion():
            return ValueKind.NODES
        case str():
            return ValueKind.STRING
        case float() | Calculation() | Minus():
            return ValueKind.NUMBER
        case FunctionCall(name=name):
            return CORE_FUNCTIONS[name].result
        case _:
            return ValueKind.BOOLEAN


def string_of(value: str | float | bool) -> str:
    """`string()` of a value that is not nodes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return format(Decimal(repr(value)), "f").removesuffix(".0") if value else "0"


def to_number(value: str | float | bool) -> float:
    """`number()` of a value that is not nodes."""
    return number_of(value) if isinstance(value, str) else float(value)


def to_boolean(value: str | float | bool) -> bool:
    """`boolean()` of a value that is not nodes."""
    return bool(value) and value == value


def rounded(value: float) -> float:
    """The closest integer; of two, the greater one. -0 stays, and so does the sign of what rounds to 0."""
    if math.isnan(value) or math.isinf(value):
        return value
    below = math.floor(value)
    whole = float(below + 1 if value - below >= 0.5 else below)
    return math.copysign(whole, value) if whole == 0 else whole


def floored(value: float) -> float:
    """The largest integer that is not greater."""
    return value if math.isnan(value) or math.isinf(value) or value == 0 else float(math.floor(value))


def ceiled(value: float) -> float:
    """The smallest integer that is not less. What lies between -1 and 0 becomes -0."""
    if math.isnan(value) or math.isinf(value):
        return value
    return math.copysign(float(math.ceil(value)), value)


def substring(text: str, start: float, length: float | None = None) -> str:
    """The characters whose positions, from 1, are at least round(start) and less than that plus round(length)."""
    first = rounded(start)
    behind = math.inf if length is None else first + rounded(length)
    if math.isnan(first) or math.isnan(behind) or first == math.inf or behind <= 1:
        return ""
    begin = 0 if first <= 1 else int(first) - 1
    return text[begin:] if behind == math.inf else text[begin : max(begin, int(behind) - 1)]


def translated_text(text: str, old: str, new: str) -> str:
    """The text with each character of `old` replaced by the one at its place in `new`, or removed."""
    table: dict[int, int | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), ord(new[place]) if place < len(new) else None)
    return text.translate(table)


def normalized(text: str) -> str:
    """The words of a text, one blank between two."""
    return " ".join(word for word in text.translate(_PLAIN).split(" ") if word)


_PLAIN = str.maketrans(dict.fromkeys("\t\r\n", " "))


def calculated(left: float, operator: str, right: float) -> float:
    """Arithmetic of IEEE 754; `mod` has the sign of the dividend."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "div":
            return _divided(left, right)
        case "mod":
            return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)
    raise ValueError(f"no operator: {operator!r}")


def _divided(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


PURE: dict[str, Callable[..., Any]] = {
    "string": string_of,
    "concat": lambda *texts: "".join(texts),
    "starts-with": str.startswith,
    "contains": lambda text, part: part in text,
    "substring-before": lambda text, part: text[: text.index(part)] if part in text else "",
    "substring-after": lambda text, part: text[text.index(part) + len(part) :] if part in text else "",
    "substring": substring,
    "string-length": lambda text: float(len(text)),
    "normalize-space": normalized,
    "translate": translated_text,
    "boolean": bool,
    "not": lambda truth: not truth,
    "true": lambda: True,
    "false": lambda: False,
    "number": float,
    "floor": floored,
    "ceiling": ceiled,
    "round": rounded,
}
"""Functions whose result depends on their converted arguments alone."""

_CONVERSIONS: dict[ValueKind, Callable[[Any], Any]] = {
    ValueKind.STRING: string_of,
    ValueKind.NUMBER: to_number,
    ValueKind.BOOLEAN: to_boolean,
}


def applied(name: str, arguments: list[Any]) -> Any:
    """A pure function of strings, numbers and booleans, which are converted first."""
    kinds = CORE_FUNCTIONS[name].arguments
    converted = [_CONVERSIONS[kinds[min(at, len(kinds) - 1)]](each) for at, each in enumerate(arguments)]
    return PURE[name](*converted)


def compared(left: Any, operator: str, right: Any) -> bool:
    """`left operator right` of two values that are not nodes."""
    if operator in ("=", "!="):
        if isinstance(left, bool) or isinstance(right, bool):
            is_equal = to_boolean(left) == to_boolean(right)
        elif isinstance(left, float) or isinstance(right, float):
            is_equal = to_number(left) == to_number(right)
        else:
            is_equal = left == right
        return is_equal is (operator == "=")
    return ORDERS[operator](to_number(left), to_number(right))


ORDERS: dict[str, Callable[[float, float], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
