"""The subscriptions of a store, as a pipeline's source: read once, and then followed by the store's change log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from harken.live.subscriptions import Record
from harken.pipeline.subscription_source import Polled
from harken.store import Store, StoredSubscription, open_store
from harken.store.store import microseconds
from harken.store.stored import SCHEMA

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CREATED = "created_at"
"""The field of a subscription that tells it from another that had its id before."""


class StoredSubscriptions:
    """Follows a store. Between two polls it holds no connection to it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._store: str | None = None
        """The name of the store that the rest was read from."""
        self._sequence = 0
        """The last change that is known."""
        self._known: dict[str, tuple[int, Record]] = {}
        """By id: when a subscription expires, and the subscription."""

    def state(self) -> str:
        """The store, its last change, and the last time at which a subscription expired that is not swept yet."""
        with opened_store(self._place) as store:
            return f"{store.name} {store.sequence} {store.last_expiry(microseconds())}"

    def poll(self) -> Polled:
        """The subscriptions that have not expired. Only what changed since the last poll is read, if the log has it."""
        with opened_store(self._place) as store:
            if store.name != self._store or not self._follow(store):
                self._read(store)
        now = microseconds()
        records = {id: record for id, (expires_at, record) in self._known.items() if expires_at > now}
        return Polled(records, may_be_empty=True)

    def _follow(self, store: Store) -> bool:
        """Take the changes since. Returns whether the log reaches back so far."""
        while changes := store.changes(self._sequence):
            for each in changes:
                if each.subscription is not None:
                    self._take(each.subscription)
                elif each.kind != SCHEMA:
                    self._known.pop(each.id, None)
            self._sequence = changes[-1].sequence
        return changes is not None

    def _read(self, store: Store) -> None:
        with store.everything() as (sequence, subscriptions):
            self._known.clear()
            for each in subscriptions:
                self._take(each)
        self._store, self._sequence = store.name, sequence

    def _take(self, subscription: StoredSubscription) -> None:
        record = subscription.record()
        fields = {**record.fields, CREATED: subscription.created_at}
        self._known[subscription.id] = subscription.expires_at, replace(record, fields=fields)


def opened_store(place: str) -> AbstractContextManager[Store]:
    """The store of a pipeline, which has to be there. Raises StoreError."""
    return closing(open_store(place, create=False))
