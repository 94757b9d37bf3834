"""Streams that nobody reads cost little and end, and thousands of streams that are read all get their notifications."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from harken.server.event_stream import Frames
from harken.server.service import Service
from harken.server.streams import Stream
from harken.store import StoredDelivery
from unit.server.faults.in_process import draft, running
from unit.server.faults.in_process import publish as publish_in_process
from unit.server.faults.listening import Listener, stream_request
from unit.server.faults.server_process import (
    ServerProcess,
    ending,
    publish,
    serving,
    set_options,
    subscribe,
    wait_until,
)

pytestmark = pytest.mark.processes
LONG = os.environ.get("HARKEN_LONG") == "1"
PADDING = "x" * 20_000
STUCK = 60
MEGABYTE = 1 << 20
STREAMS = 8_000 if LONG else 2_000
_OTHER_FILES = 500


@contextmanager
def stuck(server: ServerProcess, taken: Sequence[Mapping[str, Any]]) -> Iterator[socket.socket]:
    """A client that asks for a stream from the beginning on, and never reads it."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(stream_request(taken, "0"))
        yield connection


def open_streams(client: httpx.Client) -> int:
    return int(client.get("/stats").json()["streams"])


def open_sockets(server: ServerProcess) -> int:
    count = 0
    for each in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the server closes some meanwhile
            count += os.readlink(each).startswith("socket:")
    return count


def publish_megabytes(client: httpx.Client, megabytes: int) -> int:
    """Publish events that match. Returns how many."""
    count = megabytes * MEGABYTE // len(PADDING)
    for start in range(0, count, 50):
        publish(client, *({"n": number, "padding": PADDING} for number in range(start, min(start + 50, count))))
    return count


def test_streams_that_nobody_reads_cost_little_and_end(tmp_path: Path) -> None:
    with serving(tmp_path, *set_options(stream_timeout=4)) as server, server.client() as client, ExitStack() as stack:
        taken = subscribe(client, "n >= 0")
        listener = stack.enter_context(Listener(lambda: server.url, [taken]))
        published = publish_megabytes(client, 30)  # caches are as full as they get
        wait_until(lambda: len(listener.told) == published)
        sockets, before = open_sockets(server), server.resident_bytes()

        for _ in range(STUCK):
            stack.enter_context(stuck(server, [taken]))
        wait_until(lambda: open_streams(client) == STUCK + 1)
        published += publish_megabytes(client, 30)
        wait_until(lambda: len(listener.told) == published)
        grown = (server.resident_bytes() - before) / MEGABYTE
        print(f"{STUCK} streams that nobody reads: {grown:.1f} MB more")
        assert grown < 2 * STUCK
        wait_until(lambda: open_streams(client) == 1)
        wait_until(lambda: open_sockets(server) == sockets)

        publish(client, {"n": 1})
        wait_until(lambda: len(listener.told) == published + 1)
        assert listener.opened == 1


async def opened_streams(
    server: ServerProcess, taken: Sequence[Mapping[str, Any]], count: int
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    found = []
    for number in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(stream_request([taken[number % len(taken)]]))
        found.append((reader, writer))
    for reader, _ in found:
        await asyncio.wait_for(reader.readuntil(b": welcome"), 60)
    return found


def test_thousands_of_streams_are_all_told(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(STREAMS, hard - _OTHER_FILES)
    server = ServerProcess(tmp_path, *set_options(max_streams=count, max_streams_per_caller=count))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OTHER_FILES, hard))  # the server raises it as far as it may
        with ending(server):
            server.start()
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            asyncio.run(tell_all(server, count))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def tell_all(server: ServerProcess, count: int) -> None:
    with server.client() as client:
        taken = [subscribe(client, "n = 1 OR n = 2", f"s{number}") for number in range(20)]
        before = server.resident_bytes()
        streams = await opened_streams(server, taken, count)
        try:
            each = (server.resident_bytes() - before) / count
            assert open_streams(client) == count
            seconds = []
            for number in (1, 2):
                began = time.monotonic()
                await asyncio.to_thread(publish, client, {"n": number})
                text = f'"event": {{"n":{number}}}'.encode()
                await asyncio.wait_for(asyncio.gather(*(reader.readuntil(text) for reader, _ in streams)), 60)
                seconds.append(time.monotonic() - began)
            print(f"{count:,} streams, {each / 1024:.1f} KiB each, all told within {max(seconds):.2f} s")
            assert each < 200 * 1024
        finally:
            for _, writer in streams:
                writer.close()
        await asyncio.to_thread(wait_until, lambda: open_streams(client) == 0)


def test_a_digest_does_not_grow_without_end(tmp_path: Path) -> None:
    """A stream of a subscription that may wait for hours is sent what it has once that is much."""

    async def listen(service: Service) -> None:
        await service.subscriptions.subscribe([draft("n >= 0", delivery=StoredDelivery(max_delay=3_600))])
        stream = Stream({"a": 0}, 0)
        service.streams.open(stream)
        frames = Frames(service, stream, None)()
        for number in range(12):
            await publish_in_process(service, b'{"n": %d}' % number)
        first = await asyncio.wait_for(anext(frames), 60)
        assert [each["event"]["n"] for each in digest(first)][:5] == list(range(5))
        rest = 12 - len(digest(first))
        await publish_in_process(service, *(b'{"n": 99, "padding": "%s"}' % PADDING.encode() for _ in range(20)))
        second = await asyncio.wait_for(anext(frames), 60)
        assert len(digest(second)) > rest
        await frames.aclose()

    running(tmp_path, listen, max_digest=5)


def digest(frame: str) -> list[dict[str, Any]]:
    """The notifications of a frame."""
    kind, data = (line.split(": ", 1)[1] for line in frame.strip().split("\n")[1:])
    assert kind == "digest"
    found: list[dict[str, Any]] = json.loads(data)["notifications"]
    return found
