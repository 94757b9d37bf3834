"""Streams of server-sent events: written no faster than the client reads, and closed if it stops reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from harken.server.body_shapes import digest_text, notification_text
from harken.server.feed import frame
from harken.server.service import Service
from harken.server.streams import MOST_HELD_BYTES, Stream, size_of
from harken.store import Notified, StoredDelivery
from harken.store.database import fitting
from harken.store.store import microseconds
from harken.store.stored_delivery import DEFAULT_DELIVERY

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers the answer
]
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 10, 500
"""Fewest and most notifications that are read from the store at once: fewer if events are long."""
PING = ": ping\n\n"
_LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}
_LAST_SECONDS = 1.0


class EventStream(Response):
    """An answer that streams frames."""

    def __init__(
        self,
        frames: AsyncGenerator[str],
        timeout: float,
        closed: Callable[[], None] = lambda: None,
        begin: int | None = None,
    ) -> None:
        """`timeout` is how long, in seconds, a client may read nothing. `closed` is called at the end of the stream.

        `begin` is the cursor that the client gets at once: if it loses the connection before the first notification, it
        reconnects from there.
        """
        super().__init__()
        self._welcome = ": welcome\n" + ("\n" if begin is None else f"id: {begin}\n\n")
        self._frames = frames
        self._timeout = timeout
        self._closed = closed
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End the stream, although there may be more frames."""
        self._ended.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": self._welcome.encode(), "more_body": True})
            writing = asyncio.ensure_future(self._write(send))
            leaving = asyncio.ensure_future(_disconnected(receive))
            ending = asyncio.ensure_future(self._ended.wait())
            tasks = writing, leaving, ending
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                is_cut = ending.done() and not writing.done()
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            if is_cut:
                with suppress(TimeoutError):  # a client that reads nothing just loses its connection
                    async with asyncio.timeout(_LAST_SECONDS):
                        await send(_LAST)
        finally:
            self._closed()

    async def _write(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            async for each in frames:
                async with asyncio.timeout(self._timeout):
                    await send({"type": "http.response.body", "body": each.encode(), "more_body": True})
        await send(_LAST)


async def _disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Frames:
    """The notifications of a stream as frames, with digests for subscriptions that allow a delay."""

    def __init__(self, service: Service, stream: Stream, format: str | None) -> None:
        """Without a format, each subscription's own is used."""
        self._service = service
        self._stream = stream
        self._format = format
        self._delayed: dict[str, list[Notified]] = {}
        self._delayed_bytes = 0
        self._at_once = _FEWEST_AT_ONCE

    async def __call__(self) -> AsyncGenerator[str]:
        period = self._service.settings.ping_period
        stream = self._stream
        while stream.subscriptions and not self._service.is_stopping:
            new, end = await self._new()
            for each in new:
                if each.number <= stream.position:
                    continue
                stream.position = each.number
                delivery = self._delivery(each.subscription)
                if delivery.max_delay:
                    self._delayed.setdefault(each.subscription, []).append(each)
                    self._delayed_bytes += size_of(each)
                else:
                    text = notification_text(each, self._format or delivery.format, self._service.store.source)
                    yield frame("notification", text, str(self._safe()))
            stream.position = max(stream.position, end)
            for id in self._due():
                while notified := self._next_digest(id):
                    form, source = self._format or self._delivery(id).format, self._service.store.source
                    yield frame("digest", digest_text(id, notified, form, source), str(self._safe()))
            if stream.is_behind or stream.held:
                continue
            pause = min(period, self._until_due())
            if not await stream.wait(pause) and pause == period:
                yield PING

    async def _new(self) -> tuple[list[Notified], int]:
        """The next notifications of the stream, and the cursor up to which they are complete."""
        stream = self._stream
        if not stream.is_behind:
            return stream.take(), stream.position
        stream.is_behind = False  # before reading: notifications that are written from now on are handed over
        store = self._service.store
        page = await self._service.readers.run(
            store.notifications_page, dict(stream.subscriptions), stream.position, self._at_once, MOST_HELD_BYTES
        )
        if page.has_more:
            stream.fall_behind()
        is_cut = page.has_more and len(page.notified) < self._at_once
        self._at_once = max(_FEWEST_AT_ONCE, len(page.notified)) if is_cut else min(_MOST_AT_ONCE, self._at_once * 2)
        return page.notified, page.end

    def _safe(self) -> int:
        """The cursor from which a client that reconnects misses nothing: before the first delayed notification."""
        waiting = [each[0].number - 1 for each in self._delayed.values()]
        return min([self._stream.position, *waiting])

    def _due(self) -> list[str]:
        """The subscriptions whose digests are to be sent now, because their delay is over or they are full."""
        if self._delayed_bytes > MOST_HELD_BYTES:
            return list(self._delayed)
        most = self._service.settings.max_digest
        left = {id: self._left(id) for id in self._delayed}
        return [id for id, seconds in left.items() if seconds <= 0 or len(self._delayed[id]) >= most]

    def _next_digest(self, id: str) -> list[Notified]:
        """Take the notifications of a subscription's next digest from those that wait."""
        waiting = self._delayed.pop(id, [])
        count = fitting(map(size_of, waiting), self._service.settings.max_digest_bytes)
        if waiting[count:]:
            self._delayed[id] = waiting[count:]
        self._delayed_bytes -= sum(map(size_of, waiting[:count]))
        return waiting[:count]

    def _until_due(self) -> float:
        """Seconds until the next digest is due."""
        return max(0.01, min(map(self._left, self._delayed), default=float("inf")))

    def _left(self, id: str) -> float:
        """Seconds left until a subscription's digest has to be sent."""
        return self._delivery(id).max_delay - (microseconds() - self._delayed[id][0].time) / 1e6

    def _delivery(self, id: str) -> StoredDelivery:
        return self._service.index.deliveries.get(id, DEFAULT_DELIVERY)
