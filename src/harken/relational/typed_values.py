"""The values that a database compares as Harken does: doubles, texts without NUL, and integers of 64 bits.

An interval of the normal form is put between *cuts*, and a cut becomes a value of its column's storage. A number that
no double holds becomes the cut at the double beside it, which is exact for events whose numbers are doubles; events
with other values never reach the database (see `typed_events`). A text that not every database holds is left out.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Any, NamedTuple

from harken.codes.columns import Column
from harken.databases.dialects import Storage
from harken.events.cells import as_integer
from harken.language.intervals import Cut
from harken.schema import Kind
from harken.schema.values import INT64_MAX, INT64_MIN

MOST_CHARACTERS = 500
"""A longer constant is left to verification: PostgreSQL's b-trees hold 2,704 bytes at most."""


LEAST: dict[Storage, Any] = {Storage.NUMBER: -inf, Storage.TEXT: "", Storage.WHOLE: INT64_MIN}
"""A value that no stored value lies below."""
BEYOND: dict[Storage, Any] = {Storage.NUMBER: inf, Storage.TEXT: None, Storage.WHOLE: INT64_MAX}
"""A value that every stored value lies below; None where there is none."""


class Typed(NamedTuple):
    """An interval of one attribute between two cuts; None is an end of the line."""

    attribute: int
    """The place of its column among those of the matcher, from 1."""
    storage: Storage
    low: Cut | None
    high: Cut | None
    is_outside: bool = False
    """Whether the values are those outside: below the high cut or above the low one."""

    @property
    def point(self) -> Any:
        """The only value that it admits, or None."""
        low, high = self.low, self.high
        is_point = low is not None and high is not None and low[0] == high[0] and (low[1], high[1]) == (0, 1)
        return low[0] if is_point and low is not None and not self.is_outside else None


def storage_of(column: Column) -> Storage:
    """How the values of a column are stored."""
    if column.coded is not None:
        return Storage.WHOLE
    return {Kind.NUMBER: Storage.NUMBER, Kind.STRING: Storage.TEXT}.get(column.kind, Storage.WHOLE)  # type: ignore[arg-type]


def typed(place: int, column: Column, low: Cut | None, high: Cut | None) -> tuple[Typed, bool]:
    """An interval with values that a database holds, and whether it admits no more than was asked for."""
    storage = storage_of(column)
    is_outside = low is not None and high is not None and low > high
    stored_low, stored_high = _stored(column, storage, low), _stored(column, storage, high)
    is_exact = (stored_low is None, stored_high is None) == (low is None, high is None)
    if is_outside and not is_exact:
        return Typed(place + 1, storage, None, None), False
    return Typed(place + 1, storage, stored_low, stored_high, is_outside), is_exact


def is_sayable(text: str) -> bool:
    """Whether every database holds a text."""
    return "\0" not in text


def following(storage: Storage, value: Any) -> Any:
    """The least stored value that is greater. Of texts it is the one with \\1 behind it: none has \\0."""
    match storage:
        case Storage.NUMBER:
            return nextafter(value, inf)
        case Storage.TEXT:
            return value + "\1"
        case Storage.WHOLE:
            return min(value + 1, INT64_MAX)


def first_of(typed: Typed) -> Any:
    """The least stored value behind the low cut; None if every value is."""
    return _from(typed.storage, typed.low)


def first_beyond(typed: Typed) -> Any:
    """The least stored value behind the high cut; None if none is."""
    return _from(typed.storage, typed.high)


def _from(storage: Storage, cut: Cut | None) -> Any:
    if cut is None:
        return None
    return following(storage, cut[0]) if cut[1] else cut[0]


def _stored(column: Column, storage: Storage, cut: Cut | None) -> Cut | None:
    if cut is None:
        return None
    value, side = cut
    match storage:
        case Storage.NUMBER:
            nearest = float(value) + 0.0
            return (nearest, side) if nearest == value else (nearest, int(nearest < value))
        case Storage.TEXT:
            return cut if is_sayable(value) and len(value) <= MOST_CHARACTERS and _is_encodable(value) else None
        case Storage.WHOLE:
            return (_whole(column, value), side)


def _whole(column: Column, value: Any) -> int:
    return int(value) if column.coded is not None or column.kind is None else as_integer(column.kind, value)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
