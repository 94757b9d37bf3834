"""What all routes use: service and caller of a request, ids, cursors, JSON bodies, and the documented problems."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, ValidationError

from harken.errors import DecodeError
from harken.server.access import AccessControl, Requester
from harken.server.http_answers import ProblemModel
from harken.server.problems import PROBLEM_JSON, InvalidRequestError
from harken.server.service import Service

SLASH = "\x1f"
"""Stands for a slash in an id while a path is routed. No id has this character."""


# Asynchronous although they await nothing: FastAPI would call synchronous dependencies in a thread.
async def service_of(request: Request) -> Service:
    return cast(Service, request.app.state.service)


async def access_of(request: Request) -> AccessControl:
    return cast(AccessControl, request.app.state.access)


async def caller_of(request: Request) -> Requester:
    """The caller of a request. Raises AccessError for an unknown key."""
    access = await access_of(request)
    return await access.caller(request.headers)


ServiceOf = Annotated[Service, Depends(service_of)]
AccessOf = Annotated[AccessControl, Depends(access_of)]
CallerOf = Annotated[Requester, Depends(caller_of)]


def _with_slashes(id: str) -> str:
    return id.replace(SLASH, "/")


IdOf = Annotated[str, Path(alias="id", description="Percent-encoded, slashes too."), AfterValidator(_with_slashes)]


def cursor_of(text: str | None) -> int | None:
    """The number of a cursor; None without one. Raises InvalidRequestError."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        hint = "pass the `next` of an answer, or the id of a notification"
        raise InvalidRequestError(f"{text!r:.40} is not a cursor", hint=hint)
    return int(text)


def json_of(body: bytes) -> Any:
    """The value of a JSON body. Raises DecodeError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the body is not JSON: {error}") from None


def first_fault(error: ValidationError) -> InvalidRequestError:
    """The first fault of a value that its model rejects."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return InvalidRequestError(f"`{place}`: {first['msg']}" if place else str(first["msg"]))


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for the OpenAPI document: these statuses, those that all routes have,
    and with `body` those of routes that read a body.
    """
    meanings = {
        400: "The body cannot be read.",
        401: "A ticket or an API key is missing or unknown.",
        403: "The ticket or key does not allow this.",
        404: "Not found.",
        409: "The id is taken, or there is a conflict with the current state.",
        413: "The request is too large.",
        415: "The content type is not supported.",
        421: "The name in `Host` is not one of the server's.",
        422: "The request was read, and is invalid.",
        429: "Too many requests. Try again after `Retry-After`.",
        503: "The server is starting or stopping, or its store is unavailable.",
    }
    schema = ProblemModel.model_json_schema(ref_template="#/components/schemas/{model}")
    content = {PROBLEM_JSON: {"schema": schema}}
    every = sorted({*statuses, *((400, 413, 415) if body else ()), 401, 403, 421, 422, 429, 503})
    return {each: {"description": meanings[each], "content": content} for each in every}
