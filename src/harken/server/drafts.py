"""Drafts of subscriptions from the bodies of requests, checked against the server's limits; and the answers to them."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from harken.errors import AccessError, LimitError
from harken.server.access import Requester
from harken.server.body_shapes import iso
from harken.server.models import ChangeModel, SubscriptionModel
from harken.server.requests import first_fault
from harken.server.settings import ServerSettings
from harken.server.subscribing import NewSubscription, SubscriptionDraft
from harken.server.webhooks.addresses import check_url
from harken.server.webhooks.signing import new_secret, signing_key
from harken.store import StoredDelivery, StoredSubscription, StoredThrottle
from harken.store.sealing import Sealing


def new_draft(content: Any, settings: ServerSettings, caller: Requester) -> SubscriptionDraft:
    """The draft of a new subscription. Raises HarkenError."""
    try:
        model = SubscriptionModel.model_validate(content)
    except ValidationError as error:
        raise first_fault(error) from None
    if caller.key is not None and not caller.is_admin and model.owner not in (None, caller.owner):
        raise AccessError("a key subscribes for its owner only", is_known=True)
    return _drafted(model, model.id or secrets.token_hex(10), model.owner or caller.owner, settings)


def changed_draft(
    model: ChangeModel, before: StoredSubscription, settings: ServerSettings, sealing: Sealing
) -> SubscriptionDraft:
    """The draft of a changed subscription. Validity and webhook secret, encrypted as stored, stay as `before` unless
    the request has new ones. Raises HarkenError.
    """
    draft = _drafted(model, before.id, before.owner, settings)
    if draft.valid_for is None and before.valid_for is not None:
        draft = replace(draft, valid_for=min(before.valid_for / 1e6, settings.max_valid_for))
    webhook = None if model.delivery is None else model.delivery.webhook
    secret = before.delivery.secret
    if webhook is not None and secret is not None and webhook.secret in (None, sealing.opened(secret)):
        draft = replace(draft, delivery=replace(draft.delivery, secret=secret))
    return draft


def checked_validity(seconds: float | None, settings: ServerSettings) -> float | None:
    """The validity of a request, None for the default. Raises LimitError if it is too long."""
    if seconds is not None and seconds > settings.max_valid_for:
        message = f"a subscription is valid for {settings.max_valid_for:,.0f} seconds at most"
        raise LimitError(message, limit="max_valid_for")
    return seconds


def created_answer(new: NewSubscription, draft: SubscriptionDraft) -> dict[str, Any]:
    """The answer to a request that created a subscription."""
    answer: dict[str, Any] = {"id": new.id, "ticket": new.ticket, "expires_at": iso(new.expires_at)}
    if new.warnings:
        answer["warnings"] = list(new.warnings)
    if draft.delivery.secret is not None:
        answer["webhook_secret"] = draft.delivery.secret
    return answer


def _drafted(model: ChangeModel, id: str, owner: str | None, settings: ServerSettings) -> SubscriptionDraft:
    if len(json.dumps(model.labels)) > settings.max_label_bytes:
        raise LimitError("the labels are too long", limit="max_label_bytes")
    delivery = StoredDelivery()
    if model.delivery is not None:
        webhook, limit = model.delivery.webhook, model.delivery.throttle
        url = secret = None
        if webhook is not None:
            url = webhook.url
            check_url(url, settings.webhook_networks)
            secret = webhook.secret or new_secret()
            signing_key(secret)
        throttle = None if limit is None else StoredThrottle(limit.count, limit.seconds)
        delivery = StoredDelivery(url, secret, model.delivery.format, model.delivery.max_delay, throttle)
    valid_for = checked_validity(model.valid_for, settings)
    return SubscriptionDraft(id, model.where, model.language, valid_for, owner, model.labels, delivery)
