"""What the tests put into a store, and what they look at in it. Times are microseconds; NOW is when most happens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from harken.store import NewEvent, Store, StoredDelivery, StoredSubscription
from harken.store.stored import JSON
from harken.store.writing import Appended, Publication

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
HOUR = 3_600 * SECOND
WEBHOOK = StoredDelivery(url="https://example.org/hook", secret="whsec_x")


def ticket(id: str) -> bytes:
    """The digest of the ticket that a subscription of this id gets here."""
    return hashlib.sha256(id.encode()).digest()


def subscription(id: str, where: str = "price < 5", **given: Any) -> StoredSubscription:
    usual: dict[str, Any] = {
        "language": "sql",
        "expires_at": NOW + HOUR,
        "created_at": NOW,
        "ticket": ticket(id),
    }
    return StoredSubscription(id, where, **(usual | given))


def create(store: Store, *ids: str, **given: Any) -> None:
    """Subscriptions of these ids, all of which have to be new."""
    with store.writing(NOW) as writing:
        made = writing.create([subscription(id, **given) for id in ids])
    assert [each.id for each in made if isinstance(each, StoredSubscription)] == list(ids)


def event(*matches: str, body: bytes = b"{}", key: bytes | None = None) -> NewEvent:
    return NewEvent(JSON, body, matches, key)


def publish(
    store: Store,
    *events: NewEvent,
    now: int = NOW,
    key: bytes | None = None,
    answer: str = "",
    deliveries: Mapping[str, StoredDelivery] | None = None,
) -> Appended:
    """Append the events of one request. Deliveries are those that the store knows, unless others are given."""
    known = store.deliveries() if deliveries is None else deliveries
    with store.writing(now) as writing:
        return writing.append([Publication(events, key, answer)], known)


def told(store: Store, *ids: str, after: int = 0, limit: int = 1_000) -> list[tuple[str, int]]:
    """(subscription, event number) of the notifications of subscriptions that there are."""
    since = {each.id: each.since for each in store.subscriptions_of(ids)}
    return [(each.subscription, each.event_number) for each in store.notifications(since, after, limit)]


def numbers(store: Store, *ids: str) -> list[int]:
    """The numbers of their notifications."""
    return [each.number for each in store.notifications(dict.fromkeys(ids, 0), 0, 100_000)]


def gaps(found: Sequence[int]) -> list[int]:
    """Numbers from 1 on that are missing or there twice."""
    return sorted(set(range(1, len(found) + 1)) ^ set(found))
