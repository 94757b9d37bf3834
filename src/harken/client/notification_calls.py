"""The calls about notifications, as flows."""

from __future__ import annotations

from collections.abc import Sequence

from harken.client.answers import DeadLetter, NotificationPage
from harken.client.exchange import Access, Flow, Pages, Request, given, pages, path_of, sent
from harken.client.request_encoding import carrying, present


def notifications(
    access: Access,
    *ids: str,
    after: str | int | None = None,
    limit: int | None = None,
    wait: float = 0,
    ticket: str | None = None,
) -> Flow[NotificationPage]:
    """A page of the notifications of subscriptions after a cursor. If there are none yet, wait up to `wait` seconds."""
    query = [*(("subscription", id) for id in ids), *given(after=after, limit=limit, wait=wait or None)]
    headers = access.headers(*ids, ticket=ticket)
    answer = yield from sent(access, Request("GET", "/notifications", query, headers, is_repeatable=True, wait=wait))
    return NotificationPage.of(answer.json)


def dead_letters(access: Access, id: str, *, ticket: str | None = None, page_size: int = 100) -> Pages[DeadLetter]:
    """Iterate over the notifications that could not be delivered to the webhook of a subscription."""
    headers = access.headers(id, ticket=ticket)
    request = Request("GET", path_of("subscriptions", id, "dead-letters"), given(limit=page_size), headers)
    return pages(access, request, "dead_letters", DeadLetter.of)


def redeliver(
    access: Access,
    id: str,
    *,
    notifications: Sequence[str] | None = None,
    dead: bool | None = None,
    after: str | int | None = None,
    ticket: str | None = None,
) -> Flow[int]:
    """Deliver notifications to the webhook of a subscription again, and return their number.

    They are those named, all dead letters, or all after a cursor. A webhook that was stopped starts again.
    """
    body = present(notifications=notifications, dead=dead, after=None if after is None else str(after))
    headers = access.headers(id, ticket=ticket)
    request = Request("POST", path_of("subscriptions", id, "redeliver"), (), headers)
    answer = yield from sent(access, carrying(body, request))
    return int(answer.json["redelivered"])
