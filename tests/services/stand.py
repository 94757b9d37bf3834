"""A real HTTP server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Seen:
    """A request as the server got it. The names of headers are in lower case."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass(frozen=True)
class Reply:
    """What the server answers. With `pieces` the body is a stream, which ends by closing; `is_lost` answers nothing."""

    status: int = 200
    json: Any = None
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    is_lost: bool = False

    def content(self) -> bytes:
        return self.body if self.json is None else json.dumps(self.json).encode()


def problem(status: int, detail: str, **more: Any) -> Reply:
    plain = {"type": "urn:harken:some-error", "title": "Some", "status": status, "detail": detail, **more}
    headers = {"Content-Type": "application/problem+json", "X-Request-Id": "r-1"}
    return Reply(status, {**plain, "request_id": "r-1"}, headers=headers)


class Stand:
    """A server that gives the replies it was handed, one a request, and remembers what it was asked."""

    def __init__(self, port: int = 0) -> None:
        """Without a port it takes one that is free."""
        self.seen: list[Seen] = []
        self.replies: deque[Reply] = deque()
        stand = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline()
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self._answer()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                headers = {name.lower(): text for name, text in self.headers.items()}
                stand.seen.append(Seen(self.command, unquote(parts.path), parse_qsl(parts.query), headers, body))
                reply = stand.replies.popleft() if stand.replies else Reply(500, body=b"no reply was handed to me")
                if reply.is_lost:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, text in reply.headers.items():
                    self.send_header(name, text)
                if reply.pieces is None:
                    self.send_header("Content-Length", str(len(reply.content())))
                    self.end_headers()
                    self.wfile.write(reply.content())
                    return
                self.close_connection = True
                self.send_header("Connection", "close")
                self.end_headers()
                for piece in reply.pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def will(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    def __enter__(self) -> Stand:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
