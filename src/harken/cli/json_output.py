"""Values as strict JSON on one line."""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite
from typing import Any


def to_json(value: Any) -> str:
    """The value as JSON. Times are written in ISO 8601; a number that JSON cannot write is null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_plain)


def to_text(value: Any) -> str:
    """The value as a cell of a table: a string as it is, nothing for null, the rest as JSON without quotes."""
    if isinstance(value, str):
        return value
    text = to_json(value)
    return "" if text == "null" else text.strip('"')


def encodable(value: Any) -> Any:
    """The same value with every lone surrogate, which no file can hold, escaped."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return [encodable(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
