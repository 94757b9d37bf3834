"""The calls about events and about the texts of subscriptions, as flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from harken.client.answers import Backtested, Explained, Matched, Published, Rejected
from harken.client.client_errors import ServerError, all_rejected
from harken.client.exchange import Access, Answer, Flow, Request, sent
from harken.client.request_encoding import Body, Event, Unsendable, bodies, carrying, present


def publish(
    access: Access,
    events: Event | Iterable[Event],
    *,
    idempotency_key: str | None = None,
    content_type: str | None = None,
) -> Flow[Published]:
    """Publish one event, or many: mappings, or the bytes of XML documents.

    Many are sent in batches, while they are read. Each batch has an idempotency key: if its answer is lost, it is sent
    again and counts once. With a key of your own, the same holds for repeated calls. With a content type, such as
    `application/cloudevents+json`, all events are sent in one request. Raises ServerError if no event was accepted.
    """
    key = uuid4().hex if idempotency_key is None else idempotency_key
    accepted, duplicates, rejected = 0, 0, list[Rejected]()
    last_rejection: ServerError | None = None
    for body in bodies(events, content_type):
        if isinstance(body, Unsendable):
            rejected.append(Rejected.because(body.error, body.position))
            continue
        try:
            answer = yield from sent(access, _of_events(access, body, _key_of(body, key)))
        except ServerError as error:
            if not error.rejected:
                raise
            last_rejection = error
            rejected += _placed(error.rejected, body)
        else:
            plain = answer.json
            accepted, duplicates = accepted + plain["accepted"], duplicates + (plain.get("duplicates") or 0)
            rejected += _rejected(answer, body)
    if rejected and not accepted + duplicates:
        raise all_rejected(rejected, last_rejection)
    return Published(accepted, tuple(rejected), duplicates)


def match(access: Access, events: Event | Iterable[Event], *, content_type: str | None = None) -> Flow[Matched]:
    """For each event the subscriptions that are true of it. Nothing is published or notified."""
    ids: dict[int, list[str]] = {}
    rejected: list[Rejected] = []
    for body in bodies(events, content_type):
        if isinstance(body, Unsendable):
            rejected.append(Rejected.because(body.error, body.position))
            ids[body.position] = []
            continue
        answer = yield from sent(access, _of_events(access, body, None))
        rejected += _rejected(answer, body)
        matches = answer.json["matches"]
        ids |= zip(range(len(matches)) if body.positions is None else body.positions, matches, strict=True)
    return Matched((ids[position] for position in sorted(ids)), tuple(rejected))


def explain(
    access: Access,
    event: Event,
    *,
    where: str | None = None,
    subscription: str | None = None,
    language: str | None = None,
    ticket: str | None = None,
) -> Flow[Explained]:
    """Why an event matches a text, or a subscription of the server, or why it does not."""
    if (where is None) is (subscription is None):
        raise TypeError("explain() takes one of where= and subscription=")
    ids = () if subscription is None else (subscription,)
    shown = event.decode() if isinstance(event, bytes) else event
    body = present(where=where, subscription=subscription, language=language, event=shown)
    request = Request("POST", "/explain", (), access.headers(*ids, ticket=ticket), is_repeatable=True)
    answer = yield from sent(access, carrying(body, request))
    return Explained.of(answer.json)


def backtest(
    access: Access, where: str, *, language: str = "sql", limit: int = 20, events: int = 10_000
) -> Flow[Backtested]:
    """What a text would have matched among the newest events, with at most `limit` examples."""
    body = present(where=where, language=language, limit=limit, events=events)
    request = Request("POST", "/backtest", (), access.headers(), is_repeatable=True)
    answer = yield from sent(access, carrying(body, request))
    return Backtested.of(answer.json)


def check(access: Access, where: str, *, language: str = "sql") -> Flow[tuple[str, ...]]:
    """Check a text against the server's schema, and return warnings. Raises ServerError, with the place of a fault."""
    request = Request("POST", "/check", (), access.headers(), is_repeatable=True)
    answer = yield from sent(access, carrying(present(where=where, language=language), request))
    return tuple(answer.json.get("warnings") or ())


def _of_events(access: Access, body: Body, key: str | None) -> Request:
    """The request that publishes a batch; without a key, a dry run."""
    headers = access.headers(Content_Type=body.content_type)
    if key is None:
        return Request("POST", "/events", [("dry_run", "true")], headers, body.content, is_repeatable=True)
    return Request("POST", "/events", (), {**headers, "Idempotency-Key": key}, body.content, is_repeatable=True)


def _key_of(body: Body, key: str) -> str:
    """The idempotency key of a batch: the same if the same events are published again."""
    return key if not body.positions or body.positions[0] == 0 else f"{key}-{body.positions[0]}"


def _rejected(answer: Answer, body: Body) -> list[Rejected]:
    plain: Sequence[Mapping[str, Any]] = answer.json.get("rejected") or ()
    return _placed([Rejected.of(each) for each in plain], body)


def _placed(rejected: Iterable[Rejected], body: Body) -> list[Rejected]:
    """The rejections with positions in the whole input, not in the batch."""
    positions = body.positions
    return [each if positions is None else each.at(positions[each.position]) for each in rejected]
