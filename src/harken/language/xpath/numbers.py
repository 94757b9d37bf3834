"""`number()` of XPath 1.0, for the constants of expressions."""

from __future__ import annotations

import re
from math import nan

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def number_of(value: str | float) -> float:
    """A constant as a number. A string needs digits, with at most one point and an optional minus; others are NaN."""
    if not isinstance(value, str):
        return value
    digits = _NUMBER.fullmatch(value)
    return nan if digits is None else float(digits[1])
