"""The feed of the server's page: rates every second, and a sample of the events with their matches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping

from harken.server.body_shapes import event_text, iso
from harken.store import JournalledEvent
from harken.store.store import microseconds
from harken.store.writing import Appended

_MOST_A_SECOND = 20
_MOST_IDS = 20
_MOST_HELD = 100
_LONGEST_EVENT = 16_384
_END = ""


class Feed:
    """Counts events and matches in the committing thread, and sends frames to watchers in the event loop."""

    def __init__(self, sizes: Callable[[], Mapping[str, int]]) -> None:
        """`sizes` returns further numbers that are sent with the rates."""
        self._sizes = sizes
        self.events = 0
        self.matches = 0
        self._watchers: set[asyncio.Queue[str]] = set()
        self._second = 0
        self._sampled = 0

    def count(self, appended: Appended) -> list[str]:
        """Count what was appended. Returns the frames of the sampled events, for `send`."""
        self.events += len(appended.events)
        self.matches += len(appended.notifications)
        if not self._watchers or not appended.events:
            return []
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._sampled = second, 0
        room = _MOST_A_SECOND - self._sampled
        if room <= 0:
            return []
        step = max(1, len(appended.events) // room)
        chosen = appended.events[::step][:room]
        self._sampled += len(chosen)
        matches: dict[int, list[str]] = {number: [] for number, *_ in chosen}
        for each in appended.notifications:
            if each.event in matches:
                matches[each.event].append(each.subscription)
        return [_sample(JournalledEvent(*row), matches[row[0]]) for row in chosen]

    def send(self, frames: list[str]) -> None:
        """Send frames to all watchers. Slow watchers miss some."""
        for queue in self._watchers:
            for frame in frames:
                if queue.qsize() < _MOST_HELD:
                    queue.put_nowait(frame)

    def end(self) -> None:
        """End the streams of all watchers."""
        for queue in self._watchers:
            queue.put_nowait(_END)

    async def watch(self) -> AsyncGenerator[str]:
        """The frames for a new watcher, until it leaves."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._watchers.add(queue)
        events, matches, last = self.events, self.matches, time.monotonic()
        yield self._rates(0, 0)
        try:
            while True:
                left = last + 1 - time.monotonic()
                try:
                    frame = await asyncio.wait_for(queue.get(), max(0.01, left))
                    if frame == _END:
                        return
                    yield frame
                    continue
                except TimeoutError:
                    pass
                now = time.monotonic()
                passed = now - last
                yield self._rates((self.events - events) / passed, (self.matches - matches) / passed)
                events, matches, last = self.events, self.matches, now
        finally:
            self._watchers.discard(queue)

    def _rates(self, events: float, matches: float) -> str:
        rates = {"events_per_second": round(events, 1), "matches_per_second": round(matches, 1)}
        return frame("rates", json.dumps({**rates, **self._sizes(), "time": iso(microseconds())}))


def frame(kind: str, data: str, id: str | None = None) -> str:
    """One server-sent event. `data` must have no ends of lines."""
    head = "" if id is None else f"id: {id}\n"
    return f"{head}event: {kind}\ndata: {data}\n\n"


def _sample(event: JournalledEvent, ids: list[str]) -> str:
    is_short = len(event.body) <= _LONGEST_EVENT
    shown = event_text(event) if is_short else json.dumps(event.body[:500].decode(errors="replace"))
    text = (
        f'{{"event_id": "{event.number}", "time": "{iso(event.time)}", "event": {shown}, '
        f'"matches": {json.dumps(ids[:_MOST_IDS])}, "matched": {len(ids)}}}'
    )
    return frame("event", text)
