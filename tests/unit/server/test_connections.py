"""Connections: how long the server keeps an idle one, what a client of ours does once one is closed, and requests that
do not arrive.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from harken.client import Client
from harken.server.connections import protocol_for
from harken.server.settings import ServerSettings
from unit.server.serving import Server, new_name, running_server, settings

pytestmark = pytest.mark.together
KEPT_SECONDS = 2


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that closes idle connections sooner than its clients do."""
    with running_server(tmp_path_factory.mktemp("hasty"), *settings(keep_alive=KEPT_SECONDS)) as found:
        yield found


def test_clients_close_idle_connections_before_the_server_does() -> None:
    others = 60.0  # what proxies and pools of connections keep them for, at most
    httpx_own = httpx.Limits().keepalive_expiry
    assert httpx_own is not None
    assert ServerSettings().keep_alive > max(others, httpx_own)


def test_an_idle_connection_is_kept_for_as_long_as_is_set(hasty_server: Server) -> None:
    with closing(HTTPConnection(urlsplit(hasty_server.url).netloc, timeout=HANGS)) as connection:
        connection.connect()
        first = connection.sock
        for pause in (0.0, KEPT_SECONDS / 2, KEPT_SECONDS / 2):  # each request begins the time anew
            time.sleep(pause)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"alive"}'
        began = time.monotonic()
        assert connection.sock is first
        assert first.recv(1) == b""
        assert time.monotonic() - began > KEPT_SECONDS * 0.9


def test_our_client_goes_on_after_the_server_closed_its_connection(hasty_server: Server) -> None:
    with Client(hasty_server.url) as client:
        id, topic = new_name(), new_name()
        client.subscribe(f"topic = '{topic}'", id=id)
        time.sleep(KEPT_SECONDS * 1.5)
        client.publish({"topic": topic})
        time.sleep(KEPT_SECONDS * 1.5)
        client.subscribe("topic = 'another'")  # without an id, so that it is never sent twice
        time.sleep(KEPT_SECONDS * 1.5)
        assert [each.event for each in client.notifications(id).notifications] == [{"topic": topic}]


# Requests that do not arrive

HEAD_SECONDS = 2.0
HANGS = 60.0
"""A connection that is open after this is open for ever."""
HEAD = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits for requests for two seconds only."""
    options = settings(
        header_timeout=HEAD_SECONDS, body_timeout=1, min_body_rate=1_000, max_header_bytes=10_000, keep_alive=300
    )
    with running_server(tmp_path_factory.mktemp("strict"), *options) as found:
        yield found


def connected(server: Server) -> socket.socket:
    url = urlsplit(server.url)
    return socket.create_connection((url.hostname, url.port), timeout=HANGS)


def rest_of(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection, which it has to do."""
    received = b""
    while piece := connection.recv(65_536):
        received += piece
    return received


def read_until(connection: socket.socket, end: bytes) -> None:
    """Read an answer whose body ends so."""
    received = b""
    while not received.endswith(end):
        piece = connection.recv(65_536)
        assert piece, received
        received += piece


def rejection(received: bytes, status: int, limit: str) -> dict[str, Any]:
    """The problem that an answer tells."""
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0].startswith(f"HTTP/1.1 {status} "), received
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert (headers["content-type"], headers["connection"]) == ("application/problem+json", "close")
    found: dict[str, Any] = json.loads(body)
    assert (found["status"], found["limit"], found["request_id"]) == (status, limit, headers["x-request-id"])
    return found


def trickle(connection: socket.socket, text: bytes, pause: float = 0.1) -> bytes:
    """Send a byte now and then until the server has closed the connection. Returns what it said."""
    received = b""
    with suppress(OSError):
        for position in range(len(text)):
            connection.sendall(text[position : position + 1])
            if select.select([connection], [], [], pause)[0]:
                piece = connection.recv(65_536)
                received += piece
                if not piece:
                    return received
    return received


@pytest.mark.parametrize("begin", [b"", b"GET /stats", HEAD, b"\r\n\r\n"])
def test_a_head_that_does_not_come_closes_the_connection(strict_server: Server, begin: bytes) -> None:
    began = time.monotonic()
    with connected(strict_server) as connection:
        connection.sendall(begin)
        rejection(rest_of(connection), 408, "header_timeout")
    assert time.monotonic() - began > HEAD_SECONDS * 0.9


def test_a_head_that_trickles_has_the_same_time(strict_server: Server) -> None:
    with connected(strict_server) as connection:
        rejection(trickle(connection, HEAD * 10), 408, "header_timeout")


def test_between_requests_ends_of_lines_do_not_keep_a_connection(strict_server: Server) -> None:
    with connected(strict_server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(connection, b'{"status":"alive"}')
        rejection(trickle(connection, b"\r\n" * 300), 408, "header_timeout")


def test_many_half_requests_leave_no_connection_behind(strict_server: Server) -> None:
    """What was reported: most of 220 connections were still there after 93 s."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(strict_server)) for _ in range(220)]
        for each in connections:
            each.sendall(HEAD)
        for each in connections:
            rejection(rest_of(each), 408, "header_timeout")


def test_a_head_without_end_is_rejected(strict_server: Server) -> None:
    with connected(strict_server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000)
        rejection(rest_of(connection), 431, "max_header_bytes")


@pytest.mark.parametrize("length", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"])
def test_a_body_that_does_not_come_closes_the_connection(strict_server: Server, length: bytes) -> None:
    with connected(strict_server) as connection:
        connection.sendall(HEAD + length + b'{"')
        rejection(rest_of(connection), 408, "body_timeout")
    with connected(strict_server) as connection:
        connection.sendall(HEAD + length)
        rejection(trickle(connection, b"x" * 300), 408, "body_timeout")
    assert strict_server.get("/healthz").status_code == 200


def test_a_body_that_nobody_wants_does_not_keep_a_connection(strict_server: Server) -> None:
    """It is answered before its body is there."""
    with connected(strict_server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        assert trickle(connection, b"x" * 300).startswith(b"HTTP/1.1 200 ")
        assert rest_of(connection) == b""


class Clock:
    """What a connection has of a loop: timers, which go off when a test lets time pass, and tasks, which never run."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, Callable[[], object], Mock]] = []

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Mock:
        handle = Mock(is_cancelled=False)
        handle.cancel = lambda: setattr(handle, "is_cancelled", True)
        self._timers.append((self.now + seconds, callback, handle))
        return handle

    def create_task(self, work: Coroutine[Any, Any, None]) -> Mock:
        work.close()
        return Mock()

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [each for each in self._timers if each[0] <= end and not each[2].is_cancelled]:
            first = min(due, key=lambda each: each[0])
            self._timers.remove(first)
            self.now = first[0]
            first[1]()
        self.now = end


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def held(clock: Clock) -> Any:
    """A connection whose time is the test's, with a body of which 500 bytes are wanted in 10 s."""
    config = uvicorn.Config(
        Mock(), http=protocol_for(ServerSettings(body_timeout=10, min_body_rate=50)), lifespan="off"
    )
    config.load()
    connection: Any = config.http_protocol_class(config, ServerState(), {}, clock)  # type: ignore[call-arg, arg-type]
    transport = Mock(**{"get_extra_info.return_value": None, "is_closing.return_value": False})
    connection.connection_made(transport)
    connection.data_received(HEAD + b"Content-Length: 1000000\r\n\r\n")
    return connection


def test_a_slow_body_that_is_quick_enough_is_read(held: Any, clock: Clock) -> None:
    for _ in range(100):
        held.data_received(b"x" * 60)
        clock.pass_by(1)
    assert not held.transport.close.called
    for _ in range(30):
        held.data_received(b"x" * 40)
        clock.pass_by(1)
    assert held.transport.close.called


def test_a_body_that_the_server_does_not_read_may_wait(held: Any, clock: Clock) -> None:
    """It reads no more than 64 KiB before the application wants them."""
    held.data_received(b"x" * 70_000)
    assert held.flow.read_paused
    clock.pass_by(1_000)
    assert not held.transport.close.called
    held.flow.resume_reading()
    clock.pass_by(21)
    assert held.transport.close.called, "the client's own time is counted again"


def test_what_takes_long_on_the_server_is_nobodys_fault(strict_server: Server) -> None:
    """A long poll waits, and a stream goes on, for longer than requests have time to arrive."""
    taken = strict_server.subscribe("a = 1")
    with strict_server.stream(taken) as frames:
        assert strict_server.page(taken, wait=3 * HEAD_SECONDS)["notifications"] == []
        strict_server.publish({"a": 1})
        assert next(frames).data["subscription"] == taken.id


def test_requests_that_come_together_are_all_answered(strict_server: Server) -> None:
    """A second head may be incomplete for as long as the answer to the first is under way."""
    taken = strict_server.subscribe("a = 2")
    poll = f"GET /notifications?subscription={taken.id}&wait={3 * HEAD_SECONDS:g} HTTP/1.1\r\nHost: localhost\r\n"
    with connected(strict_server) as connection:
        connection.sendall(f"{poll}Harken-Ticket: {taken.ticket}\r\n\r\nGET /healthz HTTP/1.1\r\nHo".encode())
        read_until(connection, f'"next": "{strict_server.page(taken)["next"]}"}}'.encode())
        connection.sendall(b"st: localhost\r\nConnection: close\r\n\r\n")
        assert rest_of(connection).endswith(b'{"status":"alive"}')
