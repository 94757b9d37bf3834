"""Strict JSON: the attributes of one event from its text, or an error with line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isinf
from typing import Any

from harken.errors import DecodeError, Place, caret_excerpt
from harken.events.canonical import too_deep
from harken.events.excerpt import shorten_object
from harken.limits import Limits

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[-+.\w]++', re.DOTALL)
_BLANKS = b" \t\r\n"
_NAMES: dict[type, str] = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "a boolean"}
_WHOLE_LINES = "JSON lines hold a whole object on every line; in a .json file, objects may also be put into one array"


class _FaultError(Exception):
    """A fault that Python's decoder accepts. `is_culprit` tests whether a token is the faulty one."""

    def __init__(self, reason: str, is_culprit: Callable[[str], bool] | None = None) -> None:
        super().__init__(reason)
        self.is_culprit = is_culprit


def decode_object(data: bytes, limits: Limits) -> dict[str, Any]:
    """The object in `data`. Raises DecodeError, with its place in `data`, or LimitError."""
    return parse_object(decode_text(data), limits)


def decode_text(data: bytes) -> str:
    """The text of an event. Raises DecodeError."""
    try:
        return data.rstrip(_BLANKS).decode()  # so that an error at the end is on the last line, not after it
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error) from None


def parse_object(text: str, limits: Limits) -> dict[str, Any]:
    """The object in a text. Raises DecodeError or LimitError."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = error.msg[0].lower() + error.msg[1:]
        raise _located(f"this is not JSON: {reason}", text, error.pos) from None
    except _FaultError as fault:
        raise _located(str(fault), text, _position(text, fault.is_culprit)) from None
    except RecursionError:
        raise too_deep(limits) from None
    except ValueError:  # Python does not parse integers of more than 4,300 digits
        raise _located("the integer has too many digits", text, _position(text, _is_endless)) from None
    if type(value) is not dict:
        raise DecodeError(f"expected a JSON object, got {_NAMES.get(type(value), 'null')}")
    # The number of brackets bounds the depth, and counting them is cheap.
    if text.count("{") + text.count("[") > limits.max_event_depth and _depth(value) > limits.max_event_depth:
        raise too_deep(limits)
    return value


def too_large(number: str) -> str:
    return f"{shorten_object(number)} is too large for a 64-bit floating-point number"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _FaultError(f"the key {shorten_object(twice)} comes twice in one object")
    return content


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise _FaultError(too_large(text), text.__eq__)
    return value


def _constant(text: str) -> None:
    raise _FaultError(f"{text} is not JSON; write null for an unknown number", text.__eq__)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def _is_endless(token: str) -> bool:
    return len(token) > 4_300 and token.lstrip("-").isdigit()


def _position(text: str, is_culprit: Callable[[str], bool] | None) -> int | None:
    if is_culprit is None:
        return None
    return next((token.start() for token in _TOKEN.finditer(text) if is_culprit(token[0])), None)


def _located(message: str, text: str, position: int | None) -> DecodeError:
    hint = _WHOLE_LINES if text.strip() in ("{", "}", "[", "]") else None
    if position is None:
        return DecodeError(message, hint=hint)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return DecodeError(message, place=Place(line, column), excerpt=caret_excerpt(text, line, column), hint=hint)


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> DecodeError:
    before = data[: error.start].decode()
    message = f"the byte 0x{data[error.start]:02x} is not part of UTF-8 text"
    return _located(message, before + data[error.start :].decode(errors="replace"), len(before))


def _depth(value: Any) -> int:
    """Levels of objects and arrays, counted level by level, without recursion."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        inner = [child for holder in level for child in (holder.values() if type(holder) is dict else holder)]
        level = [child for child in inner if type(child) in (dict, list)]
    return depth
