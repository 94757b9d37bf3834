"""HTTP connections whose clients have to send their requests in time.

uvicorn limits how long a connection is idle between requests, but not how long a request takes to arrive: a client that
sends half of one could hold a connection for ever. Here the head of a request has a timeout, and a body a minimum rate.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from harken.errors import LimitError
from harken.server.problems import PROBLEM_JSON, problem_of
from harken.server.settings import ServerSettings

_NOTHING, _HEAD, _BODY = "nothing", "a head", "a body"


def protocol_for(settings: ServerSettings) -> type[asyncio.Protocol]:
    """uvicorn's protocol with the timeouts and limits of these settings."""
    return type("TimedConnection", (_Connection,), {"settings": settings})


class _Connection(HttpToolsProtocol):
    """One connection. A head or body that does not arrive at once has a timer."""

    settings: ClassVar[ServerSettings]

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._awaited = _HEAD
        self._step = 0
        """Counts the heads and bodies that began and ended. A timer is for one of them."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_step = 0
        self._head_bytes = 0
        self._window_bytes = 0
        """Bytes that arrived since the timer was set."""
        self._was_paused = False
        """Whether the server paused reading since the timer was set."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._window_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._awaited == _HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > self.settings.max_header_bytes:
                most = self.settings.max_header_bytes
                self._reject(LimitError(f"the head has more than {most:,} bytes", limit="max_header_bytes"))
                return
        elif self._awaited == _NOTHING and self.timeout_keep_alive_task is None and self._is_answered:
            self._await(_HEAD)  # ends of lines between requests, or the rest of an unread body
        self._watch()

    def on_message_begin(self) -> None:
        self._await(_HEAD)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._await(_BODY)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._was_paused = self._was_paused or self.flow.read_paused

    def on_message_complete(self) -> None:
        self._await(_NOTHING)
        super().on_message_complete()

    @property
    def _is_answered(self) -> bool:
        """Whether all requests are answered."""
        return self.cycle is None or self.cycle.response_complete

    def _await(self, what: str) -> None:
        self._awaited = what
        self._step += 1
        self._head_bytes = 0

    def _watch(self) -> None:
        """Set a timer for the head or body that is awaited now, unless it has one."""
        if self._timer is not None and self._timer_step == self._step:
            return
        self._drop_timer()
        if self._awaited != _NOTHING:
            self._set_timer()

    def _set_timer(self) -> None:
        self._timer_step, self._window_bytes, self._was_paused = self._step, 0, self.flow.read_paused
        seconds = self.settings.header_timeout if self._awaited == _HEAD else self.settings.body_timeout
        if seconds:
            self._timer = self.loop.call_later(seconds, self._on_time)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        settings = self.settings
        if self._awaited == _HEAD:
            if not self._is_answered:  # the head follows a request whose answer is not finished
                self._set_timer()
                return
            message = f"the head of the request did not arrive within {settings.header_timeout:g} s"
            self._reject(LimitError(message, limit="header_timeout"))
        elif self._was_paused or self._window_bytes >= settings.min_body_rate * settings.body_timeout:
            self._set_timer()
        else:
            message = f"the body arrived at less than {settings.min_body_rate:,} bytes a second"
            self._reject(LimitError(message, limit="body_timeout"))

    def _reject(self, error: LimitError) -> None:
        """Answer with an error, unless an answer has begun, and close the connection."""
        is_body = self._awaited == _BODY
        if not is_body or not (self.cycle.response_started or self.cycle.response_complete):
            if is_body:  # the application sees a disconnected client, and its answer is dropped
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            request_id = secrets.token_hex(8)
            content = problem_of(error, request_id)
            body = json.dumps(content).encode()
            headers = (
                f"content-type: {PROBLEM_JSON}\r\ncontent-length: {len(body)}\r\n"
                f"connection: close\r\nx-request-id: {request_id}\r\n\r\n"
            )
            self.transport.write(STATUS_LINE[content["status"]] + headers.encode() + body)
        self._drop_timer()
        self.transport.close()
