"""Bodies that come compressed: gzip is unpacked while it is read, a piece at a time, so that a bound can be kept."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from starlette.types import Message, Receive

from harken.errors import DecodeError
from harken.server.publications import ContentTypeError

ACCEPTED = "gzip"
"""What a body may be compressed with, as the header Accept-Encoding says it."""
_PLAIN = ("", "identity")
_GZIP = ("gzip", "x-gzip")
_PIECE = 1 << 18
"""Bytes that are unpacked at once."""
_WITH_GZIP_HEADER = zlib.MAX_WBITS | 16


class ContentEncodingError(ContentTypeError):
    """A body is compressed in a way that is not known."""


def is_compressed(content_encoding: str) -> bool:
    """Whether a body has to be unpacked. Raises ContentEncodingError if it cannot be."""
    name = content_encoding.strip().lower()
    if name not in (*_PLAIN, *_GZIP):
        hint = f"send it as it is, or with Content-Encoding: {ACCEPTED}"
        raise ContentEncodingError(f"bodies are not unpacked from `{name:.60}`", hint=hint)
    return name in _GZIP


def inflated(receive: Receive) -> Receive:
    """The messages of a gzip body, unpacked. They raise DecodeError for one that is damaged or ends too early."""
    pieces = _pieces(receive)
    is_over = False

    async def receiving() -> Message:
        nonlocal is_over
        if is_over:
            return await receive()  # only that the client has left
        piece = await anext(pieces, None)
        if isinstance(piece, dict):
            return piece
        is_over = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": not is_over}

    return receiving


async def _pieces(receive: Receive) -> AsyncIterator[bytes | Message]:
    """The unpacked pieces of a body, or the message that its client has left."""
    member = zlib.decompressobj(_WITH_GZIP_HEADER)
    is_empty = has_more = True
    while has_more:
        message = await receive()
        if message["type"] != "http.request":
            yield message
            return
        packed, has_more = message.get("body", b""), message.get("more_body", False)
        is_empty = is_empty and not packed
        is_held_back = False
        while packed or is_held_back:
            if member.eof:  # another file follows, which belongs to the same body
                member = zlib.decompressobj(_WITH_GZIP_HEADER)
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error as error:
                raise DecodeError(f"the body is not gzip: {error}") from None
            packed = member.unused_data if member.eof else member.unconsumed_tail
            is_held_back = len(piece) == _PIECE and not member.eof
            if piece:
                yield piece
                await asyncio.sleep(0)  # others wait for the event loop
    if not is_empty and not member.eof:
        raise DecodeError("the gzip body ends too early")
