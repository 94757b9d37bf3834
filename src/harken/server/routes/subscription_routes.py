"""Routes for subscriptions: create, list, read, change, renew, delete; bulk, tokens, dead letters, redelivery."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from harken.errors import AccessError, HarkenError
from harken.server.access import SUBSCRIBE, Requester, token_name
from harken.server.body_shapes import event_text, iso
from harken.server.bulk_requests import create_in_bulk
from harken.server.drafts import changed_draft, checked_validity, created_answer, new_draft
from harken.server.http_answers import (
    DeadLettersModel,
    ExpiresModel,
    ListModel,
    RedeliveredModel,
    ShownModel,
    StreamTokenModel,
    TakenModel,
)
from harken.server.models import ChangeModel, RedeliverModel, RenewModel, SubscriptionModel
from harken.server.problems import InvalidRequestError
from harken.server.publications import JSON_TYPES, LINE_TYPES, ContentTypeError, main_type
from harken.server.requests import (
    AccessOf,
    CallerOf,
    IdOf,
    ServiceOf,
    cursor_of,
    json_of,
    problems,
)
from harken.store import DeadNotification, StoredSubscription, WebhookState
from harken.store.store import microseconds
from harken.store.stored import IDLE

router = APIRouter(tags=["subscriptions"])
_EXAMPLE = {"where": "category = 'Toy' AND price < 5", "id": "alice", "valid_for": 3600}
_BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": SubscriptionModel.model_json_schema(), "example": _EXAMPLE},
            "application/x-ndjson": {"schema": {"type": "string"}, "example": json.dumps(_EXAMPLE)},
        },
    }
}


@router.post(
    "/subscriptions",
    status_code=201,
    response_model=TakenModel,
    response_model_exclude_none=True,
    responses={
        200: {"description": "In bulk: a report with a line for each.", "content": {"application/x-ndjson": {}}},
        **problems(409, body=True),
    },
    openapi_extra=_BODIES,
)
async def subscribe(request: Request, response: Response, service: ServiceOf, caller: CallerOf) -> Any:
    """Create a subscription; or many, one a line, as application/x-ndjson. The report has a line for each."""
    caller.require(SUBSCRIBE)
    kind = main_type(request.headers.get("content-type", "application/json"))
    if kind in LINE_TYPES:
        return await create_in_bulk(request, service, caller)
    if kind not in JSON_TYPES:
        raise ContentTypeError(f"subscriptions cannot be sent as `{kind:.60}`", hint="send application/json")
    draft = new_draft(json_of(await request.body()), service.settings, caller)
    (outcome,) = await service.subscriptions.subscribe([draft])
    if isinstance(outcome, HarkenError):
        raise outcome
    response.headers["Location"] = f"/subscriptions/{quote(outcome.id, safe='')}"
    return created_answer(outcome, draft)


@router.get("/subscriptions", response_model=ListModel, response_model_exclude_unset=True, responses=problems())
async def listed(
    service: ServiceOf,
    caller: CallerOf,
    owner: str | None = None,
    language: str | None = None,
    label: Annotated[list[str] | None, Query(description="name:value; may be repeated")] = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    """List subscriptions. Those that a ticket or key opens are complete.

    Without API keys, others are listed with id, language and expiry only; with API keys, they are not listed.
    """
    if caller.keys_are_on and not caller.is_admin:
        caller.require(SUBSCRIBE)
        if owner is not None and owner != caller.owner:
            raise AccessError("a key lists the subscriptions of its owner only", is_known=True)
        owner = caller.owner
    labels = dict(_label(each) for each in label or ())
    limit = min(limit, service.settings.max_page)
    most = service.settings.max_answer_bytes
    rows, following = await service.readers.run(
        service.store.listed_page, after or "", limit, owner=owner, language=language, most_length=most
    )
    now = microseconds()
    # A filter by label matches only subscriptions whose labels the caller may read.
    shown = [
        _shown(each, caller)
        for each in rows
        if each.expires_at > now
        and (not labels or (caller.opens(each) and labels.items() <= dict(each.labels).items()))
    ]
    return {"subscriptions": shown, "next": following}


@router.get(
    "/subscriptions/{id}", response_model=ShownModel, response_model_exclude_unset=True, responses=problems(404)
)
async def read(id: IdOf, service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """Read a subscription. It needs its ticket, or a key of its owner."""
    shown = _shown(await access.subscription(caller, id), caller)
    webhook = await service.readers.run(service.store.webhook, id)
    if webhook is not None:
        state, dead = webhook
        shown["webhook"] = {
            "state": _shown_state(state),
            "failures": state.failures,
            "acknowledged": str(state.acknowledged),
            "dead": dead,
            **({"next_attempt_at": iso(state.next_at)} if state.attempts and state.state == "waiting" else {}),
            **({"failing_since": iso(state.failing_since)} if state.failing_since else {}),
            **({"last_error": state.last_error} if state.last_error else {}),
        }
    return shown


@router.put(
    "/subscriptions/{id}",
    response_model=ExpiresModel,
    response_model_exclude_none=True,
    responses=problems(404, body=True),
)
async def change(id: IdOf, body: ChangeModel, service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """Replace the text, labels and delivery of a subscription. Id, owner and ticket stay; the validity stays unless a
    new one is sent.
    """
    before = await access.subscription(caller, id)
    draft = changed_draft(body, before, service.settings, service.store.sealing)
    expires_at, warnings = await service.subscriptions.change(before, draft)
    secret = draft.delivery.secret if draft.delivery.secret != before.delivery.secret else None
    return {"id": id, "expires_at": iso(expires_at), "warnings": list(warnings) or None, "webhook_secret": secret}


@router.delete("/subscriptions/{id}", status_code=204, responses=problems(404))
async def unsubscribe(id: IdOf, service: ServiceOf, access: AccessOf, caller: CallerOf) -> None:
    """Remove a subscription."""
    await access.subscription(caller, id)
    await service.subscriptions.unsubscribe(id)


@router.post(
    "/subscriptions/{id}/renew",
    response_model=ExpiresModel,
    response_model_exclude_none=True,
    responses=problems(404, body=True),
)
async def renew(
    id: IdOf, service: ServiceOf, access: AccessOf, caller: CallerOf, body: RenewModel | None = None
) -> Any:
    """Extend a subscription: it is valid from now on for the requested time, or the server's default."""
    subscription = await access.subscription(caller, id)
    valid_for = checked_validity(body.valid_for if body is not None else None, service.settings)
    return {"id": id, "expires_at": iso(await service.subscriptions.renew(subscription, valid_for))}


@router.post("/subscriptions/{id}/token", response_model=StreamTokenModel, responses=problems(404))
async def token(id: IdOf, service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """A token that opens the stream of a subscription for a few minutes, for clients that cannot send headers."""
    name = token_name(await access.subscription(caller, id))
    until = microseconds() + int(service.settings.token_valid_for * 1e6)
    last = await service.readers.run(lambda: service.store.last_notification)
    return {"token": access.token(caller, [name], until), "expires_at": iso(until), "cursor": str(last)}


@router.get("/subscriptions/{id}/dead-letters", response_model=DeadLettersModel, responses=problems(404))
async def dead_letters(
    id: IdOf,
    service: ServiceOf,
    access: AccessOf,
    caller: CallerOf,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    """Dead letters: notifications that the webhook did not accept in any attempt."""
    await access.subscription(caller, id)
    limit = min(limit, service.settings.max_page)
    most = service.settings.max_answer_bytes
    dead, last = await service.readers.run(service.store.dead_page, id, cursor_of(after) or 0, limit, most)
    following = json.dumps(None if last is None else str(last))
    text = f'{{"dead_letters": [{", ".join(map(_dead_letter, dead))}], "next": {following}}}'
    return Response(text, media_type="application/json")


def _dead_letter(dead: DeadNotification) -> str:
    """A dead letter as JSON, with its event as it was published."""
    notified = dead.notified
    plain = {
        "id": str(notified.number),
        "time": iso(notified.time),
        "failed_at": iso(dead.failed_at),
        "attempts": dead.attempts,
        "reason": dead.reason,
    }
    return f'{json.dumps(plain)[:-1]}, "event": {event_text(notified.event)}}}'


@router.post(
    "/subscriptions/{id}/redeliver",
    status_code=202,
    response_model=RedeliveredModel,
    responses=problems(404, body=True),
)
async def redeliver(id: IdOf, body: RedeliverModel, service: ServiceOf, access: AccessOf, caller: CallerOf) -> Any:
    """Send notifications to the webhook again. A stopped webhook starts again."""
    subscription = await access.subscription(caller, id)
    if subscription.delivery.url is None:
        raise InvalidRequestError(f"{id!r:.80} has no webhook")
    numbers: set[int] = {cursor_of(each) or 0 for each in body.notifications or ()}
    store, readers = service.store, service.readers
    if body.dead:
        numbers.update(each.notified.number for each in await readers.run(store.dead_notifications, id, 0, 10_000))
    if body.after is not None:
        since = max(cursor_of(body.after) or 0, subscription.since)
        numbers.update(each.number for each in await readers.run(store.notifications, {id: since}, since, 10_000))
    notified = await readers.run(store.notifications_of, id, sorted(numbers)[:10_000])
    chosen = [each.number for each in notified if each.number > subscription.since]
    await asyncio.wrap_future(service.committer.submit(lambda writing: writing.redeliver(id, chosen)))
    service.webhooks.wake()
    return {"redelivered": len(chosen)}


def _shown(subscription: StoredSubscription, caller: Requester) -> dict[str, Any]:
    """A subscription as a caller may see it."""
    head = {"id": subscription.id, "language": subscription.language, "expires_at": iso(subscription.expires_at)}
    if not caller.opens(subscription):
        return head
    return {
        **head,
        "where": subscription.where,
        "owner": subscription.owner,
        "labels": dict(subscription.labels),
        "created_at": iso(subscription.created_at),
        "delivery": subscription.delivery.shown(),
    }


def _shown_state(state: WebhookState) -> str:
    """The state of a webhook for the API: `idle` is shown as `active`, or `failing` if the last call failed."""
    if state.state != IDLE:
        return state.state
    return "failing" if state.failures else "active"


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator:
        raise InvalidRequestError(f"{text!r:.60} is not a label", hint="write name:value")
    return name, value
