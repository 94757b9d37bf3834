"""Open streams: each is handed new notifications of its subscriptions, or reads them from the store.

A stream buffers a limited number of notifications for a slow reader; beyond that, it drops them and reads the store.
Every long-lived answer is admitted first, so that it is counted, and ends when one of its API keys is removed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from harken.errors import LimitError
from harken.server.background import woken
from harken.store import Notified

_MOST_HELD = 256
MOST_HELD_BYTES = 1 << 18
"""Bytes of events that one stream buffers, about. There may be thousands of slow readers."""


class Stream:
    """The position and the buffer of one reader. Belongs to the event loop."""

    def __init__(self, subscriptions: Mapping[str, int], after: int) -> None:
        self.subscriptions = dict(subscriptions)
        """The ids, each with the last notification before the reader's subscription: earlier ones are not its own."""
        self.position = after
        """The last notification that the reader has."""
        self.is_behind = True
        """Whether the store may have notifications that were not handed to the stream."""
        self.held: deque[Notified] = deque()
        self._held_bytes = 0
        self._wake = asyncio.Event()

    def hand(self, notified: Notified) -> None:
        """Buffer a notification that was just written."""
        if not self.is_behind:
            self._held_bytes += size_of(notified)
            if len(self.held) < _MOST_HELD and (not self.held or self._held_bytes <= MOST_HELD_BYTES):
                self.held.append(notified)
            else:
                self.fall_behind()
        self._wake.set()

    def take(self) -> list[Notified]:
        """Empty the buffer, and return its notifications."""
        notifications = list(self.held)
        self.held.clear()
        self._held_bytes = 0
        return notifications

    def fall_behind(self) -> None:
        """Drop the buffer, so that the reader continues from the store."""
        self.take()
        self.is_behind = True
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for new notifications. Returns False if none came within the time."""
        return await woken(self._wake, seconds)


def size_of(notified: Notified) -> int:
    """The bytes of the event of a notification."""
    return 0 if notified.event is None else len(notified.event.body)


class Admission:
    """A long-lived answer that was admitted, until it is closed."""

    def __init__(self, keys: frozenset[str], on_close: Callable[[Admission], None]) -> None:
        self.keys = keys
        """The ids of the API keys that opened the answer."""
        self.is_revoked = False
        """Whether one of these keys was removed."""
        self.on_revoked: Callable[[], None] = lambda: None
        self._on_close = on_close

    def revoke(self) -> None:
        self.is_revoked = True
        self.on_revoked()

    def close(self) -> None:
        self._on_close(self)


class Streams:
    """All streams of this process, by subscription. Belongs to the event loop."""

    def __init__(self) -> None:
        self._by_subscription: dict[str, set[Stream]] = {}
        self._all: set[Stream] = set()
        self._admitted: Counter[str] = Counter()
        self._admissions: set[Admission] = set()

    def admit(self, caller: str, most: int, most_per_caller: int, keys: frozenset[str] = frozenset()) -> Admission:
        """Admit a long-lived answer, which is bound to these API keys. Raises LimitError if there are too many."""
        if self._admitted.total() >= most:
            raise LimitError("too many streams are open", limit="max_streams")
        if self._admitted[caller] >= most_per_caller:
            raise LimitError("you have too many streams open", limit="max_streams_per_caller")
        self._admitted[caller] += 1

        def closed(admission: Admission) -> None:
            self._admissions.discard(admission)
            self._admitted[caller] -= 1
            self._admitted += Counter()  # drops those that have none

        admission = Admission(keys, closed)
        self._admissions.add(admission)
        return admission

    @property
    def keys(self) -> set[str]:
        """The ids of the API keys of all admitted answers."""
        return {key for each in self._admissions for key in each.keys}

    def revoke(self, keys: Collection[str]) -> None:
        """End the answers that are bound to one of these API keys, which were removed."""
        for each in list(self._admissions):
            if not each.keys.isdisjoint(keys):
                each.revoke()

    def __len__(self) -> int:
        return len(self._all)

    def is_listened(self, id: str) -> bool:
        """Whether a stream listens to a subscription. Other threads may call this."""
        return id in self._by_subscription

    def open(self, stream: Stream) -> None:
        self._all.add(stream)
        for id in stream.subscriptions:
            self._by_subscription.setdefault(id, set()).add(stream)

    def close(self, stream: Stream) -> None:
        self._all.discard(stream)
        for id in stream.subscriptions:
            self._leave(id, stream)

    def end(self, id: str) -> None:
        """Take a removed subscription off all streams."""
        for stream in self._by_subscription.pop(id, set()):
            stream.subscriptions.pop(id, None)
            stream.fall_behind()

    def hand(self, notified: Sequence[Notified]) -> None:
        """Hand notifications, in their order, to the streams that listen to their subscriptions."""
        for each in notified:
            for stream in self._by_subscription.get(each.subscription, ()):
                stream.hand(each)

    def fall_behind(self, ids: Iterable[str]) -> None:
        """Make the streams that listen to one of these subscriptions read from the store."""
        for id in ids:
            for stream in self._by_subscription.get(id, ()):
                stream.fall_behind()

    def all_fall_behind(self) -> None:
        for stream in self._all:
            stream.fall_behind()

    def _leave(self, id: str, stream: Stream) -> None:
        listeners = self._by_subscription.get(id)
        if listeners is not None:
            listeners.discard(stream)
            if not listeners:
                del self._by_subscription[id]
