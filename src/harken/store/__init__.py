"""The store: subscriptions, their change log, the journal of events and the outbox, on SQLite or PostgreSQL."""

from __future__ import annotations

from harken.store.opening import open_store
from harken.store.outbox import NewNotification
from harken.store.store import Store
from harken.store.stored import (
    ApiKey,
    DeadNotification,
    JournalledEvent,
    Notified,
    StoredChange,
    StoredSubscription,
    WebhookState,
)
from harken.store.stored_delivery import CLOUDEVENTS, PLAIN, StoredDelivery, StoredThrottle
from harken.store.writing import BehindError, NewEvent, Writing

__all__ = [
    "CLOUDEVENTS",
    "PLAIN",
    "ApiKey",
    "BehindError",
    "DeadNotification",
    "JournalledEvent",
    "NewEvent",
    "NewNotification",
    "Notified",
    "Store",
    "StoredChange",
    "StoredDelivery",
    "StoredSubscription",
    "StoredThrottle",
    "WebhookState",
    "Writing",
    "open_store",
]
