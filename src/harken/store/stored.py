"""What the store holds, row by row. Times are microseconds since 1970, UTC."""

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
    """A subscription as it lies in the store."""

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
    """The last notification before it was created: earlier ones belong to another that had its id."""
    valid_for: int | None = None
    """The validity that its subscriber asked for last, in microseconds; None for the server's default."""

    def record(self) -> Record:
        """The subscription as an engine takes it."""
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
    """One step of the change log, with what its subscription is by now; None if it is gone."""

    sequence: int
    kind: str
    id: str
    """Of the subscription; for the kind `schema` the version."""
    subscription: StoredSubscription | None


@dataclass(frozen=True, slots=True)
class JournalledEvent:
    """An event that was accepted."""

    number: int
    time: int
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification in the outbox, with its event. `event` is None once the journal has let go of it."""

    number: int
    subscription: str
    time: int
    suppressed: int
    event: JournalledEvent | None
    event_number: int


class Page(NamedTuple):
    """Notifications in their order."""

    notified: list[Notified]
    end: int
    """The cursor after which the next page begins: if these are all, the last notification of everybody's."""
    has_more: bool
    """Whether there may be more."""


@dataclass(frozen=True, slots=True)
class WebhookState:
    """How far a webhook has come."""

    subscription: str
    acknowledged: int
    """The last notification that was delivered or given up: the subscriber's offset."""
    state: str
    attempts: int
    """Tries of the notification that is next."""
    next_at: int
    last_error: str | None = None
    failures: int = 0
    """Calls that failed since the last that succeeded."""
    failing_since: int | None = None
    """When the first of them failed."""
    owner: str | None = None
    """Whose subscription it is; only a claim tells."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a webhook gets next, and of whom: all of one moment, since another may have the id in the next."""

    subscription: StoredSubscription
    acknowledged: int
    batch: list[Notified]
    is_again: bool
    """Whether the subscriber asked for these again."""
    failing_since: int | None = None
    """When the first call failed since the last that succeeded."""
    is_full: bool = False
    """Whether more may wait, which did not fit."""

    @property
    def delivery(self) -> StoredDelivery:
        return self.subscription.delivery


@dataclass(frozen=True, slots=True)
class DeadNotification:
    """A notification that was given up."""

    notified: Notified
    failed_at: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of the API, without the key."""

    id: str
    owner: str
    scopes: frozenset[str]
    name: str | None
    created_at: int
