"""What every path needs of a request: the service, who asks, ids, cursors, and what it says of its problems."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, ValidationError

from harken.errors import DecodeError
from harken.server.access import Doorkeeper, Requester
from harken.server.http_answers import ProblemModel
from harken.server.problems import PROBLEM_JSON, InvalidRequestError
from harken.server.service import Service

SLASH = "\x1f"
"""What stands for a slash in an id while a path is taken apart. No id has this character."""


# Asynchronous although they wait for nothing: FastAPI calls others in a thread.
async def service_of(request: Request) -> Service:
    return cast(Service, request.app.state.service)


async def doorkeeper_of(request: Request) -> Doorkeeper:
    return cast(Doorkeeper, request.app.state.doorkeeper)


async def caller_of(request: Request) -> Requester:
    """Who asks. Raises AccessError for a key that is not known."""
    keeper = await doorkeeper_of(request)
    return await keeper.caller(request.headers)


ServiceOf = Annotated[Service, Depends(service_of)]
DoorkeeperOf = Annotated[Doorkeeper, Depends(doorkeeper_of)]
CallerOf = Annotated[Requester, Depends(caller_of)]


def _whole(id: str) -> str:
    return id.replace(SLASH, "/")


IdOf = Annotated[str, Path(alias="id", description="It is percent-encoded, also its slashes."), AfterValidator(_whole)]


def cursor_of(text: str | None) -> int | None:
    """A cursor, as notifications have them for ids. Raises InvalidRequestError."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InvalidRequestError(f"{text!r:.40} is no cursor", hint="pass what an answer had as `next`, or an id")
    return int(text)


def json_of(body: bytes) -> Any:
    """The value of a JSON body. Raises DecodeError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the body is not JSON: {error}") from None


def first_fault(error: ValidationError) -> InvalidRequestError:
    """What is wrong with a value that does not have the shape of its model."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return InvalidRequestError(f"`{place}`: {first['msg']}" if place else str(first["msg"]))


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, for the OpenAPI document: those of all paths, or of all that have a
    body, and the statuses given.
    """
    meanings = {
        400: "The body cannot be read.",
        401: "A ticket or an API key is missing, or not known.",
        403: "The ticket or key does not allow this.",
        404: "There is no such thing.",
        409: "It is taken, or conflicts with what is there.",
        413: "It is too large.",
        415: "The content type is not known.",
        421: "The name in `Host` is not one of the server's.",
        422: "It was read, and is wrong.",
        429: "Too many. Come back after `Retry-After`.",
        503: "Not now: starting, stopping, or the store cannot be used.",
    }
    schema = ProblemModel.model_json_schema(ref_template="#/components/schemas/{model}")
    content = {PROBLEM_JSON: {"schema": schema}}
    every = sorted({*statuses, *((400, 413, 415) if body else ()), 401, 403, 421, 422, 429, 503})
    return {each: {"description": meanings[each], "content": content} for each in every}
