"""What every request passes through: an id, the name of the host, a rate, readiness, a bound on its body, a log line,
counts, and headers.
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
from harken.server.access import Doorkeeper, hashed_key
from harken.server.host_names import HostNames
from harken.server.inflating import ContentEncodingError, inflated, is_compressed
from harken.server.metrics import Metrics
from harken.server.problems import InvalidRequestError, MisdirectedError, problem_response
from harken.server.publications import LINE_TYPES, main_type
from harken.server.requests import SLASH
from harken.server.service import Service

log = logging.getLogger("harken.server.access")
_ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
"""What is answered always, by whatever name: probes know addresses only. No event or subscription is named there."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_CALLERS = 100_000
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ENCODED_SLASH = re.compile(r"%2f", re.IGNORECASE)
_LEFT = 499
"""What counts as the status of a request whose sender left before it was there."""
_FORM = b"application/x-www-form-urlencoded"


class Gate:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics, keeper: Doorkeeper) -> None:
        self._app = app
        self._service = service
        self._metrics = metrics
        self._keeper = keeper
        self._names = HostNames(service.settings.allowed_hosts)
        self._rates = Rates(service.settings.max_requests_per_second, service.settings.request_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = _text(headers, b"x-request-id")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
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
            refusal = self._refusal(scope, headers)
            if refusal is None:
                _tidy(scope, headers)
                body = inflated(receive) if is_compressed(_text(headers, b"content-encoding")) else receive
                await self._app(scope, self._bounded(scope, headers, body), sending)
            else:
                await problem_response(refusal, request_id)(scope, receive, sending)
        except ClientDisconnect:
            status = status or _LEFT
        except Exception as error:
            if status is not None:  # the answer has begun, and cannot become another
                raise
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            bug = HarkenError("something went wrong inside the server")
            await problem_response(bug, request_id)(scope, receive, sending)
        finally:
            self._note(scope, status or 500, time.perf_counter() - began, request_id)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> HarkenError | None:
        if scope["path"] in _ALWAYS:
            return None
        if not self._names.take(value.decode("latin-1") for name, value in scope["headers"] if name == b"host"):
            hint = "say --allowed-host NAME, as often as need be"
            return MisdirectedError(f"this server is not {_text(headers, b'host')!r:.80}", hint=hint)
        origin = _text(headers, b"origin")
        if origin and scope["method"] not in _READS and not self._is_ours(origin, headers):
            return AccessError("pages of other origins may not use this server", is_known=True, hint="see --cors")
        if not self._service.is_ready:
            what = "stopping" if self._service.is_stopping else "starting"
            return StoreUnavailableError(f"the server is {what}")
        if self._rates.is_limited and not self._rates.take(self._caller(scope, headers)):
            return LimitError("you ask too often", limit="max_requests_per_second")
        try:
            is_compressed(_text(headers, b"content-encoding"))
        except ContentEncodingError as error:
            return error
        if b"%00" in scope["query_string"] or "\0" in scope["path"]:
            return InvalidRequestError("a NUL character is not for paths and queries")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._most_bytes(scope, headers):
            return self._too_long()
        return None

    def _most_bytes(self, scope: Scope, headers: dict[bytes, bytes]) -> float:
        """Bytes that the body may have. Subscriptions in bulk are read line by line, and may have any number."""
        is_bulk = scope["path"] == "/subscriptions" and main_type(_text(headers, b"content-type")) in LINE_TYPES
        return float("inf") if is_bulk else self._service.settings.max_body_bytes

    def _too_long(self) -> LimitError:
        most = self._service.settings.max_body_bytes
        return LimitError(f"the body has more than {most:,} bytes", limit="max_body_bytes")

    def _bounded(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """The same body, of which too much is not read: also one whose length was not told is bounded."""
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
        """Whether a page of this origin may change things: browsers send such requests without asking first."""
        return origin.partition("://")[2] == _text(headers, b"host") or origin in self._service.settings.cors_origins

    def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> bytes:
        """What a caller is known by: a key that was looked up before and is known, or else its address.

        Keys are looked up once a request is let through. So one address has as many tries at keys as at anything else.
        """
        key = hashed_key(_text(headers, b"authorization")) if self._service.settings.api_keys else None
        if key is not None and self._keeper.remembers(key):
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
    """How many requests each caller may still make: a bucket that fills with time."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def is_limited(self) -> bool:
        return self._per_second > 0

    def take(self, caller: bytes) -> bool:
        """Whether a caller may make one more request."""
        now = time.monotonic()
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        is_allowed = left >= 1
        self._buckets[caller] = (left - 1 if is_allowed else left), now
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return is_allowed


def _text(headers: dict[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _tidy(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Have a slash in an id, which came as %2F, stay apart from those of the path; and `curl -d` send JSON."""
    raw = scope.get("raw_path") or b""
    if b"%2" in raw:
        scope["path"] = unquote(_ENCODED_SLASH.sub(quote(SLASH), raw.decode("latin-1")))
    if headers.get(b"content-type") == _FORM and b"ce-specversion" not in headers:
        others = [each for each in scope["headers"] if each[0] != b"content-type"]
        scope["headers"] = [*others, (b"content-type", b"application/json")]
