"""The subscriptions of a store as the source of a pipeline: read once, then updated from the store's change log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from harken.live.subscriptions import Record
from harken.pipeline.subscription_source import SourceContents
from harken.store import Store, StoredSubscription, open_store
from harken.store.store import microseconds
from harken.store.stored import SCHEMA

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CREATED = "created_at"
"""The field that distinguishes a subscription from an earlier one with the same id."""


class StoredSubscriptions:
    """Follows the subscriptions of a store. It is connected to the store only during a poll."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._store: str | None = None
        """The name of the store from which the subscriptions were read."""
        self._sequence = 0
        """The sequence number of the last change that was applied."""
        self._subscriptions: dict[str, tuple[int, Record]] = {}
        """By id: the time at which the subscription expires, and the subscription."""

    def state(self) -> str:
        """The store's name, its last change, and the latest expiry of a subscription that it has not deleted yet."""
        with opened_store(self._location) as store:
            return f"{store.name} {store.sequence} {store.last_expiry(microseconds())}"

    def poll(self) -> SourceContents:
        """The subscriptions that have not expired. Reads only the changes since the last poll, if the log has them."""
        with opened_store(self._location) as store:
            if store.name != self._store or not self._follow(store):
                self._read(store)
        now = microseconds()
        records = {id: record for id, (expires_at, record) in self._subscriptions.items() if expires_at > now}
        return SourceContents(records, may_be_empty=True)

    def _follow(self, store: Store) -> bool:
        """Apply the changes since the last poll. Returns False if the log does not have all of them any more."""
        while changes := store.changes(self._sequence):
            for each in changes:
                if each.subscription is not None:
                    self._take(each.subscription)
                elif each.kind != SCHEMA:
                    self._subscriptions.pop(each.id, None)
            self._sequence = changes[-1].sequence
        return changes is not None

    def _read(self, store: Store) -> None:
        with store.all_subscriptions() as (sequence, subscriptions):
            self._subscriptions.clear()
            for each in subscriptions:
                self._take(each)
        self._store, self._sequence = store.name, sequence

    def _take(self, subscription: StoredSubscription) -> None:
        record = subscription.record()
        fields = {**record.fields, CREATED: subscription.created_at}
        self._subscriptions[subscription.id] = subscription.expires_at, replace(record, fields=fields)


def opened_store(location: str) -> AbstractContextManager[Store]:
    """Open an existing store, to be closed at the end of the block. Raises StoreError."""
    return closing(open_store(location, create=False))
