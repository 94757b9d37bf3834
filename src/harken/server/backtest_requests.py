"""Back-tests: what a subscription would have matched among the newest events.

They run in threads of their own, and bytes and time of each are limited. Events are read and matched in chunks, so that
neither memory nor a transaction holds many of them.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect

from harken.engine import Engine
from harken.errors import LimitError, StoreUnavailableError
from harken.events.pieces import Piece
from harken.server.body_shapes import event_text, iso
from harken.server.matching_service import Decoders, matched
from harken.server.models import BacktestModel
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.store import JournalledEvent, Store
from harken.store.database import fitting
from harken.store.stored import XML

_CHUNK_BYTES = 1 << 20
_FIRST_CHUNK, _LARGEST_CHUNK = 16, 512
"""Events per chunk. Chunks grow while reading and matching one takes less than `_QUICK_SECONDS`, and shrink otherwise,
so that the time limit is checked often enough."""
_QUICK_SECONDS = 0.05
_CLIENT_CHECK_SECONDS = 0.25
"""How often to check whether the client has disconnected."""


@dataclass(slots=True)
class _Tally:
    """The matches so far. Events are added the newest first."""

    limit: int
    """Most examples to show."""
    room: int
    """Bytes left for examples; the first is always shown."""
    looked_at: int = 0
    matches: int = 0
    examples: list[str] = field(default_factory=list)
    earliest: int | None = None
    latest: int | None = None

    def add(self, event: JournalledEvent, is_match: bool) -> None:
        self.looked_at += 1
        self.earliest = event.time
        self.latest = event.time if self.latest is None else self.latest
        if not is_match:
            return
        self.matches += 1
        if len(self.examples) < self.limit:
            self.room -= len(event.body)
            if self.room >= 0 or not self.examples:
                self.examples.append(_example(event))
            else:
                self.limit = len(self.examples)

    def answer(self) -> str:
        """The answer as JSON, with the events as they were published."""
        first, last = (None if each is None else iso(each) for each in (self.earliest, self.latest))
        head = json.dumps({"looked_at": self.looked_at, "matched": self.matches, "from": first, "to": last})
        return f'{head[:-1]}, "examples": [{", ".join(self.examples)}]}}'


class BacktestRunner:
    """Runs back-tests, at most `max_backtests` at one time. Belongs to one event loop."""

    def __init__(self, settings: ServerSettings, store: Store, index: ServedIndex) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._pool = ThreadPoolExecutor(max(1, settings.max_backtests), "harken-backtest")
        self._slots = threading.Semaphore(settings.max_backtests)
        self._closing = threading.Event()

    async def run(self, request: BacktestModel, has_left: Callable[[], Awaitable[bool]]) -> str:
        """The answer as JSON. Raises LimitError if too many back-tests run, or this one reads or takes too much.

        Once the client `has_left`, the back-test stops and ClientDisconnect is raised.
        """
        if not self._slots.acquire(blocking=False):
            raise LimitError("other back-tests are under way", limit="max_backtests")
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, self._run, request, stop)
        except BaseException:
            self._slots.release()
            raise
        try:
            while not (await asyncio.wait([future], timeout=_CLIENT_CHECK_SECONDS))[0]:
                if not stop.is_set() and await has_left():
                    stop.set()
            return future.result()
        finally:
            stop.set()

    def close(self) -> None:
        """Stop the back-tests that run."""
        self._closing.set()
        self._pool.shutdown(wait=True)

    def _run(self, request: BacktestModel, stop: threading.Event) -> str:
        try:
            return self._answer(request, stop)
        finally:
            self._slots.release()

    def _answer(self, request: BacktestModel, stop: threading.Event) -> str:
        settings = self._settings
        deadline = time.monotonic() + settings.backtest_timeout
        served = self._index.engine
        inside = served.internals
        engine = Engine(served.schema, limits=inside.limits, operators=tuple(inside.operators.values()))
        engine.subscribe("tried", request.where, request.language)
        sizes = self._store.latest_sizes(request.events)
        _reject_too_much(sizes, settings.max_backtest_bytes)
        tally = _Tally(request.limit, settings.max_answer_bytes)
        decoders = Decoders()
        for events in self._chunks(sizes):
            if stop.is_set():
                raise ClientDisconnect
            if self._closing.is_set():
                raise StoreUnavailableError("the server is stopping")
            if time.monotonic() > deadline:
                message = f"the back-test took more than {settings.backtest_timeout:g} s for {tally.looked_at:,} events"
                raise LimitError(message, limit="backtest_timeout", hint="ask for fewer `events`")
            matching = _matches(engine, decoders, events)
            for event in reversed(events):
                tally.add(event, event.number in matching)
        return tally.answer()

    def _chunks(self, sizes: list[tuple[int, int]]) -> Iterator[list[JournalledEvent]]:
        """The events in chunks: the newest chunk first, in each chunk the oldest event first."""
        start, most = 0, _FIRST_CHUNK
        while start < len(sizes):
            count = fitting((size for _, size in sizes[start : start + most]), _CHUNK_BYTES)
            began = time.monotonic()
            yield self._store.latest_events(count, before=sizes[start][0] + 1)
            start += count
            is_quick = time.monotonic() - began < _QUICK_SECONDS
            most = min(_LARGEST_CHUNK, most * 2) if is_quick else max(1, most // 2)


def _reject_too_much(sizes: list[tuple[int, int]], most: int) -> None:
    """Raise LimitError if the events have more than `most` bytes together. A single event may have any size."""
    count = fitting((size for _, size in sizes), most)
    if count < len(sizes):
        total = sum(size for _, size in sizes)
        message = f"the newest {len(sizes):,} events have {total:,} bytes; a back-test reads at most {most:,}"
        raise LimitError(message, limit="max_backtest_bytes", hint=f"ask for fewer: `events` {count}")


def _matches(engine: Engine, decoders: Decoders, events: list[JournalledEvent]) -> set[int]:
    """The numbers of the events that match."""
    numbers: set[int] = set()
    for is_xml in (False, True):
        chosen = [each for each in events if (each.kind == XML) is is_xml]
        if chosen:
            counts = matched(engine, decoders, [Piece(each.body, 1) for each in chosen], is_xml).counts
            numbers.update(each.number for each, count in zip(chosen, counts, strict=True) if count)
    return numbers


def _example(event: JournalledEvent) -> str:
    return f'{{"event_id": "{event.number}", "time": "{iso(event.time)}", "event": {event_text(event)}}}'
