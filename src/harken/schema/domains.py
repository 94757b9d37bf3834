"""The domains that attributes range over: what values each has, how they are read, and how two of them compare."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf
from reprlib import Repr
from typing import ClassVar

from harken.errors import InvalidValueError, SchemaError
from harken.schema.values import (
    COMPARISONS,
    INT64_MAX,
    INT64_MIN,
    KINDS,
    Kind,
    Value,
    parse_date,
    parse_timestamp,
    utc,
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)

_repr = Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60


@dataclass(frozen=True, slots=True)
class Domain(ABC):
    """A named set of values of one kind, with its comparison operators.

    Nulls, NaN and empty CSV cells are missing values: callers drop them before they read.
    """

    name: str
    kind: ClassVar[Kind]

    @abstractmethod
    def read(self, raw: object) -> Value:
        """Read a decoded value, for example from JSON. Raises InvalidValueError."""

    @abstractmethod
    def read_text(self, text: str) -> Value:
        """Read a value from text, for example a CSV cell. Raises InvalidValueError."""

    @abstractmethod
    def describe(self) -> str:
        """The domain in a few words."""

    def compare(self, operator: str, left: Value, right: Value) -> bool | None:
        """Whether `left operator right` holds, for one of = <> < <= > >=; None when it is unknown."""
        if KINDS.get(type(left)) is not self.kind or KINDS.get(type(right)) is not self.kind:
            return None
        return COMPARISONS[operator](left, right)

    def rejection(self, raw: object, hint: str | None = None) -> InvalidValueError:
        """The error for a value outside this domain."""
        expected = self.describe()
        named = "" if self.name in BUILT_IN else f" (domain `{self.name}`)"
        return InvalidValueError(f"expected {expected}{named}, got {shortened(raw)}", hint=hint)


@dataclass(frozen=True, slots=True)
class IntegerDomain(Domain):
    """Integers of 64 bits, or an interval of them. A float that is exactly integral is read as the integer."""

    low: int | None = None
    high: int | None = None
    kind: ClassVar[Kind] = Kind.NUMBER

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if bound is not None and not INT64_MIN <= bound <= INT64_MAX:
                raise SchemaError(f"a bound of domain `{self.name}` does not fit in 64 bits")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise SchemaError(f"domain `{self.name}` is empty: its low {self.low} is above its high {self.high}")

    def read(self, raw: object) -> int:
        number = _whole(raw)
        if number is None or not self._first <= number <= self._last:
            raise self.rejection(raw)
        return number

    def read_text(self, text: str) -> int:
        number = _number(text)
        if number is None:
            raise self.rejection(text)
        return self.read(number)

    def admits(self, constant: Value) -> bool:
        """Whether a number lies within the bounds, be it an integer or not. Other values do."""
        return not isinstance(constant, int | float) or self._first <= constant <= self._last

    def describe(self) -> str:
        if self.low is None:
            return "integer" if self.high is None else f"integer up to {self.high}"
        return f"integer from {self.low}" if self.high is None else f"integer {self.low}..{self.high}"

    @property
    def _first(self) -> int:
        return INT64_MIN if self.low is None else self.low

    @property
    def _last(self) -> int:
        return INT64_MAX if self.high is None else self.high


@dataclass(frozen=True, slots=True)
class FloatDomain(Domain):
    """Numbers. A 64-bit integer stays an integer, because integers and floats compare exactly; a Decimal is rounded."""

    kind: ClassVar[Kind] = Kind.NUMBER

    def read(self, raw: object) -> int | float:
        if isinstance(raw, int) and not isinstance(raw, bool) and INT64_MIN <= raw <= INT64_MAX:
            return int(raw)
        if isinstance(raw, Decimal) and not raw.is_nan():
            nearest = float(raw)
            if isinf(nearest) and raw.is_finite():
                raise self.rejection(raw, hint="it is too large for a 64-bit float")
            return nearest
        if isinstance(raw, float) and raw == raw:
            return float(raw)
        raise self.rejection(raw)

    def read_text(self, text: str) -> int | float:
        number = _number(text)
        if number is None:
            raise self.rejection(text)
        return self.read(number)

    def describe(self) -> str:
        return "number"


@dataclass(frozen=True, slots=True)
class StringDomain(Domain):
    """Any text."""

    kind: ClassVar[Kind] = Kind.STRING

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise self.rejection(raw)
        return str.__str__(raw)  # str() of a string enumeration's member is its name

    def read_text(self, text: str) -> str:
        return text

    def describe(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class BooleanDomain(Domain):
    """True and false; in text, these words in any case."""

    kind: ClassVar[Kind] = Kind.BOOLEAN

    def read(self, raw: object) -> bool:
        if not isinstance(raw, bool):
            raise self.rejection(raw)
        return raw

    def read_text(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise self.rejection(text, hint="write true or false")
        return word == "true"

    def describe(self) -> str:
        return "boolean"


@dataclass(frozen=True, slots=True)
class TimestampDomain(Domain):
    """Moments, to the microsecond, in UTC. In text ISO 8601; without a zone they are in UTC."""

    kind: ClassVar[Kind] = Kind.TIMESTAMP

    def read(self, raw: object) -> datetime:
        try:
            if isinstance(raw, str):
                return parse_timestamp(raw)
            if isinstance(raw, datetime):
                return _plain_datetime(utc(raw))
        except ValueError:
            pass
        raise self.rejection(raw)

    def read_text(self, text: str) -> datetime:
        return self.read(text.strip())

    def describe(self) -> str:
        return "ISO 8601 timestamp"


@dataclass(frozen=True, slots=True)
class DateDomain(Domain):
    """Calendar dates; in text YYYY-MM-DD. A moment is not a date, because its date depends on the zone."""

    kind: ClassVar[Kind] = Kind.DATE

    def read(self, raw: object) -> date:
        if isinstance(raw, str):
            try:
                return parse_date(raw)
            except ValueError:
                raise self.rejection(raw) from None
        if isinstance(raw, date) and not isinstance(raw, datetime):
            return date(raw.year, raw.month, raw.day)
        raise self.rejection(raw)

    def read_text(self, text: str) -> date:
        return self.read(text.strip())

    def describe(self) -> str:
        return "date YYYY-MM-DD"


BUILT_IN: dict[str, Domain] = {
    domain.name: domain
    for domain in (
        IntegerDomain("integer"),
        FloatDomain("float"),
        StringDomain("string"),
        BooleanDomain("boolean"),
        TimestampDomain("timestamp"),
        DateDomain("date"),
    )
}


def shortened(raw: object) -> str:
    """A value as a message shows it, cut short."""
    try:
        return _repr.repr(raw)
    except ValueError:  # Python does not print integers of thousands of digits
        return f"a value of type {type(raw).__name__}"


def _whole(raw: object) -> int | None:
    """The integer that a number equals, or None."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return int(raw)
    if isinstance(raw, float):
        return int(raw) if raw.is_integer() else None
    # Check the bounds first: int() of a Decimal with a large exponent is slow.
    if isinstance(raw, Decimal) and raw.is_finite() and INT64_MIN <= raw <= INT64_MAX and raw == int(raw):
        return int(raw)
    return None


def _number(text: str) -> int | float | None:
    """The number that a text spells, as in the language: with a point or an exponent it is a float. Else None."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # thousands of digits
            return None
    if not _FLOAT.fullmatch(text):
        return None
    number = float(text)
    return None if isinf(number) and "inf" not in text.lower() else number


def _plain_datetime(moment: datetime) -> datetime:
    """The moment as a plain datetime: pandas has a subclass."""
    return moment if type(moment) is datetime else datetime.combine(moment.date(), moment.time(), UTC)
