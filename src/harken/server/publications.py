"""Requests that publish: divide the body into pieces, one for each event, by its content type."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from harken.errors import DecodeError, HarkenError, LimitError
from harken.events.json_array import array_elements
from harken.events.json_rows import json_line_pieces
from harken.events.json_text import decode_object
from harken.events.pieces import BOM, Piece, too_long
from harken.limits import Limits
from harken.server.cloudevents import BATCHED, STRUCTURED, binary_envelope, is_binary, reject_incomplete
from harken.store.stored import CLOUDEVENT, JSON, XML

JSON_TYPES = ("application/json", "text/json", "application/x-www-form-urlencoded", "")
"""Content types that are read as JSON: also the default of `curl -d`, and none at all."""
LINE_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
XML_TYPES = ("application/xml", "text/xml")
_GZIP_MAGIC = b"\x1f\x8b"
PUBLISHED_TYPES = (JSON_TYPES[0], LINE_TYPES[0], XML_TYPES[0], STRUCTURED, BATCHED)


class ContentTypeError(HarkenError):
    """A request has an unsupported content type."""


class IdempotencyKeyError(HarkenError):
    """An earlier request had the same idempotency key and other content."""


@dataclass(slots=True)
class Incoming:
    """The events of one request, not decoded yet."""

    kind: str
    pieces: list[Piece]
    keys: list[bytes | None] = field(default_factory=list)
    """For CloudEvents, the key by which duplicates of each are recognised; empty for other events."""


def main_type(content_type: str) -> str:
    """A content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def incoming(headers: Mapping[str, str], body: bytes, limits: Limits, most: int, publisher: str | None) -> Incoming:
    """The events of a request. CloudEvents of two publishers are never duplicates of each other.

    Raises ContentTypeError, DecodeError if the body as a whole cannot be read, and LimitError if it has more than
    `most` events.
    """
    if body.startswith(_GZIP_MAGIC):
        hint = "send it with the header Content-Encoding: gzip"
        raise DecodeError("the body is compressed by gzip, and the request does not say so", hint=hint)
    if is_binary(headers):
        return _cloudevents([_one(binary_envelope(headers, body), limits)], limits, publisher)
    kind = main_type(headers.get("content-type", ""))
    if kind in XML_TYPES:
        return Incoming(XML, [_one(body, limits)])
    if kind == STRUCTURED:
        return _cloudevents([_one(body, limits)], limits, publisher)
    if kind == BATCHED:
        return _cloudevents(_counted(_array(body, limits), most), limits, publisher)
    if kind in LINE_TYPES:
        return Incoming(JSON, _counted(json_line_pieces(io.BytesIO(body), limits), most))
    if kind in JSON_TYPES:
        text = body.removeprefix(BOM).lstrip()
        if text.startswith(b"["):
            return Incoming(JSON, _counted(_array(body, limits), most))
        if not text:
            raise DecodeError("the body is empty", hint="send a JSON object, or one a line as application/x-ndjson")
        return Incoming(JSON, [_one(body.removeprefix(BOM), limits)])
    hint = f"send {', '.join(PUBLISHED_TYPES)}, or a CloudEvent in binary mode"
    raise ContentTypeError(f"events cannot be sent as `{kind:.60}`", hint=hint)


def _one(data: bytes, limits: Limits) -> Piece:
    return Piece(data, 1, error=None if len(data) <= limits.max_event_bytes else too_long(limits))


def _array(body: bytes, limits: Limits) -> Iterator[Piece]:
    return array_elements(iter([body.removeprefix(BOM)]), limits, 1)


def _counted(pieces: Iterator[Piece], most: int) -> list[Piece]:
    """The pieces as a list. Raises LimitError if there are more than `most`."""
    counted = list(islice(pieces, most + 1))
    if len(counted) > most:
        message = f"the request has more than {most:,} events"
        raise LimitError(message, limit="max_batch_events", hint="send fewer at once")
    return counted


def _cloudevents(pieces: list[Piece], limits: Limits, publisher: str | None) -> Incoming:
    """CloudEvents, each with a key of its publisher, source and id, by which duplicates are recognised."""
    scope = ("cloudevent",) if publisher is None else ("cloudevent", publisher)
    keys: list[bytes | None] = []
    checked: list[Piece] = []
    for piece in pieces:
        key: bytes | None = None
        fault = piece.error
        if fault is None:
            try:
                envelope = decode_object(piece.data, limits)
                reject_incomplete(envelope)
                key = request_key(*scope, envelope["source"], envelope["id"])
            except HarkenError as error:
                fault = error
        keys.append(key)
        checked.append(piece._replace(error=fault))
    return Incoming(CLOUDEVENT, checked, keys)


def request_key(*parts: str) -> bytes:
    """A key for a request or an event, as a hash of its parts. Repetitions have the same key."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def request_hash(headers: Mapping[str, str], body: bytes) -> bytes:
    """A hash of a request's content: its body, its content type, and a CloudEvent's attributes."""
    attributes = sorted((name.lower(), value) for name, value in headers.items() if name.lower().startswith("ce-"))
    head = json.dumps([main_type(headers.get("content-type", "")), attributes]).encode()
    hashed = hashlib.sha256(hashlib.sha256(head).digest())
    hashed.update(body)
    return hashed.digest()


def one_line(piece: Piece, kind: str) -> bytes:
    """An event as the journal has it: JSON on one line, so that streams can send it; XML unchanged."""
    data = piece.data if kind == XML else piece.data.strip()
    if kind != XML and (b"\n" in data or b"\r" in data):  # in valid JSON these stand between tokens only
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def rejection(position: int, error: HarkenError) -> dict[str, Any]:
    """A rejected event in the answer to its publisher."""
    plain = error.to_dict()
    plain.pop("source", None)
    return {"position": position, **plain}
