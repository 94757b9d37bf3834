"""Routes for events: publish, dry run, check and explain a text, and back-test it over published events."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from harken.engine import Engine
from harken.errors import EventError
from harken.server.access import PUBLISH, SUBSCRIBE, Requester
from harken.server.cloudevents import BATCHED, STRUCTURED
from harken.server.http_answers import BacktestedModel, CheckedModel, ExplainedModel, MatchesModel, PublishedModel
from harken.server.models import BacktestModel, CheckModel, ExplainModel
from harken.server.problems import InvalidRequestError, problem_response, request_id_of
from harken.server.publications import Incoming, incoming, request_hash, request_key
from harken.server.requests import AccessOf, CallerOf, ServiceOf, caller_of, problems, service_of
from harken.server.service import Service

router = APIRouter(tags=["events"])
_OBJECT = {"type": "object", "additionalProperties": True}
_EVENT = {"category": "Toy", "price": 3.5}
_CLOUDEVENT = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order", "data": _EVENT}
_BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [_OBJECT, {"type": "array", "items": _OBJECT}]},
                "examples": {"one": {"value": _EVENT}, "several": {"value": [_EVENT, {"price": 9}]}},
            },
            "application/x-ndjson": {"schema": {"type": "string"}, "example": json.dumps(_EVENT)},
            "application/xml": {"schema": {"type": "string"}, "example": "<order><total>9</total></order>"},
            STRUCTURED: {"schema": _OBJECT, "example": _CLOUDEVENT},
            BATCHED: {"schema": {"type": "array", "items": _OBJECT}, "example": [_CLOUDEVENT]},
        },
    },
    "parameters": [
        {
            "name": "dry_run",
            "in": "query",
            "required": False,
            "schema": {"type": "boolean", "default": False},
            "description": "Return the matches; store and send nothing.",
        },
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "maxLength": 255},
            "description": "A repetition of a request with the same key gets the same answer and publishes nothing."
            " A different request with the same key is rejected.",
        },
    ],
}
_LONGEST_KEY = 255
_SHORT = 65_536
"""Longer bodies are divided into events and hashed in a thread, so that they do not block the event loop."""
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@router.post(
    "/events",
    status_code=202,
    response_model=PublishedModel,
    responses={
        200: {"description": "With `dry_run`: the matches.", "model": MatchesModel},
        **problems(body=True),
    },
    openapi_extra=_BODIES,
)
async def publish(request: Request) -> Response:
    """Publish one event, a batch, JSON lines, an XML document, or CloudEvents. They are on disk before the answer."""
    # It reads its parameters itself: FastAPI would take as long for that as all the rest takes.
    service, caller = await service_of(request), await caller_of(request)
    caller.require(PUBLISH)
    settings = service.settings
    body = await request.body()
    arguments = request.headers, body, service.index.engine.internals.limits, settings.max_batch_events, caller.owner
    events = incoming(*arguments) if len(body) <= _SHORT else await service.readers.run(incoming, *arguments)
    if request.scope["query_string"] and _is_dry(request.query_params.get("dry_run", "false")):
        return await _dry_run(service, caller, events)
    header = request.headers.get("idempotency-key")
    if header is not None and not 0 < len(header) <= _LONGEST_KEY:
        raise InvalidRequestError(f"an idempotency key has 1 to {_LONGEST_KEY} characters")
    key = None if header is None else request_key("request", caller.owner or "", header)
    content: bytes | None = None
    if key is not None:
        parts = request.headers, body
        content = request_hash(*parts) if len(body) <= _SHORT else await service.readers.run(request_hash, *parts)
    published = await service.publish(events, key, content)
    rejected = [] if published.accepted else json.loads(published.answer)["rejected"]
    if not rejected:
        return Response(published.answer, 202, media_type="application/json")
    first = rejected[0]
    summary = "the event was rejected" if len(rejected) == 1 else f"all {len(rejected):,} events were rejected"
    error = EventError(f"{summary}: {first['message']}", hint=first.get("hint"), excerpt=first.get("excerpt"))
    more = {name: first[name] for name in ("line", "column") if name in first}
    return problem_response(error, request_id_of(request), rejected=rejected, **more)


def _is_dry(text: str) -> bool:
    """The value of the parameter `dry_run`. Raises InvalidRequestError."""
    if text.lower() not in _TRUTHS:
        raise InvalidRequestError(f"`dry_run` must be true or false, not {text!r:.40}")
    return _TRUTHS[text.lower()]


async def _dry_run(service: Service, caller: Requester, events: Incoming) -> JSONResponse:
    """The answer to a dry run. With API keys on, it has only subscriptions that the caller opens."""
    outcome = await service.dry_run(events)
    ids = outcome.ids
    if caller.keys_are_on and not caller.is_admin:
        every = sorted({id for each in ids for id in each})
        subscriptions = await service.readers.run(service.store.subscriptions_of, every)
        opened = {each.id for each in subscriptions if caller.opens(each)}
        ids = [[id for id in each if id in opened] for each in ids]
    return JSONResponse({"matches": ids, "rejected": outcome.rejected})


@router.post("/check", response_model=CheckedModel, responses=problems(body=True))
async def check(body: CheckModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Check the text of a subscription. A fault is answered with its place and a hint."""
    caller.require(SUBSCRIBE)
    checked = await service.readers.run(service.index.engine.check, body.where, body.language)
    return {"ok": True, "warnings": list(checked.warnings)}


@router.post(
    "/explain",
    response_model=ExplainedModel,
    response_model_exclude_unset=True,
    responses=problems(404, body=True),
)
async def explain(body: ExplainModel, service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """Why an event matches a subscription or a text, or why not: the expression with the truth of every part."""
    caller.require(SUBSCRIBE)
    if (body.subscription is None) == (body.where is None):
        raise InvalidRequestError("send either `subscription` or `where`")
    where, language = body.where or "", body.language
    if body.subscription is not None:
        subscription = await access.subscription(caller, body.subscription)
        where, language = subscription.where, subscription.language
    event = body.event.encode() if isinstance(body.event, str) else body.event
    return await service.readers.run(_explained, service.index.engine, where, language, event)


def _explained(engine: Engine, where: str, language: str, event: Any) -> dict[str, Any]:
    explanation = engine.explain(event=event, text=where, language=language)
    return {**explanation.to_dict(), "text": str(explanation)}


@router.post("/backtest", response_model=BacktestedModel, responses=problems(body=True))
async def backtest(request: Request, body: BacktestModel, service: ServiceOf, caller: CallerOf) -> Response:
    """What a subscription would have matched among the newest events of the journal.

    The server limits how many run at one time (`max_backtests`), and the bytes (`max_backtest_bytes`) and the time
    (`backtest_timeout`) of each.
    """
    caller.require(SUBSCRIBE)
    answer = await service.backtests.run(body, request.is_disconnected)
    return Response(answer, media_type="application/json")
