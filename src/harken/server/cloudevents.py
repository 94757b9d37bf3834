"""CloudEvents over HTTP, in their three modes. The event is the JSON envelope: subscriptions say `data.price > 5`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from harken.errors import DecodeError

STRUCTURED, BATCHED = "application/cloudevents+json", "application/cloudevents-batch+json"
_REQUIRED = ("specversion", "id", "source", "type")
_NO_ATTRIBUTES = ("data", "datacontenttype")
"""In binary mode these are in the body and in the header Content-Type, not in `ce-` headers."""
_NAME = re.compile(r"[a-z0-9]+")
_JSON_TYPE = re.compile(r"(application|text)/([\w.+-]+\+)?json", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/|(application|image)/([\w.+-]+\+)?xml|.*;\s*charset=utf-8", re.IGNORECASE)


def is_binary(headers: Mapping[str, str]) -> bool:
    """Whether a request is a CloudEvent in binary mode: its attributes are headers, its body is the data."""
    return "ce-specversion" in headers


def binary_envelope(headers: Mapping[str, str], body: bytes) -> bytes:
    """The JSON envelope of an event in binary mode. Raises DecodeError."""
    envelope: dict[str, Any] = {}
    for name, value in headers.items():
        if name.lower().startswith("ce-"):
            key = name[3:].lower()
            if key in _NO_ATTRIBUTES:
                hint = "send the data as the body, and its type as Content-Type"
                raise DecodeError(f"`ce-{key}` is not an attribute of a CloudEvent in binary mode", hint=hint)
            if not _NAME.fullmatch(key):
                hint = "use letters and digits only"
                raise DecodeError(f"`ce-{key}` is not an attribute of a CloudEvent", hint=hint)
            envelope[key] = unquote(value)
    reject_incomplete(envelope)
    content_type = headers.get("content-type")
    if content_type:
        envelope["datacontenttype"] = content_type
    head = json.dumps(envelope, ensure_ascii=False).encode()
    if not body:
        return head
    return head[:-1] + _data(body, content_type or "application/json") + b"}"


def _data(body: bytes, content_type: str) -> bytes:
    """The data as a member of the envelope."""
    if _JSON_TYPE.match(content_type):
        _reject_no_json(body)
        return b', "data": ' + body
    if _TEXT_TYPE.match(content_type):
        try:
            return b', "data": ' + json.dumps(body.decode(), ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"the data is not UTF-8 text: {error.reason}") from None
    return b', "data_base64": ' + json.dumps(base64.b64encode(body).decode()).encode()


def _reject_no_json(body: bytes) -> None:
    """Raise DecodeError unless the data is JSON. `1, "id": 2` is not, but would be inside the envelope."""
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the data is not JSON: {error}") from None


def reject_incomplete(envelope: Mapping[str, Any]) -> None:
    """Raise DecodeError unless an envelope has the attributes that CloudEvents require."""
    for name in _REQUIRED:
        if not isinstance(envelope.get(name), str) or not envelope[name]:
            raise DecodeError(f"the CloudEvent has no `{name}`")
    if envelope["specversion"] != "1.0":
        message = f"specversion {envelope['specversion']!r:.20} of CloudEvents is not supported"
        raise DecodeError(message, hint="write 1.0")
