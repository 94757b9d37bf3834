"""Routes for operators: health, metrics, sizes, the index plan, and API keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from harken.errors import HarkenError, UnknownIdError
from harken.server.access import SUBSCRIBE
from harken.server.api_keys import made_key, shown_key
from harken.server.credentials import hashed
from harken.server.http_answers import KeysModel, NewKeyModel
from harken.server.models import KeyModel
from harken.server.requests import AccessOf, CallerOf, ServiceOf, problems
from harken.server.service import Service

router = APIRouter(tags=["operations"])
_SIZES_SECONDS = 2.0
"""How long the metrics wait for the store."""
_NOT_READY = "The server is starting or stopping, or its store does not accept changes."


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process is alive."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": _NOT_READY}})
async def readyz(service: ServiceOf) -> JSONResponse:
    """Whether events and subscriptions are accepted. Tests the store with a write, at most once a second."""
    if service.is_ready:
        problem = await service.readiness.check()
        if problem is not None:
            return JSONResponse({"status": "unavailable", "detail": problem}, 503)
        return JSONResponse({"status": "ready", "subscriptions": len(service.index.engine)})
    return JSONResponse({"status": "stopping" if service.is_stopping else "starting", "detail": service.problem}, 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request, service: ServiceOf) -> Response:
    """Metrics for Prometheus. Those of the store are left out while it does not answer."""
    stored = await _sizes(service) if service.is_ready else None
    text = request.app.state.metrics.text(stored)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _sizes(service: Service) -> Mapping[str, int] | None:
    """Check readiness, and return the sizes of the store; None if it does not answer."""
    await service.readiness.check()
    try:
        async with asyncio.timeout(_SIZES_SECONDS):
            return await service.readers.run(service.store.sizes)
    except (HarkenError, TimeoutError):
        return None


@router.get("/stats", responses=problems())
async def stats(service: ServiceOf, caller: CallerOf) -> dict[str, Any]:
    """Numbers of subscriptions, streams, events, notifications and webhooks, and bytes of the journal."""
    caller.require(SUBSCRIBE)
    stored = await service.readers.run(service.store.sizes)
    return {**service.sizes(), **stored}


@router.get("/plan", responses=problems())
async def plan(service: ServiceOf, caller: CallerOf) -> Response:
    """How the subscriptions are indexed, and the expected cost of events."""
    caller.require(SUBSCRIBE)
    plan = await service.readers.run(service.index.engine.stats)
    return Response(json.dumps(plan, default=str), media_type="application/json")


@router.post("/keys", status_code=201, response_model=NewKeyModel, responses=problems(body=True))
async def new_key(body: KeyModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Create an API key, which is shown once."""
    caller.require_admin()
    key, text = made_key(body.owner, body.scopes, body.name)
    await asyncio.wrap_future(service.committer.submit(lambda writing: writing.add_key(key, hashed(text))))
    return {**shown_key(key), "key": text}


@router.get("/keys", response_model=KeysModel, responses=problems())
async def keys(service: ServiceOf, caller: CallerOf) -> Any:
    """List the API keys, without their secret texts."""
    caller.require_admin()
    return {"keys": [shown_key(each) for each in await service.readers.run(service.store.keys)]}


@router.delete("/keys/{id}", status_code=204, responses=problems(404))
async def remove_key(id: str, service: ServiceOf, access: AccessOf, caller: CallerOf) -> None:
    """Remove an API key. This process rejects it at once, others that share the store within seconds."""
    caller.require_admin()
    if not await asyncio.wrap_future(service.committer.submit(lambda writing: writing.remove_key(id))):
        raise UnknownIdError(f"there is no key {id!r:.40}")
    access.forget(id)
    service.streams.revoke({id})
