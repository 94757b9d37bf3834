"""Compressed bodies: gzip is decompressed piece by piece as it is read, so that a limit on bytes can be kept."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from starlette.types import Message, Receive

from harken.errors import DecodeError
from harken.server.publications import ContentTypeError

ACCEPTED = "gzip"
"""The encodings of compressed bodies, for the header Accept-Encoding."""
_PLAIN = ("", "identity")
_GZIP = ("gzip", "x-gzip")
_PIECE = 1 << 18
"""Most bytes that are decompressed at once."""
_WITH_GZIP_HEADER = zlib.MAX_WBITS | 16


class ContentEncodingError(ContentTypeError):
    """A body has an unsupported Content-Encoding."""


def is_compressed(content_encoding: str) -> bool:
    """Whether a body has to be decompressed. Raises ContentEncodingError if the encoding is not supported."""
    name = content_encoding.strip().lower()
    if name not in (*_PLAIN, *_GZIP):
        hint = f"send the body uncompressed, or with Content-Encoding: {ACCEPTED}"
        raise ContentEncodingError(f"the Content-Encoding `{name:.60}` is not supported", hint=hint)
    return name in _GZIP


def inflated(receive: Receive) -> Receive:
    """Receive a gzip body decompressed. Raises DecodeError if it is damaged or ends too early."""
    pieces = _pieces(receive)
    is_over = False

    async def receiving() -> Message:
        nonlocal is_over
        if is_over:
            return await receive()  # after the body, only a disconnect can follow
        piece = await anext(pieces, None)
        if isinstance(piece, dict):
            return piece
        is_over = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": not is_over}

    return receiving


async def _pieces(receive: Receive) -> AsyncIterator[bytes | Message]:
    """The decompressed pieces of a body, or the message that the client has disconnected."""
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
            if member.eof:  # a gzip body may have several members
                member = zlib.decompressobj(_WITH_GZIP_HEADER)
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error as error:
                raise DecodeError(f"the body is not gzip: {error}") from None
            packed = member.unused_data if member.eof else member.unconsumed_tail
            is_held_back = len(piece) == _PIECE and not member.eof
            if piece:
                yield piece
                await asyncio.sleep(0)  # let other tasks run
    if not is_empty and not member.eof:
        raise DecodeError("the gzip body ends too early")
