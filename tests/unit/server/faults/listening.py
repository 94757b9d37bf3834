"""A reader of a stream of server-sent events in a thread, which connects again where it stopped."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from unit.server.faults.server_process import ticket_of


class StreamRejectedError(Exception):
    """A server that is ready opens no stream."""

    def __init__(self, head: bytes) -> None:
        super().__init__(head)
        self.head = head


class Listener:
    """Notes the notifications of some subscriptions as they come, until the block ends."""

    def __init__(
        self, url: Callable[[], str], taken: Sequence[Mapping[str, Any]], after: str | None = None, **asked: str
    ) -> None:
        """`url` is asked for anew whenever it connects."""
        self._url = url
        self._taken = taken
        self._asked = asked
        self.cursor = after
        self.told: list[dict[str, Any]] = []
        """The data of the frames, in the order in which they came."""
        self.cursors: list[int] = []
        self.kinds: list[str] = []
        self.opened = 0
        self.ended = 0
        """How often the server brought a stream to an end."""
        self.rejection = b""
        """Why there is no stream any more."""
        self._stops = threading.Event()
        self._is_open = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        assert self._is_open.wait(60), "the stream did not open"
        return self

    def __exit__(self, *error: object) -> None:
        self._stops.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stops.is_set():
            try:
                with stream_socket(self._url(), self._taken, self.cursor, **self._asked) as connection:
                    self._read(connection)
            except StreamRejectedError as error:
                self.rejection = error.head
                return
            except OSError:
                time.sleep(0.02)

    def _read(self, connection: socket.socket) -> None:
        connection.settimeout(0.2)
        chunks = Chunks()
        rest = b""
        while not self._stops.is_set():
            try:
                part = connection.recv(1 << 16)
            except TimeoutError:
                continue
            if not part:
                return
            *blocks, rest = (rest + chunks.content(part)).split(b"\n\n")
            for block in blocks:
                self._note(block.decode())
            if chunks.is_over:
                self.ended += 1
                return

    def _note(self, block: str) -> None:
        if block.startswith(": welcome"):
            self.opened += 1
            self._is_open.set()
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if "data" in fields:
            self.told.append(json.loads(fields["data"]))
            self.kinds.append(fields["event"])
            self.cursors.append(int(fields["id"]))
        self.cursor = fields.get("id", self.cursor)


class Chunks:
    """Reads the transfer coding of an answer that goes on, as it comes."""

    def __init__(self) -> None:
        self._rest = b""
        self.is_over = False
        """Whether the last chunk has come."""

    def content(self, part: bytes) -> bytes:
        """What is in the chunks that are whole by now."""
        self._rest += part
        found = b""
        while True:
            head, separator, tail = self._rest.partition(b"\r\n")
            if not separator or len(tail) < int(head, 16) + 2:
                return found
            size = int(head, 16)
            self.is_over = not size
            found += tail[:size]
            self._rest = tail[size + 2 :]


def stream_socket(
    url: str, taken: Sequence[Mapping[str, Any]], after: str | None = None, **asked: str
) -> socket.socket:
    """A connection on which the frames of a stream come in chunks. Raises OSError and StreamRejectedError."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), 30)
    try:
        connection.sendall(stream_request(taken, after, **asked))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = connection.recv(1)
            if not byte:
                raise ConnectionError("the server hung up")
            head += byte
        if b" 503 " in head[:20]:
            raise ConnectionError("the server is not ready")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise StreamRejectedError(head)
        return connection
    except BaseException:
        connection.close()
        raise


def stream_request(taken: Sequence[Mapping[str, Any]], after: str | None = None, **asked: str) -> bytes:
    """The request for a stream."""
    query = urlencode([("subscription", each["id"]) for each in taken] + list(asked.items()))
    lines = [f"GET /stream?{query} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {text}" for name, text in ticket_of(*taken).items()]
    lines += [] if after is None else [f"Last-Event-ID: {after}"]
    return "\r\n".join([*lines, "", ""]).encode()
