"""The middleware of every request: request id, host name, origin, rate limit, readiness, limit on the body, log line,
metrics, and headers.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections import OrderedDict
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harken.errors import AccessError, HarkenError, LimitError, StoreUnavailableError
from harken.server.access import AccessControl, hashed_key
from harken.server.host_names import HostNames
from harken.server.inflating import ContentEncodingError, inflated, is_compressed
from harken.server.metrics import Metrics
from harken.server.problems import InvalidRequestError, MisdirectedError, problem_response
from harken.server.publications import LINE_TYPES, main_type
from harken.server.requests import SLASH
from harken.server.service import Service

log = logging.getLogger("harken.server.access")
_ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are answered under any host name, because probes use addresses. They reveal no event or subscription."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_CALLERS = 100_000
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ENCODED_SLASH = re.compile(r"%2f", re.IGNORECASE)
_CLIENT_CLOSED = 499
"""The status in log and metrics of a request whose client disconnected before the answer."""
_FORM = b"application/x-www-form-urlencoded"


class Gate:
    """ASGI middleware that rejects requests the server must not handle, and logs and counts all."""

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics, access: AccessControl) -> None:
        self._app = app
        self._service = service
        self._metrics = metrics
        self._access = access
        self._names = HostNames(service.settings.allowed_hosts)
        self._rates = Rates(service.settings.max_requests_per_second, service.settings.request_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        client_id = _text(headers, b"x-request-id")
        request_id = client_id if _ID.fullmatch(client_id) else secrets.token_hex(8)
        scope["harken_request_id"] = request_id
        status: int | None = None
        began = time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        try:
            rejection = self._rejection(scope, headers)
            if rejection is None:
                _normalise(scope, headers)
                body = inflated(receive) if is_compressed(_text(headers, b"content-encoding")) else receive
                await self._app(scope, self._bounded(scope, headers, body), sending)
            else:
                await problem_response(rejection, request_id)(scope, receive, sending)
        except ClientDisconnect:
            status = status or _CLIENT_CLOSED
        except Exception as error:
            if status is not None:  # the answer has begun, and cannot be replaced
                raise
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            bug = HarkenError("something went wrong inside the server")
            await problem_response(bug, request_id)(scope, receive, sending)
        finally:
            self._note(scope, status or 500, time.perf_counter() - began, request_id)

    def _rejection(self, scope: Scope, headers: dict[bytes, bytes]) -> HarkenError | None:
        """The error to answer without handling the request; None if it may pass."""
        if scope["path"] in _ALWAYS:
            return None
        if not self._names.take(value.decode("latin-1") for name, value in scope["headers"] if name == b"host"):
            hint = "start it with --allowed-host NAME for each of its names"
            return MisdirectedError(f"this server is not {_text(headers, b'host')!r:.80}", hint=hint)
        origin = _text(headers, b"origin")
        if origin and scope["method"] not in _READS and not self._is_ours(origin, headers):
            return AccessError("pages of other origins may not use this server", is_known=True, hint="see --cors")
        if not self._service.is_ready:
            what = "stopping" if self._service.is_stopping else "starting"
            return StoreUnavailableError(f"the server is {what}")
        if self._rates.is_limited and not self._rates.take(self._caller(scope, headers)):
            return LimitError("too many requests", limit="max_requests_per_second")
        try:
            is_compressed(_text(headers, b"content-encoding"))
        except ContentEncodingError as error:
            return error
        if b"%00" in scope["query_string"] or "\0" in scope["path"]:
            return InvalidRequestError("paths and queries cannot have NUL characters")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._most_bytes(scope, headers):
            return self._too_long()
        return None

    def _most_bytes(self, scope: Scope, headers: dict[bytes, bytes]) -> float:
        """Most bytes of the body. Bulk requests are read line by line and have no limit."""
        is_bulk = scope["path"] == "/subscriptions" and main_type(_text(headers, b"content-type")) in LINE_TYPES
        return float("inf") if is_bulk else self._service.settings.max_body_bytes

    def _too_long(self) -> LimitError:
        most = self._service.settings.max_body_bytes
        return LimitError(f"the body has more than {most:,} bytes", limit="max_body_bytes")

    def _bounded(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Receive the body, and raise LimitError once it is too long: it may have no Content-Length."""
        left = self._most_bytes(scope, headers)

        async def receiving() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_long()
            return message

        return receiving

    def _is_ours(self, origin: str, headers: dict[bytes, bytes]) -> bool:
        """Whether pages of this origin may make changes: browsers send some such requests without a CORS preflight."""
        return origin.partition("://")[2] == _text(headers, b"host") or origin in self._service.settings.cors_origins

    def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> bytes:
        """The name under which a caller's rate is limited: its key if that was looked up before, else its address.

        Keys are looked up after the rate is checked, so that guesses at keys count for the address.
        """
        key = hashed_key(_text(headers, b"authorization")) if self._service.settings.api_keys else None
        if key is not None and self._access.remembers(key):
            return key
        client = scope.get("client")
        return b"" if client is None else str(client[0]).encode()

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other")
        self._metrics.requests.labels(path, str(status)).inc()
        if path not in ("/stream", "/live"):
            self._metrics.seconds.labels(path).observe(seconds)
        if log.isEnabledFor(logging.INFO):
            fields = {"method": scope["method"], "path": path, "status": status, "request_id": request_id}
            log.info("request", extra={"fields": {**fields, "ms": round(seconds * 1e3, 2)}})


class Rates:
    """Rate limits: a token bucket for each caller."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def is_limited(self) -> bool:
        return self._per_second > 0

    def take(self, caller: bytes) -> bool:
        """Count a request of a caller. Returns whether it is allowed."""
        now = time.monotonic()
        left, filled_at = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - filled_at) * self._per_second)
        is_allowed = left >= 1
        self._buckets[caller] = (left - 1 if is_allowed else left), now
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return is_allowed


def _text(headers: dict[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _normalise(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Keep %2F, a slash in an id, apart from the slashes of the path; and set the type of `curl -d` to JSON."""
    raw = scope.get("raw_path") or b""
    if b"%2" in raw:
        scope["path"] = unquote(_ENCODED_SLASH.sub(quote(SLASH), raw.decode("latin-1")))
    if headers.get(b"content-type") == _FORM and b"ce-specversion" not in headers:
        others = [each for each in scope["headers"] if each[0] != b"content-type"]
        scope["headers"] = [*others, (b"content-type", b"application/json")]
