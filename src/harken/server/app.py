"""The match server as an ASGI application: FastAPI routes around one service."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from harken.errors import HarkenError
from harken.release import __version__
from harken.server.access import AccessControl
from harken.server.description import describe
from harken.server.gate import Gate
from harken.server.metrics import Metrics
from harken.server.page import CONTENT_SECURITY_POLICY, page_files
from harken.server.problems import on_harken_error, on_http_error, on_invalid
from harken.server.routes import event_routes as events
from harken.server.routes import notification_routes as notifications
from harken.server.routes import operations, schema
from harken.server.routes import subscription_routes as subscriptions
from harken.server.service import Service
from harken.server.settings import ServerSettings

log = logging.getLogger(__name__)
_DESCRIPTION = """Content-based publish/subscribe: a subscription is a boolean expression over events, such as
`category = 'Toy' AND price < 5`. Each published event is sent to the subscriptions that match it."""


def create_app(settings: ServerSettings) -> FastAPI:
    """The application. It opens its store when it starts, and answers 503 until the store is open."""
    service = Service(settings)
    metrics = Metrics(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.create_task(_start(service))
        try:
            yield
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await service.stop()

    app = FastAPI(
        title="Harken",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        strict_content_type=False,  # the gate rejects requests of other origins
    )
    app.state.service = service
    app.state.access = access = AccessControl(service)
    app.state.metrics = metrics
    for part in (events, subscriptions, notifications, schema, operations):
        app.include_router(part.router)
    _add_page(app)
    describe(app)
    app.add_exception_handler(HarkenError, on_harken_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_middleware(Gate, service=service, metrics=metrics, access=access)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["*"], allow_headers=["*"]
        )
    return app


async def _start(service: Service) -> None:
    """Start the service. If that fails, log why and end the process."""
    try:
        await service.start()
    except Exception as error:
        service.problem = error.message if isinstance(error, HarkenError) else str(error)
        log.error("the server cannot start: %s", error, exc_info=None if isinstance(error, HarkenError) else error)
        os.kill(os.getpid(), signal.SIGTERM)


def _add_page(app: FastAPI) -> None:
    for path, (content_type, content) in page_files().items():
        app.add_api_route(path, _file(content_type, content), include_in_schema=False, response_class=Response)


def _file(content_type: str, content: bytes) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-cache", "ETag": tag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=content_type, headers=headers)

    return answer
