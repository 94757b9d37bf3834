"""Answers for errors: application/problem+json with place, excerpt and hint."""

from __future__ import annotations

import logging
import re
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from harken.errors import (
    AccessError,
    CapabilityError,
    DecodeError,
    DuplicateIdError,
    EventError,
    ExtensionError,
    HarkenError,
    InvalidIdError,
    LanguageError,
    LimitError,
    OperatorError,
    SchemaError,
    SourceError,
    StoreUnavailableError,
    SubscriptionError,
    UnknownIdError,
)
from harken.server.inflating import ACCEPTED, ContentEncodingError
from harken.server.publications import ContentTypeError, IdempotencyKeyError
from harken.server.webhooks.addresses import WebhookRejectedError
from harken.server.webhooks.signing import WebhookSecretError

log = logging.getLogger(__name__)
PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 1
_LIMITS = {
    "max_body_bytes": 413,
    "max_batch_events": 413,
    "max_matches": 413,
    "max_event_bytes": 413,
    "max_waiting_events": 429,
    "max_requests_per_second": 429,
    "max_streams": 429,
    "max_streams_per_caller": 429,
    "max_backtests": 429,
    "max_backtest_bytes": 413,
    "backtest_timeout": 413,
    "header_timeout": 408,
    "body_timeout": 408,
    "max_header_bytes": 431,
    "max_subscriptions_per_owner": 403,
}
_STATUS: tuple[tuple[type[HarkenError], int], ...] = (
    (StoreUnavailableError, 503),
    (ContentTypeError, 415),
    (UnknownIdError, 404),
    (DuplicateIdError, 409),
    (ExtensionError, 409),
    (InvalidIdError, 422),
    (DecodeError, 400),
    (LanguageError, 422),
    (SchemaError, 422),
    (EventError, 422),
    (SubscriptionError, 422),
    (CapabilityError, 422),
    (OperatorError, 422),
    (SourceError, 400),
    (WebhookRejectedError, 422),
    (WebhookSecretError, 422),
    (IdempotencyKeyError, 422),
)


class InvalidRequestError(HarkenError):
    """A request has an invalid value or combination of values."""


class MisdirectedError(HarkenError):
    """The header `Host` of a request is not a name of the server."""


def status_of(error: HarkenError) -> int:
    """The HTTP status of the answer for an error."""
    if isinstance(error, AccessError):
        return 403 if error.is_known else 401
    if isinstance(error, LimitError):
        return _LIMITS.get(error.limit, 422)
    if isinstance(error, InvalidRequestError):
        return 422
    if isinstance(error, MisdirectedError):
        return 421
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_of(error: HarkenError, request_id: str | None = None) -> dict[str, Any]:
    """The error as the fields of a problem."""
    plain = error.to_dict()
    name, message = plain.pop("error"), plain.pop("message")
    plain.pop("source", None)
    kebab_case = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
    head = {"type": f"urn:harken:{kebab_case}", "title": name, "status": status_of(error), "detail": message}
    return {**head, **plain, **({} if request_id is None else {"request_id": request_id})}


def problem_response(error: HarkenError, request_id: str | None, **more: Any) -> JSONResponse:
    """The answer for an error, with further fields."""
    content = problem_of(error, request_id) | more
    headers = {"Retry-After": str(RETRY_SECONDS)} if content["status"] in (429, 503) else {}
    if isinstance(error, ContentEncodingError):
        headers["Accept-Encoding"] = ACCEPTED
    if content["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(content, content["status"], headers, PROBLEM_JSON)


async def on_harken_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HarkenError)
    if status_of(error) >= 500:
        log.error("%s %s: %s", request.method, request.url.path, error.message)
    return problem_response(error, request_id_of(request))


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that does not have the form that the API describes."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem_response(DecodeError(f"the body is not JSON: {first['ctx']['error']}"), request_id_of(request))
    if isinstance(error.body, bytes):  # FastAPI did not parse the body
        unread = ContentTypeError("the Content-Type of the body is not supported", hint="send application/json")
        return problem_response(unread, request_id_of(request))
    place = ".".join(str(each) for each in first["loc"] if each != "body")
    message = f"`{place}`: {first['msg']}" if place else str(first["msg"])
    return problem_response(InvalidRequestError(message), request_id_of(request))


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer errors of the framework: unknown paths and methods, and bodies that it cannot read."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, HarkenError):  # raised while the body was read
        return problem_response(error.__cause__, request_id_of(request))
    title = "NotFound" if error.status_code == 404 else "MethodNotAllowed" if error.status_code == 405 else "HttpError"
    content = {"type": "about:blank", "title": title, "status": error.status_code, "detail": str(error.detail)}
    content["request_id"] = request_id_of(request)
    return JSONResponse(content, error.status_code, error.headers, PROBLEM_JSON)


def request_id_of(request: Request) -> str | None:
    request_id: str | None = request.scope.get("harken_request_id")
    return request_id
