"""The calls about subscriptions, as flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from harken.client.answers import Changed, LineReport, SubscriptionState, Ticketed
from harken.client.client_errors import ServerError, UnreachableError, error_of_problem
from harken.client.delivery import Delivery
from harken.client.exchange import NDJSON, Access, Flow, Pages, Request, given, pages, path_of, sent
from harken.client.request_encoding import Unsendable, batches, carrying, present

Seconds = float | timedelta

_MOST_TICKETS = 200
"""At most this many tickets go into the headers of a request, whose size is bounded."""
_MOST_LINES = 500
# A server may answer the first lines while the last are still being sent. This many bytes fit into the buffers of a
# connection, so that client and server never block each other.
_MOST_LINE_BYTES = 65_536
_NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 404, 409, 422


def subscribe(
    access: Access,
    where: str,
    *,
    id: str | None = None,
    language: str = "sql",
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    valid_for: Seconds | None = None,
    delivery: Delivery | None = None,
) -> Flow[Ticketed]:
    """Add a subscription and remember its ticket.

    The server makes an id if none is given; only with an id is the call retried after a lost connection. Without
    `valid_for` the subscription expires after a day, unless it is renewed. Raises ServerError, with the place of the
    fault in the text.
    """
    body = present(
        where=where, language=language, id=id, owner=owner, labels=labels, valid_for=valid_for, delivery=delivery
    )
    request = carrying(body, Request("POST", "/subscriptions", (), access.headers(), is_repeatable=id is not None))
    try:
        answer = yield from sent(access, request)
    except ServerError as error:
        if error.status == _CONFLICT and error.is_repeat:
            error.hint = "an earlier attempt of this call got no answer: it may have made the subscription"
        raise
    made = Ticketed.of(answer.json)
    access.tickets[made.id] = made.ticket
    return made


def subscribe_many(access: Access, subscriptions: Iterable[Mapping[str, Any]]) -> Pages[LineReport]:
    """Add many subscriptions, mappings with the arguments of `subscribe`, and iterate over the reports on them.

    They are read and sent during the iteration, some hundred a request. An invalid one does not stop the others.
    Tickets are remembered.
    """
    for body in batches(subscriptions, _MOST_LINES, _MOST_LINE_BYTES):
        yield _unsendable(body) if isinstance(body, Unsendable) else _many(access, body.content, body.positions or ())


def subscription(access: Access, id: str, *, ticket: str | None = None) -> Flow[SubscriptionState]:
    """Return a subscription of the server."""
    headers = access.headers(id, ticket=ticket)
    answer = yield from sent(access, Request("GET", path_of("subscriptions", id), (), headers, is_repeatable=True))
    return SubscriptionState.of(answer.json)


def subscriptions(
    access: Access,
    *,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    language: str | None = None,
    ticket: str | None = None,
    page_size: int = 100,
) -> Pages[SubscriptionState]:
    """Iterate over the subscriptions that the server lists.

    Those that the key, the ticket or one of the first 200 remembered tickets opens have all fields, and can be selected
    by labels.
    """
    by_label = [("label", f"{name}:{text}") for name, text in (labels or {}).items()]
    query = [*given(owner=owner, language=language, limit=page_size), *by_label]
    ids = islice(access.tickets, _MOST_TICKETS)
    request = Request("GET", "/subscriptions", query, access.headers(*ids, ticket=ticket))
    return pages(access, request, "subscriptions", SubscriptionState.of)


def change(
    access: Access,
    id: str,
    where: str,
    *,
    language: str = "sql",
    labels: Mapping[str, str] | None = None,
    valid_for: Seconds | None = None,
    delivery: Delivery | None = None,
    ticket: str | None = None,
) -> Flow[Changed]:
    """Replace a subscription, except its id, owner and ticket."""
    body = present(where=where, language=language, labels=labels, valid_for=valid_for, delivery=delivery)
    headers = access.headers(id, ticket=ticket)
    request = carrying(body, Request("PUT", path_of("subscriptions", id), (), headers, is_repeatable=True))
    answer = yield from sent(access, request)
    return Changed.of(answer.json)


def unsubscribe(access: Access, id: str, *, ticket: str | None = None) -> Flow[None]:
    """End a subscription, and forget its ticket."""
    headers = access.headers(id, ticket=ticket)
    try:
        yield from sent(access, Request("DELETE", path_of("subscriptions", id), (), headers, is_repeatable=True))
    except ServerError as error:
        if error.status != _NOT_FOUND or not error.is_repeat:  # else the attempt without an answer was carried out
            raise
    access.tickets.pop(id, None)


def renew(access: Access, id: str, valid_for: Seconds | None = None, *, ticket: str | None = None) -> Flow[Changed]:
    """Extend a subscription: it expires `valid_for` seconds from now, by default after a day."""
    headers = access.headers(id, ticket=ticket)
    request = Request("POST", path_of("subscriptions", id, "renew"), (), headers, is_repeatable=True)
    answer = yield from sent(access, carrying(present(valid_for=valid_for), request))
    return Changed.of(answer.json)


def _many(access: Access, content: bytes, positions: Sequence[int]) -> Flow[Sequence[LineReport]]:
    """The reports on one batch, with lines counted in the whole input."""
    headers = access.headers(Content_Type=NDJSON, Accept=NDJSON)
    answer = yield from sent(access, Request("POST", "/subscriptions", (), headers, content))
    reports = [_report(each, positions) for each in answer.json_lines]
    reported = {each.line for each in reports}
    unreported = UnreachableError("the server did not say what became of this subscription")
    reports += [LineReport(at + 1, None, error=unreported) for at in positions if at + 1 not in reported]
    access.tickets.update({each.id: each.ticket for each in reports if each.id is not None and each.ticket is not None})
    return reports


def _report(plain: Mapping[str, Any], positions: Sequence[int]) -> LineReport:
    line, id = positions[plain["line"] - 1] + 1, plain.get("id")
    problem = plain.get("error")
    if problem is not None:
        return LineReport(line, id, error=error_of_problem(problem, _UNPROCESSABLE))
    made = Ticketed.of(plain)
    return LineReport(line, id, made.ticket, made.expires_at, made.warnings, made.webhook_secret)


def _unsendable(item: Unsendable) -> Flow[Sequence[LineReport]]:
    yield from ()
    return [LineReport(item.position + 1, None, error=item.error)]
