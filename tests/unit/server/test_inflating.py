"""Bodies of gzip, however they are cut into messages: unpacked a piece at a time, and no more than is asked for."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Sequence

import pytest
from starlette.types import Message

from harken.errors import DecodeError
from harken.server.inflating import inflated

MEBIBYTE = 1 << 20


def unpacked(*messages: Message) -> list[Message]:
    """What comes of the messages of a request, up to the last."""
    waiting = [*messages]

    async def receive() -> Message:
        return waiting.pop(0)

    async def run() -> list[Message]:
        receiving = inflated(receive)
        found = [await receiving()]
        while found[-1].get("more_body"):
            found.append(await receiving())
        return found

    return asyncio.run(run())


def parts(body: bytes, *sizes: int) -> list[Message]:
    """A body as messages of these sizes, and a last one of the rest."""
    messages = []
    for size in sizes:
        messages.append({"type": "http.request", "body": body[:size], "more_body": True})
        body = body[size:]
    return [*messages, {"type": "http.request", "body": body, "more_body": False}]


def joined(messages: Sequence[Message]) -> bytes:
    return b"".join(each["body"] for each in messages)


@pytest.mark.parametrize("size", [0, 1, 1 << 18, (1 << 18) + 1, 3 << 18, 5_000_000])
def test_a_body_is_as_it_was_before(size: int) -> None:
    for body in (b"x" * size, random.Random(size).randbytes(size)):
        packed = gzip.compress(body)
        for sizes in ((), (1,), (0, 0), (9, len(packed)), (len(packed) // 2, 0, 3)):
            assert joined(unpacked(*parts(packed, *sizes))) == body


def test_several_files_are_one_body() -> None:
    packed = gzip.compress(b"one, ") + gzip.compress(b"") + gzip.compress(b"two")
    for size in range(len(packed) + 1):
        assert joined(unpacked(*parts(packed, size))) == b"one, two"


def test_no_body_at_all() -> None:
    assert joined(unpacked(*parts(b"", 0))) == b""


def test_a_large_body_comes_in_pieces() -> None:
    messages = unpacked(*parts(gzip.compress(b"x" * (8 * MEBIBYTE))))
    assert max(len(each["body"]) for each in messages) <= MEBIBYTE


@pytest.mark.parametrize("cut", [1, 5, 12, -1, -9])
def test_a_body_that_ends_too_early(cut: int) -> None:
    packed = gzip.compress(b"some text that is packed")
    with pytest.raises(DecodeError, match="ends too early"):
        unpacked(*parts(packed[:cut]))


def test_a_body_that_is_damaged() -> None:
    packed = bytearray(gzip.compress(b"some text that is packed"))
    packed[-6] ^= 1
    for body in (b"{}", bytes(packed), gzip.compress(b"x") + b"more"):
        with pytest.raises(DecodeError, match="not gzip"):
            unpacked(*parts(body))


def test_a_client_that_leaves() -> None:
    found = unpacked(*parts(gzip.compress(b"x"), 5)[:1], {"type": "http.disconnect"})
    assert found == [{"type": "http.disconnect"}]
