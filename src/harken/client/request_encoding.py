"""Python objects as the bodies of requests: one JSON object a line, in batches of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from harken.client.answers import in_text
from harken.client.exchange import JSON, NDJSON, Request
from harken.errors import EventError, HarkenError, InvalidValueError

XML = "application/xml"

Event: TypeAlias = Mapping[str, Any] | bytes | str
"""An object, or an XML document."""

_MOST_EVENTS = 1_000
_MOST_BYTES = 4_194_304
"""At most this many bytes of events go into one request, unless a single event has more."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, and the position of each object in it; None if the body was given as text."""

    content: bytes
    content_type: str
    positions: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Unsendable:
    """An object that cannot be written as JSON, by its position."""

    position: int
    error: HarkenError


def in_json(value: Any) -> bytes:
    """The value as JSON. Times are written in ISO 8601, durations in seconds. Raises InvalidValueError."""
    try:
        try:
            return _encoded(value)
        except ValueError:
            return _encoded(_without_nan(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"this cannot be written as JSON: {error}") from None


def present(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def carrying(body: Mapping[str, Any], request: Request) -> Request:
    """The request with a JSON object as its body."""
    return replace(request, content=in_json(body), headers={**request.headers, "Content-Type": JSON})


def bodies(events: Event | Iterable[Event], content_type: str | None = None) -> Iterator[Body | Unsendable]:
    """The bodies of requests that publish these events.

    Objects are sent together, as JSON lines, and a document alone. With a content type, bytes are sent as they are, and
    objects as one JSON text unless the type is JSON lines. Raises EventError if these are no events.
    """
    is_lines = content_type is None or content_type.partition(";")[0] in (NDJSON, "application/jsonl")
    if content_type is not None and (not is_lines or isinstance(events, bytes | str)):
        yield _as_one(events, content_type)
    elif isinstance(events, Mapping):
        yield Body(in_json(events), JSON, (0,))
    elif isinstance(events, bytes | str):
        yield _document(events, 0)
    elif isinstance(events, Iterable):
        yield from batches(events, _MOST_EVENTS, _MOST_BYTES, documents=True)
    else:
        hint = "an event is a mapping, or the bytes of an XML document; several come as a list"
        raise EventError(f"a {type(events).__name__} is no event and no collection of events", hint=hint)


def batches(
    objects: Iterable[Any], most: int, most_bytes: int, *, documents: bool = False
) -> Iterator[Body | Unsendable]:
    """JSON lines of mappings, cut by their number and their bytes. With `documents`, XML may be among them."""
    waiting = _Lines()
    for position, each in enumerate(objects):
        if documents and isinstance(each, bytes | str):
            if waiting.lines:
                yield waiting.take()
            yield _document(each, position)
            continue
        try:
            line = in_json(_mapping(each))
        except HarkenError as error:
            yield Unsendable(position, error)
            continue
        if waiting.lines and waiting.size + len(line) > most_bytes:
            yield waiting.take()
        waiting.add(line, position)
        if len(waiting.lines) == most:
            yield waiting.take()
    if waiting.lines:
        yield waiting.take()


class _Lines:
    """Lines for the next request."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.positions: list[int] = []
        self.size = 0

    def add(self, line: bytes, position: int) -> None:
        self.lines.append(line)
        self.positions.append(position)
        self.size += len(line) + 1

    def take(self) -> Body:
        body = Body(b"\n".join(self.lines) + b"\n", NDJSON, tuple(self.positions))
        self.lines, self.positions, self.size = [], [], 0
        return body


def _as_one(events: Any, content_type: str) -> Body:
    if isinstance(events, bytes | str):
        return Body(_bytes(events), content_type, None)
    if isinstance(events, Mapping):
        return Body(in_json(events), content_type, (0,))
    every = list(events)
    return Body(in_json(every), content_type, range(len(every)))


def _document(event: bytes | str, position: int) -> Body:
    return Body(_bytes(event), XML, (position,))


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _mapping(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidValueError(f"expected a mapping, got a {type(given).__name__}")
    return given


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return in_text(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return None if value.is_nan() else float(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        return value.tolist()
    raise TypeError(f"it has a {type(value).__name__}")


def _without_nan(value: Any) -> Any:
    """The value with None in place of NaN, which counts as missing."""
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, Mapping):
        return {name: _without_nan(each) for name, each in value.items()}
    return [_without_nan(each) for each in value] if isinstance(value, list | tuple) else value
