"""The values that a database compares as Harken does: doubles, texts without NUL, and integers of 64 bits.

An interval of the normal form lies between two *cuts*, and a cut has a value of its column's storage. A number that is
no double becomes the cut at the nearest double, which is exact for events whose numbers are doubles; other events never
reach the database (see `typed_events`). A text that some database cannot hold becomes no bound.
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
"""Longest text of a bound: PostgreSQL's B-trees hold at most 2,704 bytes. Longer constants are left to verification."""


LEAST: dict[Storage, Any] = {Storage.NUMBER: -inf, Storage.TEXT: "", Storage.WHOLE: INT64_MIN}
"""The least value of each storage."""
BEYOND: dict[Storage, Any] = {Storage.NUMBER: inf, Storage.TEXT: None, Storage.WHOLE: INT64_MAX}
"""An upper bound of the values of each storage; None if there is none."""


class StoredInterval(NamedTuple):
    """An interval of one attribute between two cuts whose values a database holds; None is an end of the line."""

    attribute: int
    """The place of the attribute's column among the matcher's columns, from 1."""
    storage: Storage
    low: Cut | None
    high: Cut | None
    is_outside: bool = False
    """Whether the interval is wrapped: it admits values below the high cut or above the low one."""

    @property
    def point(self) -> Any:
        """The only value that the interval admits; None if there are several."""
        low, high = self.low, self.high
        is_point = low is not None and high is not None and low[0] == high[0] and (low[1], high[1]) == (0, 1)
        return low[0] if is_point and low is not None and not self.is_outside else None


def storage_of(column: Column) -> Storage:
    """How the values of a column are stored."""
    if column.coded is not None:
        return Storage.WHOLE
    return {Kind.NUMBER: Storage.NUMBER, Kind.STRING: Storage.TEXT}.get(column.kind, Storage.WHOLE)  # type: ignore[arg-type]


def stored_interval(place: int, column: Column, low: Cut | None, high: Cut | None) -> tuple[StoredInterval, bool]:
    """An interval with values that a database holds, and whether it is exact: else it admits further values."""
    storage = storage_of(column)
    is_outside = low is not None and high is not None and low > high
    stored_low, stored_high = _stored(column, storage, low), _stored(column, storage, high)
    is_exact = (stored_low is None, stored_high is None) == (low is None, high is None)
    if is_outside and not is_exact:
        return StoredInterval(place + 1, storage, None, None), False
    return StoredInterval(place + 1, storage, stored_low, stored_high, is_outside), is_exact


def is_storable(text: str) -> bool:
    """Whether every database can store a text: PostgreSQL stores no NUL."""
    return "\0" not in text


def following(storage: Storage, value: Any) -> Any:
    """The least stored value greater than a value. For a text, append \\1: no stored text has \\0."""
    match storage:
        case Storage.NUMBER:
            return nextafter(value, inf)
        case Storage.TEXT:
            return value + "\1"
        case Storage.WHOLE:
            return min(value + 1, INT64_MAX)


def first_of(interval: StoredInterval) -> Any:
    """The least stored value above the low cut; None without a low cut."""
    return _from(interval.storage, interval.low)


def first_beyond(interval: StoredInterval) -> Any:
    """The least stored value above the high cut; None without a high cut."""
    return _from(interval.storage, interval.high)


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
            return cut if is_storable(value) and len(value) <= MOST_CHARACTERS and _is_encodable(value) else None
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
