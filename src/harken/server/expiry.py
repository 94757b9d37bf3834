"""Which subscriptions have expired, without a query: those that expire soon are kept in memory."""

from __future__ import annotations

import threading

from harken.store import Store, StoredSubscription

_HORIZON = 60_000_000
"""How far ahead expiries are read from the store, in microseconds."""
_MOST = 100_000
_NO_LIMIT = 1 << 31


class Expiry:
    """The subscriptions that expire within a minute, and those that have expired and are not removed yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._soon: dict[str, int] = {}
        """The expiry of each subscription that expires before `_end`."""
        self._end = 0
        """The time up to which `_soon` is complete."""
        self._next = 0
        """The first expiry; `_end` if there is none before that."""
        self._noted: list[tuple[str, int | None]] | None = None
        """Changes noted while `look_ahead` reads the store; None otherwise."""

    def due(self, now: int) -> frozenset[str]:
        """The ids of the subscriptions that have expired."""
        if now < self._next:
            return frozenset()
        if now >= self._end:
            self.look_ahead(now)
        with self._lock:
            return frozenset(id for id, time in self._soon.items() if time <= now)

    def note(self, subscription: StoredSubscription) -> None:
        """Note a subscription that is new or was renewed."""
        self._note(subscription.id, subscription.expires_at)

    def forget(self, id: str) -> None:
        """Note that a subscription was removed."""
        self._note(id, None)

    def look_ahead(self, now: int) -> None:
        """Read from the store what expires soon. Call it well before the last reading is a minute old."""
        with self._read_lock:
            self._look_ahead(now)

    def _look_ahead(self, now: int) -> None:
        with self._lock:
            self._noted = []
        expiring = self._store.expiring(now + _HORIZON, _MOST)
        if len(expiring) == _MOST and expiring[-1][1] <= now:  # more than `_MOST` have expired and are not removed yet
            expiring = self._store.expiring(now + 1, _NO_LIMIT)
        end = max(expiring[-1][1], now + 1) if len(expiring) >= _MOST else now + _HORIZON
        with self._lock:
            self._soon, self._end = dict(expiring), end
            noted, self._noted = self._noted or [], None
            for id, time in noted:  # they may be later than the rows that were read
                self._set(id, time)
            self._next = min(self._soon.values(), default=self._end)

    def _note(self, id: str, time: int | None) -> None:
        with self._lock:
            if self._noted is not None:
                self._noted.append((id, time))
            self._set(id, time)
            if time is not None:
                self._next = min(self._next, time)

    def _set(self, id: str, time: int | None) -> None:
        if time is None or time >= self._end:
            self._soon.pop(id, None)
        else:
            self._soon[id] = time
