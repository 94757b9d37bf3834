"""The functions of derived attributes on single values; events/column_functions.py has them on columns.

All values are of canonical types. None is a missing value or an undefined result.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from ipaddress import ip_address, ip_network
from math import ceil, floor, fmod, isfinite
from typing import Any

from harken.schema.values import INT64_MAX, INT64_MIN, KINDS, Kind, Value, read_date, read_timestamp

LESS, EQUAL, GREATER, NEITHER = -1, 0, 1, 2
ARITHMETIC = ("+", "-", "*", "/", "%")
_CACHE_SIZE = 65_536
_BEYOND = 2.0**63
_ENOUGH_DIGITS = 2_000
"""More digits than any binary64 has before and behind its point."""


@lru_cache(maxsize=64)
def order_of(values: tuple[str, ...], below: tuple[tuple[str, str], ...]) -> Callable[[Any, Any], int | None]:
    """The comparison of two values of a domain with its own order, given as (lower, higher) pairs."""
    members = frozenset(values)
    directly: dict[str, list[str]] = {}
    for lower, higher in below:
        directly.setdefault(lower, []).append(higher)

    @lru_cache(maxsize=_CACHE_SIZE)
    def above(value: str) -> frozenset[str]:
        higher_values: set[str] = set()
        waiting = [value]
        while waiting:
            more = set(directly.get(waiting.pop(), ())) - higher_values
            higher_values |= more
            waiting += more
        return frozenset(higher_values)

    def compared(left: Any, right: Any) -> int | None:
        if left not in members or right not in members:
            return None
        if left == right:
            return EQUAL
        return LESS if right in above(left) else GREATER if left in above(right) else NEITHER

    return compared


def _compare(left: Any, right: Any) -> int | None:
    kind = KINDS.get(type(left))
    if kind is None or kind is not KINDS.get(type(right)):
        return None
    return EQUAL if left == right else LESS if left < right else GREATER


def _text(function: Callable[[str], Value]) -> Callable[[Any], Value | None]:
    return lambda value: function(value) if type(value) is str else None


def substring(text: Any, position: int, length: int | None = None) -> str | None:
    """Characters from a position on, counted from 1 or, if negative, from the end."""
    if type(text) is not str:
        return None
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) :] if length is None else text[max(start, 0) : max(start + length, 0)]


def whole(value: Any) -> int | None:
    """The 64-bit integer that an int or a float equals; else None."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and -_BEYOND <= value < _BEYOND and value.is_integer() else None


def fitting(value: int) -> int | None:
    """The integer if it fits in 64 bits; else None."""
    return value if INT64_MIN <= value <= INT64_MAX else None


def finite(value: float) -> float | None:
    """The float if it is finite, with -0.0 as 0.0; else None."""
    return value + 0.0 if isfinite(value) else None


def _arithmetic(
    of_integers: Callable[[int, int], int | None], of_floats: Callable[[float, float], float | None]
) -> Callable[[Any, Any], Value | None]:
    """Arithmetic by value: 2 and 2.0 are equal, so 64-bit integers are computed exactly, also those in floats."""

    def result(left: Any, right: Any) -> Value | None:
        if KINDS.get(type(left)) is not Kind.NUMBER or KINDS.get(type(right)) is not Kind.NUMBER:
            return None
        left_integer, right_integer = whole(left), whole(right)
        if left_integer is not None and right_integer is not None:
            exact = of_integers(left_integer, right_integer)
            return None if exact is None else fitting(exact) if type(exact) is int else finite(exact)
        inexact = of_floats(float(left), float(right))
        return None if inexact is None else finite(inexact)

    return result


def _divided(left: float, right: float) -> float | None:
    return float(left) / float(right) if right else None


def _remainder(left: int, right: int) -> int | None:
    return None if not right else abs(left) % abs(right) * (1 if left >= 0 else -1)


def _float_remainder(left: float, right: float) -> float | None:
    return fmod(left, right) if right and isfinite(left) else None


def _number(function: Callable[[Any], Value | None]) -> Callable[[Any], Value | None]:
    return lambda value: function(value) if KINDS.get(type(value)) is Kind.NUMBER else None


def _absolute(value: Any) -> Value | None:
    exact = whole(value)
    return finite(abs(value)) if exact is None else fitting(abs(exact))


def _integral(function: Callable[[Any], int]) -> Callable[[Any], Value | None]:
    return lambda value: fitting(function(value)) if isfinite(value) else None


def rounded(value: Any, digits: int = 0) -> Value | None:
    """The number rounded to `digits` decimal digits, halves away from zero."""
    exact = whole(value)
    if exact is not None and digits >= 0:
        return exact
    if not isfinite(value):
        return None
    # Rounds the decimal notation, not the value in binary64: 2.675 becomes 2.68.
    decimal = Decimal(exact) if exact is not None else Decimal(repr(value))
    if digits > -int(decimal.as_tuple().exponent):
        return value if exact is None else exact
    try:
        quantized = decimal.quantize(Decimal(1).scaleb(-digits), context=Context(_ENOUGH_DIGITS, ROUND_HALF_UP))
    except ArithmeticError:
        return 0
    return fitting(int(quantized)) if exact is not None else finite(float(quantized))


def _read_as(kind: type, read: Callable[[str], Value | None]) -> Callable[[Any], Any]:
    """Values of a type pass, strings are parsed with `read`; None for all else."""
    return lambda value: read(value) if type(value) is str else value if type(value) is kind else None


def _day(function: Callable[[date], int]) -> Callable[[Any], int | None]:
    return lambda value: function(value) if KINDS.get(type(value)) in (Kind.DATE, Kind.TIMESTAMP) else None


@lru_cache(maxsize=_CACHE_SIZE)
def address(text: str) -> str | None:
    """An internet address as the digit of its version and hexadecimal digits; None if it is invalid."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    return written_address(parsed.version, int(parsed))


def written_address(version: int, number: int) -> str:
    """The address with this number, as a text that sorts like the number."""
    return f"4{number:08x}" if version == 4 else f"6{number:032x}"


@lru_cache(maxsize=_CACHE_SIZE)
def network(text: str) -> tuple[str, str]:
    """The first and the last address of a network, as `address` writes them. Raises ValueError."""
    net = ip_network(text)
    version = net.version
    return written_address(version, int(net.network_address)), written_address(version, int(net.broadcast_address))


def _cidr_contains(net: str, text: Any) -> bool | None:
    written = address(text) if type(text) is str else None
    first, last = network(net)
    return None if written is None else first <= written <= last


SCALAR: dict[str, Callable[..., Any]] = {
    "lower": _text(str.lower),
    "upper": _text(str.upper),
    "trim": _text(lambda text: text.strip(" ")),
    "length": _text(len),
    "substring": substring,
    "+": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a - b, lambda a, b: a - b),
    "*": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
    "/": _arithmetic(_divided, _divided),  # type: ignore[arg-type]
    "%": _arithmetic(_remainder, _float_remainder),
    "abs": _number(_absolute),
    "round": lambda value, digits=0: rounded(value, digits) if KINDS.get(type(value)) is Kind.NUMBER else None,
    "floor": _number(_integral(floor)),
    "ceil": _number(_integral(ceil)),
    "year": _day(lambda day: day.year),
    "month": _day(lambda day: day.month),
    "day": _day(lambda day: day.day),
    "hour": lambda value: value.hour if type(value) is datetime else None,
    "dayofweek": _day(lambda day: day.isoweekday() % 7 + 1),
    "compare": _compare,
    "timestamp": _read_as(datetime, read_timestamp),
    "date": _read_as(date, read_date),
    "lacks": lambda value, *kinds: KINDS.get(type(value)) not in kinds,
    "address": _text(address),  # type: ignore[arg-type]
    "cidr_contains": _cidr_contains,
}
"""The functions by name."""

_NUMBERS = (*ARITHMETIC, "abs", "round", "floor", "ceil")
_TEXTS = ("lower", "upper", "trim", "substring")
_PARTS = ("year", "month", "day", "hour", "dayofweek")
RESULTS: dict[str, Kind] = {
    **dict.fromkeys((*_NUMBERS, *_PARTS, "length", "size", "compare"), Kind.NUMBER),
    **dict.fromkeys((*_TEXTS, "address"), Kind.STRING),
    **dict.fromkeys(("lacks", "cidr_contains"), Kind.BOOLEAN),
    "timestamp": Kind.TIMESTAMP,
    "date": Kind.DATE,
}
ARGUMENTS: dict[str, Kind] = {
    **dict.fromkeys(_NUMBERS, Kind.NUMBER),
    **dict.fromkeys((*_TEXTS, "length", "address", "cidr_contains"), Kind.STRING),
    "hour": Kind.TIMESTAMP,
}
"""The kind of a function's arguments, if it takes only one kind."""
