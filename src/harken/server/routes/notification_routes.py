"""Routes for notifications: by cursor, as a stream of server-sent events, and the live feed of the server's page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from harken.errors import AccessError, LimitError
from harken.server.access import Requester
from harken.server.body_shapes import iso, notification_text
from harken.server.event_stream import EventStream, Frames
from harken.server.http_answers import NotificationsModel, TokenModel
from harken.server.requests import AccessOf, CallerOf, ServiceOf, cursor_of, problems
from harken.server.service import Service
from harken.server.streams import Admission, Stream
from harken.store import StoredSubscription
from harken.store.store import microseconds
from harken.store.stored import Page

router = APIRouter(tags=["notifications"])
EVERYTHING = "\x00everything"
"""The name in tokens for the feed. No subscription has it."""
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}
}
_LONGEST_WAIT = 60.0

Ids = Annotated[list[str], Query(alias="subscription", min_length=1, description="One or several.")]
Format = Annotated[Literal["plain", "cloudevents"] | None, Query(description="The shape of a notification.")]


@router.get("/notifications", response_model=NotificationsModel, responses=problems(404))
async def notifications(
    request: Request,
    service: ServiceOf,
    access: AccessOf,
    caller: CallerOf,
    ids: Ids,
    after: Annotated[str | None, Query(description="The `next` of an earlier answer.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT, description="Seconds to wait for the first.")] = 0.0,
    format: Format = None,
) -> Response:
    """Notifications after a cursor, oldest first. The same cursor gives the same notifications again.

    There may be fewer than `limit` although more follow, because `max_answer_bytes` limits the bytes of their events.
    There is at least one, however large.
    """
    subscriptions = await _opened(service, access, caller, ids)
    since = {each.id: each.since for each in subscriptions}
    begin, limit = cursor_of(after) or 0, min(limit, service.settings.max_page)

    def read() -> Page:
        return service.store.notifications_page(since, begin, limit, service.settings.max_answer_bytes)

    if not wait:
        page = await service.readers.run(read)
    else:
        stream, admission = Stream(since, begin), _admitted(request, service, caller)
        with _listening(stream, admission, service):
            page = await service.readers.run(read)
            loop = asyncio.get_running_loop()
            until = loop.time() + wait
            while not page.notified and not admission.is_revoked and await stream.wait(until - loop.time()):
                if service.is_stopping:
                    break
                page = await service.readers.run(read)
        if admission.is_revoked:
            raise AccessError("the API key was removed")
    formats = {each.id: format or each.delivery.format for each in subscriptions}
    source = service.store.source
    texts = ", ".join(notification_text(each, formats[each.subscription], source) for each in page.notified)
    return Response(f'{{"notifications": [{texts}], "next": "{page.end}"}}', media_type="application/json")


@router.get("/stream", response_class=Response, responses={**_STREAM, **problems(404)})
async def stream(
    request: Request,
    service: ServiceOf,
    access: AccessOf,
    caller: CallerOf,
    ids: Ids,
    token: Annotated[list[str] | None, Query(description="For clients that cannot send a ticket.")] = None,
    after: str | None = None,
    last_event_id: Annotated[str | None, Header()] = None,
    format: Format = None,
) -> Any:
    """Stream the notifications of one or many subscriptions. Reconnecting with `Last-Event-ID` misses none."""
    grants = await access.opened(token or ())
    subscriptions = await _opened(service, access, caller, ids, grants.names)
    begin = cursor_of(last_event_id or after)
    if begin is None:
        begin = await service.readers.run(lambda: service.store.last_notification)
    opened = Stream({each.id: each.since for each in subscriptions}, begin)
    admission = _admitted(request, service, caller, grants.keys)
    service.streams.open(opened)

    def close() -> None:
        service.streams.close(opened)
        admission.close()

    frames = Frames(service, opened, format)()
    answer = EventStream(frames, service.settings.stream_timeout, close, begin)
    admission.on_revoked = answer.end
    return answer


@router.post("/token", response_model=TokenModel, responses=problems())
async def feed_token(service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """A token that opens the live feed for a few minutes. With API keys, it needs one with the scope `admin`."""
    if caller.keys_are_on:
        caller.require_admin()
    until = microseconds() + int(service.settings.token_valid_for * 1e6)
    return {"token": access.token(caller, [EVERYTHING], until), "expires_at": iso(until)}


@router.get("/live", response_class=Response, responses={**_STREAM, **problems()})
async def live(
    request: Request, service: ServiceOf, access: AccessOf, caller: CallerOf, token: str | None = None
) -> Any:
    """Stream rates every second, and a sample of events with their matches. With API keys, for the scope `admin`."""
    grants = await access.opened(() if token is None else (token,))
    if caller.keys_are_on and EVERYTHING not in grants.names:
        caller.require_admin()
    admission = _admitted(request, service, caller, grants.keys)
    answer = EventStream(service.feed.watch(), service.settings.stream_timeout, admission.close)
    admission.on_revoked = answer.end
    return answer


@contextmanager
def _listening(stream: Stream, admission: Admission, service: Service) -> Iterator[None]:
    """Register a stream for new notifications until the block ends."""
    admission.on_revoked = stream.fall_behind
    service.streams.open(stream)
    try:
        yield
    finally:
        service.streams.close(stream)
        admission.close()


async def _opened(
    service: Service, access: AccessOf, caller: Requester, ids: list[str], names: frozenset[str] = frozenset()
) -> list[StoredSubscription]:
    """The subscriptions of a request; those with a name in `names` are opened by tokens.

    Raises AccessError unless the caller may open all of them.
    """
    most = service.settings.max_stream_subscriptions
    if len(ids) > most:
        message = f"{len(ids):,} subscriptions at once are too many"
        raise LimitError(message, limit="max_stream_subscriptions", hint=f"ask for at most {most:,}")
    return await access.subscriptions(caller, ids, names)


def _admitted(request: Request, service: Service, caller: Requester, keys: frozenset[str] = frozenset()) -> Admission:
    """Admit a new stream, which is bound to the API keys of its caller and of its tokens.

    Raises LimitError if there are too many streams.
    """
    name = caller.owner or (request.client.host if request.client else "")
    settings = service.settings
    if caller.key is not None:
        keys |= {caller.key.id}
    return service.streams.admit(name, settings.max_streams, settings.max_streams_per_caller, keys)
