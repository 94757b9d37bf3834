"""Receivers of webhooks for the fault tests: an HTTP server in threads, whose paths answer as a test tells them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSBmYXVsdCB0ZXN0cyE="
"""What the subscriptions of the tests have their webhooks signed with."""


@dataclass(frozen=True)
class Arrival:
    """A message that came in, and when."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)
    fault: WebhookVerificationError | None = field(default=None, init=False)
    """What is wrong with the signature. It is verified when the message arrives: it is valid for five minutes."""

    def __post_init__(self) -> None:
        try:
            Webhook(SECRET).verify(self.body, dict(self.headers))
        except WebhookVerificationError as error:
            object.__setattr__(self, "fault", error)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        """The body, whose signature must be right."""
        if self.fault is not None:
            raise self.fault
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Answer:
    """How a receiver answers."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0
    """Seconds that it takes."""
    drips: bool = False
    """Whether it sends a byte a second, and comes to no end."""


OK = Answer()
Choice = Callable[[Arrival, int], Answer]
"""The answer to a message, by how many came to its path before."""


class Receiver:
    """A server on 127.0.0.1."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.otherwise: Choice = lambda arrival, count: OK
        """For paths that nothing else was said of."""
        self._choices: dict[str, Choice] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self.port = self._server.server_port

    def will(self, path: str, *answers: Answer | Choice) -> None:
        """Have a path answer in turn, and the last time and again; or as a function says."""

        def in_turn(arrival: Arrival, count: int) -> Answer:
            chosen = answers[min(count, len(answers) - 1)]
            return chosen if isinstance(chosen, Answer) else chosen(arrival, count)

        self._choices[path] = in_turn

    def delivery(self, path: str = "/", **more: Any) -> dict[str, Any]:
        """What a subscription says that wants its notifications here."""
        return {"webhook": {"url": f"http://127.0.0.1:{self.port}{path}", "secret": SECRET}, **more}

    def at(self, path: str) -> list[Arrival]:
        with self._lock:
            return [each for each in self.arrivals if each.path == path]

    def take(self, arrival: Arrival) -> Answer:
        """Note a message. Returns how to answer it."""
        with self._lock:
            self.arrivals.append(arrival)
            count = self._counts.get(arrival.path, 0)
            self._counts[arrival.path] = count + 1
        return self._choices.get(arrival.path, self.otherwise)(arrival, count)

    def pause(self, seconds: float) -> bool:
        """Wait. Returns False once the receiver ends."""
        return not self._ends.wait(seconds)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that hangs up is no news."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed
                self.close_connection = True
                return
            headers = {name.lower(): text for name, text in self.headers.items()}
            answer = receiver.take(Arrival(self.path, headers, body))
            self.close_connection = True
            if answer.after and not receiver.pause(answer.after):
                return
            if answer.drips:
                self._drip()
                return
            self.send_response(answer.status)
            for name, text in {"Content-Length": "0", "Connection": "close", **answer.headers}.items():
                self.send_header(name, text)
            self.end_headers()

        def _drip(self) -> None:
            with suppress(OSError):
                for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Drip: 1\r\n" * 1_000:
                    self.wfile.write(bytes([byte]))
                    if not receiver.pause(0.2):
                        return

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def dead_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def contents(arrivals: Sequence[Arrival]) -> list[dict[str, Any]]:
    return [each.content for each in arrivals]
