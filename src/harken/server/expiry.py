"""Which subscriptions have run out, told at once: those that expire soon are known by heart."""

from __future__ import annotations

import threading

from harken.store import Store, StoredSubscription

_HORIZON = 60_000_000
"""Microseconds ahead that are known."""
_MOST = 100_000
_NO_LIMIT = 1 << 31


class Expiry:
    """The subscriptions that expire within a minute, and those that have expired and are not swept yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._soon: dict[str, int] = {}
        self._end = 0
        """Up to here everything is known."""
        self._next = 0
        """The first time at which something expires; the end of what is known if nothing does."""
        self._noted: list[tuple[str, int | None]] | None = None

    def due(self, now: int) -> frozenset[str]:
        """The ids of those that have expired."""
        if now < self._next:
            return frozenset()
        if now >= self._end:
            self.look_ahead(now)
        with self._lock:
            return frozenset(id for id, time in self._soon.items() if time <= now)

    def note(self, subscription: StoredSubscription) -> None:
        """One is new, or was renewed."""
        self._note(subscription.id, subscription.expires_at)

    def forget(self, id: str) -> None:
        """One is gone."""
        self._note(id, None)

    def look_ahead(self, now: int) -> None:
        """Learn what expires soon. Called now and then, well before the minute is over."""
        with self._looking:
            self._look_ahead(now)

    def _look_ahead(self, now: int) -> None:
        with self._lock:
            self._noted = []
        found = self._store.expiring(now + _HORIZON, _MOST)
        if len(found) == _MOST and found[-1][1] <= now:  # more than that have expired, and are not swept yet
            found = self._store.expiring(now + 1, _NO_LIMIT)
        end = max(found[-1][1], now + 1) if len(found) >= _MOST else now + _HORIZON
        with self._lock:
            self._soon, self._end = dict(found), end
            noted, self._noted = self._noted or [], None
            for id, time in noted:  # they may be later than what was read
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
