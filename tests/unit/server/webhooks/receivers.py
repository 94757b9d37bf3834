"""Receivers of webhooks for the tests: a server on 127.0.0.1 that keeps what it is sent and answers as it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network

HERE = (IPv4Network("127.0.0.0/8"),)

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Inbox:
    """The port that a server listens on, and what came in."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def answering(status: str, body: bytes = b"", *headers: str) -> Answer:
    """An answer with a status line's code and phrase, a body and further headers."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return answer


def writing(data: bytes, every: float = 0.0, times: int = 1) -> Answer:
    """An answer of raw bytes, written several times with a pause after each."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for _ in range(times):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(every)

    return answer


@asynccontextmanager
async def receiving(answer: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[Inbox]:
    """A server that gives one answer to every request."""
    receiver = Inbox()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, OSError):
                while True:  # a receiver that would keep the connection
                    receiver.requests.append(await _request(reader))
                    await answer(writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
    return Request(line, headers, await reader.readexactly(int(headers["content-length"])))
