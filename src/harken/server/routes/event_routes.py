"""Events: publish, try out, explain, check a text, and back-test it over what was published."""

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
from harken.server.publications import incoming, request_hash, request_key
from harken.server.requests import CallerOf, DoorkeeperOf, ServiceOf, caller_of, problems, service_of
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
            "description": "Return the matches, keep and send nothing.",
        },
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "maxLength": 255},
            "description": "A request that is repeated with the same key is answered as before, and publishes nothing."
            " Another request with the same key is refused.",
        },
    ],
}
_LONGEST_KEY = 255
_SHORT = 65_536
"""Longer bodies are cut into events, and hashed, in a thread: others wait for the event loop."""
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@router.post(
    "/events",
    status_code=202,
    response_model=PublishedModel,
    responses={
        200: {"description": "With `dry_run`: what they match.", "model": MatchesModel},
        **problems(body=True),
    },
    openapi_extra=_BODIES,
)
async def publish(request: Request) -> Response:
    """Publish one event, a batch, JSON lines, an XML document, or CloudEvents. They are on disk when it answers."""
    # It finds its parameters by itself: to have FastAPI do that takes as long as everything else here.
    service, caller = await service_of(request), await caller_of(request)
    caller.require(PUBLISH)
    settings = service.settings
    body = await request.body()
    cut = request.headers, body, service.index.engine.limits, settings.max_batch_events, caller.owner
    found = incoming(*cut) if len(body) <= _SHORT else await service.readers.run(incoming, *cut)
    if request.scope["query_string"] and _is_dry(request.query_params.get("dry_run", "false")):
        return await _tried(service, caller, found)
    given = request.headers.get("idempotency-key")
    if given is not None and not 0 < len(given) <= _LONGEST_KEY:
        raise InvalidRequestError(f"an idempotency key has 1 to {_LONGEST_KEY} characters")
    key = None if given is None else request_key("request", caller.owner or "", given)
    mark: bytes | None = None
    if key is not None:
        said = request.headers, body
        mark = request_hash(*said) if len(body) <= _SHORT else await service.readers.run(request_hash, *said)
    published = await service.publish(found, key, mark)
    rejected = [] if published.accepted else json.loads(published.answer)["rejected"]
    if not rejected:
        return Response(published.answer, 202, media_type="application/json")
    first = rejected[0]
    what = "the event was rejected" if len(rejected) == 1 else f"all {len(rejected):,} events were rejected"
    error = EventError(f"{what}: {first['message']}", hint=first.get("hint"), excerpt=first.get("excerpt"))
    more = {name: first[name] for name in ("line", "column") if name in first}
    return problem_response(error, request_id_of(request), rejected=rejected, **more)


def _is_dry(text: str) -> bool:
    """Whether nothing is to be kept. Raises InvalidRequestError."""
    if text.lower() not in _WORDS:
        raise InvalidRequestError(f"`dry_run` is true or false, not {text!r:.40}")
    return _WORDS[text.lower()]


async def _tried(service: Service, caller: Requester, found: Any) -> JSONResponse:
    outcome = await service.dry_run(found)
    ids = outcome.ids
    if caller.keys_are_on and not caller.is_admin:
        every = sorted({id for each in ids for id in each})
        known = await service.readers.run(service.store.subscriptions_of, every)
        own = {each.id for each in known if caller.opens(each)}
        ids = [[id for id in each if id in own] for each in ids]
    return JSONResponse({"matches": ids, "rejected": outcome.rejected})


@router.post("/check", response_model=CheckedModel, responses=problems(body=True))
async def check(given: CheckModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Whether a text is a subscription; if not, what is wrong with it and where."""
    caller.require(SUBSCRIBE)
    checked = await service.readers.run(service.index.engine.check, given.where, given.language)
    return {"ok": True, "warnings": list(checked.warnings)}


@router.post(
    "/explain",
    response_model=ExplainedModel,
    response_model_exclude_unset=True,
    responses=problems(404, body=True),
)
async def explain(given: ExplainModel, service: ServiceOf, keeper: DoorkeeperOf, caller: CallerOf) -> Any:
    """Why an event matches a subscription, or a text, and why not: the expression with the truth of every part."""
    caller.require(SUBSCRIBE)
    if (given.subscription is None) == (given.where is None):
        raise InvalidRequestError("either `subscription` or `where` is explained")
    where, language = given.where or "", given.language
    if given.subscription is not None:
        known = await keeper.subscription(caller, given.subscription)
        where, language = known.where, known.language
    event = given.event.encode() if isinstance(given.event, str) else given.event
    return await service.readers.run(_explained, service.index.engine, where, language, event)


def _explained(engine: Engine, where: str, language: str, event: Any) -> dict[str, Any]:
    found = engine.explain(where, event, language)
    return {**found.to_dict(), "text": str(found)}


@router.post("/backtest", response_model=BacktestedModel, responses=problems(body=True))
async def backtest(request: Request, given: BacktestModel, service: ServiceOf, caller: CallerOf) -> Response:
    """What a subscription would have matched among the newest events of the journal.

    Only so many run at one time (`max_backtests`), read so many bytes (`max_backtest_bytes`) and take so long
    (`backtest_timeout`).
    """
    caller.require(SUBSCRIBE)
    answer = await service.backtesting.run(given, request.is_disconnected)
    return Response(answer, media_type="application/json")
