"""Subscriptions as requests ask for them: checked against the limits of the server, and what is answered to them."""

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
    """A new subscription as it was asked for. Raises HarkenError."""
    try:
        given = SubscriptionModel.model_validate(content)
    except ValidationError as error:
        raise first_fault(error) from None
    if caller.key is not None and not caller.is_admin and given.owner not in (None, caller.owner):
        raise AccessError("a key subscribes for its owner only", is_known=True)
    return _drafted(given, given.id or secrets.token_hex(10), given.owner or caller.owner, settings)


def changed_draft(
    given: ChangeModel, known: StoredSubscription, settings: ServerSettings, sealing: Sealing
) -> SubscriptionDraft:
    """A subscription as it is to become. It keeps its validity and its webhook's secret, as that is stored, unless
    others are given. Raises HarkenError.
    """
    draft = _drafted(given, known.id, known.owner, settings)
    if draft.valid_for is None and known.valid_for is not None:
        draft = replace(draft, valid_for=min(known.valid_for / 1e6, settings.max_valid_for))
    webhook = None if given.delivery is None else given.delivery.webhook
    secret = known.delivery.secret
    if webhook is not None and secret is not None and webhook.secret in (None, sealing.opened(secret)):
        draft = replace(draft, delivery=replace(draft.delivery, secret=secret))
    return draft


def validity(asked: float | None, settings: ServerSettings) -> float | None:
    """How long a subscription is to be valid; None for the default. Raises LimitError if that is too long."""
    if asked is not None and asked > settings.max_valid_for:
        message = f"a subscription is valid for {settings.max_valid_for:,.0f} seconds at most"
        raise LimitError(message, limit="max_valid_for")
    return asked


def shown_taken(taken: NewSubscription, draft: SubscriptionDraft) -> dict[str, Any]:
    """The answer to a subscription that was taken."""
    answer: dict[str, Any] = {"id": taken.id, "ticket": taken.ticket, "expires_at": iso(taken.expires_at)}
    if taken.warnings:
        answer["warnings"] = list(taken.warnings)
    if draft.delivery.secret is not None:
        answer["webhook_secret"] = draft.delivery.secret
    return answer


def _drafted(given: ChangeModel, id: str, owner: str | None, settings: ServerSettings) -> SubscriptionDraft:
    if len(json.dumps(given.labels)) > settings.max_label_bytes:
        raise LimitError("the labels are too long", limit="max_label_bytes")
    delivery = StoredDelivery()
    if given.delivery is not None:
        told = given.delivery
        url = secret = None
        if told.webhook is not None:
            url = told.webhook.url
            check_url(url, settings.webhook_networks)
            secret = told.webhook.secret or new_secret()
            signing_key(secret)
        throttle = None if told.throttle is None else StoredThrottle(told.throttle.count, told.throttle.seconds)
        delivery = StoredDelivery(url, secret, told.format, told.max_delay, throttle)
    return SubscriptionDraft(
        id, given.where, given.language, validity(given.valid_for, settings), owner, given.labels, delivery
    )
