"""Load for an HTTP server on this machine: each connection sends its next request after an answer, or at a pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

_END_OF_HEAD = b"\r\n\r\n"


@dataclass(slots=True)
class Load:
    """The outcome of a load: latencies and failures."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    """Of each request, in seconds."""
    failures: list[bytes] = field(default_factory=list)
    """The heads of answers that were not 2xx."""

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds


def request_bytes(path: str, body: bytes, content_type: str, port: int) -> bytes:
    """The bytes of a POST request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run_load(port: int, requests: list[bytes], seconds: float, connections: int, pace: float | None = None) -> Load:
    """Send the requests over and over for `seconds`; at most `pace` requests a second over all connections."""
    return asyncio.run(_run(port, requests, seconds, connections, pace))


async def _run(port: int, requests: list[bytes], seconds: float, connections: int, pace: float | None) -> Load:
    load = Load(0.0)
    source = cycle(requests)
    loop = asyncio.get_running_loop()
    ends = time.perf_counter() + seconds
    opened = [
        await loop.create_connection(lambda: _Connection(source, load, ends, pace, connections), "127.0.0.1", port)
        for _ in range(connections)
    ]
    began = time.perf_counter()
    for _, connection in opened:
        connection.begin()
    await asyncio.gather(*(connection.done for _, connection in opened))
    load.seconds = time.perf_counter() - began
    return load


class _Connection(asyncio.Protocol):
    """Sends one request at a time until the load ends."""

    def __init__(self, source: Iterator[bytes], load: Load, ends: float, pace: float | None, connections: int) -> None:
        self._source = source
        self._load = load
        self._ends = ends
        self._gap = 0.0 if pace is None else connections / pace
        self._received = bytearray()
        self._sent_at = 0.0
        self._due = 0.0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed a connection"))

    def begin(self) -> None:
        self._due = time.perf_counter()
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_END_OF_HEAD)
        if end < 0:
            return
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(self._received) < end + 4 + length:
            return
        now = time.perf_counter()
        if head[9:10] == b"2":
            self._load.latencies.append(now - self._sent_at)
        else:
            self._load.failures.append(bytes(self._received[:300]))
        self._received.clear()
        self._due += self._gap
        if now >= self._ends:
            self._finish()
        elif self._gap and self._due > now:
            asyncio.get_running_loop().call_later(self._due - now, self._send)
        else:
            self._send()

    def _send(self) -> None:
        assert self._transport is not None
        if time.perf_counter() >= self._ends:
            self._finish()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(next(self._source))

    def _finish(self) -> None:
        assert self._transport is not None
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()
