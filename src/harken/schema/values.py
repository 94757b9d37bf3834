"""The values that events and subscriptions are made of, and how two of them compare.

A value is a Python `int` (64 bits), `float` (never NaN), `str`, `bool`, UTC `datetime` or `date`. Each belongs to one
kind, and only values of one kind compare. Python compares integers with floats exactly, also beyond 2^53, and orders
strings by code point, as the language requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import StrEnum
from operator import eq, ge, gt, le, lt, ne

Value = int | float | str | bool | datetime | date

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


class Kind(StrEnum):
    """What a value is. Values of unlike kinds compare unknown."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"


# By exact class: bool is a subclass of int, and datetime of date.
KINDS: dict[type, Kind] = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIMESTAMP,
    date: Kind.DATE,
}

COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


FULL_TIMESTAMP = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"
    "(?:[01][0-9]|2[0-3])(?::[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?)?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"
)
"""A full timestamp of ISO 8601's extended format, as a regular expression."""
_is_full = re.compile(FULL_TIMESTAMP).fullmatch


def read_timestamp(text: str) -> datetime | None:
    """A string of an event as a timestamp: `FULL_TIMESTAMP`, without a zone UTC, to the microsecond; else None.

    Narrower than `parse_timestamp`, which reads values that were declared or written as timestamps.
    """
    if _is_full(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is UTC else utc(moment)
    except (ValueError, OverflowError):
        return None


def read_date(text: str) -> date | None:
    """A string of an event as a date, YYYY-MM-DD; else None."""
    try:
        return parse_date(text)
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime:
    """ISO 8601, without a zone UTC, to the microsecond. Raises ValueError."""
    try:
        return utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r:.60} is not an ISO 8601 timestamp within the years 1 to 9999") from None


def parse_date(text: str) -> date:
    """ISO 8601 calendar date, YYYY-MM-DD. Raises ValueError."""
    try:
        if len(text) == 10 and text[4] == text[7] == "-":
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r:.60} is not a date of the form YYYY-MM-DD")


def utc(moment: datetime) -> datetime:
    """The same moment in UTC; one without a zone is taken to be in UTC. Raises ValueError."""
    try:
        return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is, in UTC, outside the years 1 to 9999") from None


def show(value: Value) -> str:
    """A value as the language writes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return repr(value)
