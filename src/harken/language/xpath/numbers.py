"""`number()` of XPath 1.0, for the constants of expressions."""

from __future__ import annotations

import re
from math import nan

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def number_of(value: str | float) -> float:
    """A constant as a number: of a text, digits with at most one point and maybe a minus; NaN for any other."""
    if not isinstance(value, str):
        return value
    found = _NUMBER.fullmatch(value)
    return nan if found is None else float(found[1])
