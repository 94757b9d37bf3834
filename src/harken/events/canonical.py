"""The canonical form of an event, made from raw Python.

It consists of dicts, lists and the values of `harken.schema.values`, without nulls, NaNs and empty lists. A value that
an event cannot hold is rejected, with its path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf
from typing import Any

from harken.errors import InvalidValueError, LimitError
from harken.events.excerpt import short_name, shorten_object
from harken.events.records import content_of, is_record
from harken.limits import Limits
from harken.schema.paths import Path
from harken.schema.values import INT64_MAX, INT64_MIN, Value, utc

_LISTS = (list, tuple, set, frozenset)
_PANDAS_MISSING = ("NAType", "NaTType")
_FINER_THAN_MICROSECONDS = ("ns", "ps", "fs", "as")
_YEARS = "is a time outside the years 1 to 9999"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in raw content for a cell that Python cannot represent; it rejects the event, not the file."""

    reason: str


def canonical(raw: Mapping[Any, Any], limits: Limits, names: Collection[str] | None = None) -> dict[str, Any]:
    """The canonical form of an event's raw attributes. Raises InvalidValueError or LimitError.

    With `names`, only these attributes are read; others are left out, even invalid ones.
    """
    if names is None:
        return _Walk(limits).object(raw, (), 1)
    if len(names) < len(raw):
        try:
            return _Walk(limits).object({name: raw[name] for name in names if name in raw}, (), 1)
        except InvalidValueError:
            pass  # below, faults are met in the event's order, so that the first is reported
    return _Walk(limits).object({name: value for name, value in raw.items() if name in names}, (), 1)


def too_deep(limits: Limits) -> LimitError:
    return LimitError(
        f"the event has more than {limits.max_event_depth} levels of objects and arrays", limit="max_event_depth"
    )


class _Walk:
    """Walks through one event, counting its values and levels."""

    __slots__ = ("_left", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.max_event_values

    def object(self, raw: Mapping[Any, Any], path: Path, depth: int) -> dict[str, Any]:
        self._enter(len(raw), depth)
        kept: dict[str, Any] = {}
        for name, value in raw.items():
            key = name if type(name) is str and name.isascii() else _key(name, path)
            kind = type(value)
            # Common types first and inline: flat events spend most of their time in this loop.
            if (kind is str and value.isascii()) or kind is bool or (kind is int and INT64_MIN <= value <= INT64_MAX):
                kept[key] = value
            elif kind is float and value == value:
                kept[key] = value + 0.0  # -0.0 + 0.0 is 0.0
            elif value is not None:
                other = self._other(value, (*path, key), depth)
                if other is not None:
                    kept[key] = other
        return kept

    def _elements(self, raw: Collection[Any], path: Path, depth: int) -> list[Any] | None:
        self._enter(len(raw), depth)
        kept: list[Any] = []
        for value in raw:
            kind = type(value)
            if (kind is str and value.isascii()) or kind is bool or (kind is int and INT64_MIN <= value <= INT64_MAX):
                kept.append(value)
            elif kind is float and value == value:
                kept.append(value + 0.0)
            elif value is not None:
                other = self._other(value, path, depth)
                if other is not None:
                    kept.append(other)
        return kept or None

    def _enter(self, size: int, depth: int) -> None:
        # Dropped values count too: nested references can stand for 2^60 empty lists.
        self._left -= size
        if self._left < 0:
            raise LimitError(
                f"the event has more than {self._limits.max_event_values} values", limit="max_event_values"
            )
        if depth > self._limits.max_event_depth:
            raise too_deep(self._limits)

    def _other(self, value: Any, path: Path, depth: int) -> Any:
        """The canonical form of a value that is not plain; None if it counts as missing."""
        kind = type(value)
        if kind is dict:
            return self.object(value, path, depth + 1)
        if kind in _LISTS:
            return self._elements(value, path, depth + 1)
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(value, path)
        return self._foreign(value, path, depth)

    def _foreign(self, value: Any, path: Path, depth: int) -> Any:
        """The canonical form of an instance of a subclass, of a record, or of a value of NumPy or pandas."""
        if value is None or type(value).__name__ in _PANDAS_MISSING:
            return None
        if isinstance(value, Mapping):
            return self.object(value, path, depth + 1)
        if isinstance(value, _LISTS):
            return self._elements(value, path, depth + 1)
        if is_record(value):
            return self._other(content_of(value), path, depth)
        numpy = sys.modules.get("numpy")  # without NumPy imported, there are no values of NumPy
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._other(_from_array(value), path, depth)
        if numpy is not None and isinstance(value, numpy.generic):
            return self._other(_from_scalar(value, path, numpy), path, depth)
        for kind, reader in _READERS.items():
            if isinstance(value, kind):
                return reader(value, path)
        raise _rejection(value, path)


def _key(key: object, path: Path) -> str:
    if not isinstance(key, str):
        inside = f" in {short_name(path)}" if path else ""
        raise InvalidValueError(f"the key {shorten_object(key)}{inside} is not a string, as the keys of an event are")
    if not _is_encodable(key):
        raise InvalidValueError(f"the key {shorten_object(key)} has a lone surrogate, which UTF-8 cannot encode")
    return str.__str__(key)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _string(value: str, path: Path) -> str:
    if not _is_encodable(value):
        raise InvalidValueError(f"attribute {short_name(path)} has a lone surrogate, which UTF-8 cannot encode")
    return str.__str__(value)


def _integer(value: int, path: Path) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise InvalidValueError(
            f"attribute {short_name(path)} is an integer beyond 64 bits",
            hint="write it as a float (in JSON, with an exponent) or as a string",
        )
    return int(value)


def _boolean(value: bool, path: Path) -> bool:
    return value


def _float(value: float, path: Path) -> float | None:
    return float(value) + 0.0 if value == value else None


def _decimal(value: Decimal, path: Path) -> float | None:
    if value.is_nan():
        return None
    nearest = float(value)
    if isinf(nearest) and value.is_finite():
        raise InvalidValueError(f"attribute {short_name(path)} is too large for a 64-bit floating-point number")
    return nearest + 0.0


def _timestamp(value: datetime, path: Path) -> datetime:
    if value.tzinfo is UTC and type(value) is datetime:
        return value
    zone = None if value.utcoffset() is None else value.tzinfo
    clock = (value.hour, value.minute, value.second, value.microsecond)
    try:
        return utc(datetime(value.year, value.month, value.day, *clock, zone, fold=value.fold))
    except (OverflowError, ValueError):
        raise InvalidValueError(f"attribute {short_name(path)} {_YEARS} in UTC") from None


def _date(value: date, path: Path) -> date:
    return value if type(value) is date else date(value.year, value.month, value.day)


def _unreadable(value: Unreadable, path: Path) -> Value:
    raise InvalidValueError(f"attribute {short_name(path)} {value.reason}")


# Subclasses first: a boolean is also an integer, and a datetime a date.
_READERS: dict[type, Callable[[Any, Path], Value | None]] = {
    str: _string,
    bool: _boolean,
    int: _integer,
    float: _float,
    datetime: _timestamp,
    date: _date,
    Decimal: _decimal,
    Unreadable: _unreadable,
}


def _from_array(array: Any) -> Any:
    if array.ndim == 0:
        return array[()]
    return array.tolist() if array.dtype.kind in "biufUO" else list(array)


def _from_scalar(scalar: Any, path: Path, numpy: Any) -> Any:
    kind = scalar.dtype.kind
    if kind == "f":
        return float(scalar)  # .item() of a long double returns a long double
    if kind in "biuU":
        return scalar.item()
    if kind == "M":
        return _from_datetime64(scalar, numpy)
    raise _rejection(scalar, path)


def _from_datetime64(scalar: Any, numpy: Any) -> Any:
    """A datetime, a date where the unit is days or longer, or None for NaT."""
    item = scalar.item()
    if isinstance(item, int) and numpy.datetime_data(scalar.dtype)[0] in _FINER_THAN_MICROSECONDS:
        item = scalar.astype("datetime64[us]").item()
    return Unreadable(_YEARS) if isinstance(item, int) else item


def _rejection(value: object, path: Path) -> InvalidValueError:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    hint = "an event holds numbers, strings, booleans, timestamps and dates, and objects and arrays of them"
    if name == "uuid.UUID":
        hint = "pass str() of it, and compare it with a string"
    return InvalidValueError(f"attribute {short_name(path)} is of type {name}, which an event cannot hold", hint=hint)
