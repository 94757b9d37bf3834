"""The rows of the store. Times are microseconds since 1970, UTC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harken.live.subscriptions import NO_FIELDS, Record
from harken.store.stored_delivery import DEFAULT_DELIVERY, StoredDelivery

PUT, GONE, RENEWED, SCHEMA = "put", "gone", "renewed", "schema"
JSON, XML, CLOUDEVENT = "json", "xml", "cloudevent"
WAITING, IDLE, STOPPED = "waiting", "idle", "stopped"


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """A subscription as the store has it."""

    id: str
    where: str
    language: str
    expires_at: int
    created_at: int
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    delivery: StoredDelivery = DEFAULT_DELIVERY
    ticket: bytes = b""
    """The SHA-256 of its ticket."""
    since: int = 0
    """The last notification before it was created: earlier ones belong to a previous subscription of the same id."""
    valid_for: int | None = None
    """The validity that its subscriber requested last, in microseconds; None for the server's default."""

    def record(self) -> Record:
        """The subscription as an engine's record."""
        fields: dict[str, Any] = {"owner": self.owner} if self.owner is not None else {}
        if self.labels:
            fields["labels"] = dict(self.labels)
        return Record(0, self.id, self.where, self.language, fields or NO_FIELDS)

    def row(self) -> tuple[Any, ...]:
        """Its columns, in the order of `SUBSCRIPTION_COLUMNS`."""
        labels = json.dumps(dict(self.labels)) if self.labels else None
        texts = self.id, self.where, self.language, self.owner, labels, self.delivery.to_json()
        return (*texts, self.ticket, self.created_at, self.expires_at, self.since, self.valid_for)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> StoredSubscription:
        id, where, language, owner, labels, delivery, ticket, created_at, expires_at, since, valid_for = row
        return cls(
            *(id, where, language, expires_at, created_at, owner),
            labels=json.loads(labels) if labels else {},
            delivery=StoredDelivery.from_json(delivery),
            ticket=bytes(ticket),
            since=since,
            valid_for=valid_for,
        )


SUBSCRIPTION_COLUMNS = (
    *("id", "condition", "language", "owner", "labels", "delivery", "ticket", "created_at", "expires_at", "since"),
    "valid_for",
)


@dataclass(frozen=True, slots=True)
class StoredChange:
    """A change of the log, with the current state of its subscription; None if that was removed."""

    sequence: int
    kind: str
    id: str
    """The id of the subscription; for the kind `schema` the version."""
    subscription: StoredSubscription | None


@dataclass(frozen=True, slots=True)
class JournalledEvent:
    """An event in the journal."""

    number: int
    time: int
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification in the outbox, with its event. `event` is None once it was deleted from the journal."""

    number: int
    subscription: str
    time: int
    suppressed: int
    event: JournalledEvent | None
    event_number: int


class Page(NamedTuple):
    """One page of notifications, in their order."""

    notified: list[Notified]
    end: int
    """The cursor after which the next page begins. On the last page, the last notification of all subscriptions."""
    has_more: bool
    """Whether there may be another page."""


@dataclass(frozen=True, slots=True)
class WebhookState:
    """The progress of a webhook."""

    subscription: str
    acknowledged: int
    """The last notification that was delivered or given up: the subscriber's offset."""
    state: str
    attempts: int
    """Failed attempts to deliver the next notification."""
    next_at: int
    last_error: str | None = None
    failures: int = 0
    """Calls that failed since the last that succeeded."""
    failing_since: int | None = None
    """When the first of these calls failed."""
    owner: str | None = None
    """The owner of the subscription; set by `Store.claim` only."""


@dataclass(frozen=True, slots=True)
class Due:
    """The next notifications of a webhook, with its subscription.

    All of it is read in one transaction: afterwards, another subscription may take the id.
    """

    subscription: StoredSubscription
    acknowledged: int
    batch: list[Notified]
    is_redelivery: bool
    """Whether the subscriber requested these notifications again."""
    failing_since: int | None = None
    """When the first call failed since the last that succeeded."""
    is_full: bool = False
    """Whether more may wait that did not fit into the batch."""

    @property
    def delivery(self) -> StoredDelivery:
        return self.subscription.delivery


@dataclass(frozen=True, slots=True)
class DeadNotification:
    """A notification that was given up: a dead letter."""

    notified: Notified
    failed_at: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, without its secret."""

    id: str
    owner: str
    scopes: frozenset[str]
    name: str | None
    created_at: int
