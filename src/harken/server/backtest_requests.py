"""Back-tests: what a subscription would have matched among the newest events, in threads of their own, bounded in bytes
and time. Events are read and matched a few at a time, so that neither memory nor a transaction holds many of them.
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
"""Events that are matched at once: more as long as that is quick, so that time is looked at often enough."""
_QUICK_SECONDS = 0.05
_LOOK_SECONDS = 0.25
"""How often it is looked whether the client is still there."""


@dataclass(slots=True)
class _Tally:
    """What was found so far. Events come the newest first."""

    limit: int
    room: int
    """Bytes that examples may still have; the first is always shown."""
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
        """The answer as JSON. Events are in it as they came."""
        first, last = (None if each is None else iso(each) for each in (self.earliest, self.latest))
        head = json.dumps({"looked_at": self.looked_at, "matched": self.matches, "from": first, "to": last})
        return f'{head[:-1]}, "examples": [{", ".join(self.examples)}]}}'


class Backtesting:
    """Runs back-tests, as many at one time as the settings say. It belongs to one event loop."""

    def __init__(self, settings: ServerSettings, store: Store, index: ServedIndex) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._pool = ThreadPoolExecutor(max(1, settings.max_backtests), "harken-backtest")
        self._slots = threading.Semaphore(settings.max_backtests)
        self._closing = threading.Event()

    async def run(self, given: BacktestModel, has_left: Callable[[], Awaitable[bool]]) -> str:
        """The answer as JSON. Raises LimitError if too many run, and where it would read too much or take too long.

        It is broken off once the client `has_left`, and ClientDisconnect is raised.
        """
        if not self._slots.acquire(blocking=False):
            raise LimitError("other back-tests are under way", limit="max_backtests")
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, self._run, given, stop)
        except BaseException:
            self._slots.release()
            raise
        try:
            while not (await asyncio.wait([future], timeout=_LOOK_SECONDS))[0]:
                if not stop.is_set() and await has_left():
                    stop.set()
            return future.result()
        finally:
            stop.set()

    def close(self) -> None:
        """Break off what runs."""
        self._closing.set()
        self._pool.shutdown(wait=True)

    def _run(self, given: BacktestModel, stop: threading.Event) -> str:
        try:
            return self._answer(given, stop)
        finally:
            self._slots.release()

    def _answer(self, given: BacktestModel, stop: threading.Event) -> str:
        settings = self._settings
        ends = time.monotonic() + settings.backtest_timeout
        known = self._index.engine
        engine = Engine(known.schema, limits=known.limits, operators=tuple(known.operators.values()))
        engine.subscribe("tried", given.where, given.language)
        sizes = self._store.latest_sizes(given.events)
        _refuse_too_much(sizes, settings.max_backtest_bytes)
        tally = _Tally(given.limit, settings.max_answer_bytes)
        decoders = Decoders()
        for events in self._chunks(sizes):
            if stop.is_set():
                raise ClientDisconnect
            if self._closing.is_set():
                raise StoreUnavailableError("the server is stopping")
            if time.monotonic() > ends:
                message = f"it took more than {settings.backtest_timeout:g} s to look at {tally.looked_at:,} events"
                raise LimitError(message, limit="backtest_timeout", hint="look at fewer `events`")
            are_matches = _matches(engine, decoders, events)
            for event in reversed(events):
                tally.add(event, event.number in are_matches)
        return tally.answer()

    def _chunks(self, sizes: list[tuple[int, int]]) -> Iterator[list[JournalledEvent]]:
        """The events a few at a time, the newest first, and in each chunk the oldest first."""
        start, most = 0, _FIRST_CHUNK
        while start < len(sizes):
            count = fitting((size for _, size in sizes[start : start + most]), _CHUNK_BYTES)
            began = time.monotonic()
            yield self._store.latest_events(count, before=sizes[start][0] + 1)
            start += count
            is_quick = time.monotonic() - began < _QUICK_SECONDS
            most = min(_LARGEST_CHUNK, most * 2) if is_quick else max(1, most // 2)


def _refuse_too_much(sizes: list[tuple[int, int]], most: int) -> None:
    """Raise LimitError if the events have more bytes than are read. One is always looked at."""
    count = fitting((size for _, size in sizes), most)
    if count < len(sizes):
        total = sum(size for _, size in sizes)
        message = f"the newest {len(sizes):,} events have {total:,} bytes, and {most:,} are read"
        raise LimitError(message, limit="max_backtest_bytes", hint=f"look at fewer: `events` {count}")


def _matches(engine: Engine, decoders: Decoders, events: list[JournalledEvent]) -> set[int]:
    """The numbers of the events that match."""
    numbers: set[int] = set()
    for is_xml in (False, True):
        some = [each for each in events if (each.kind == XML) is is_xml]
        if some:
            counts = matched(engine, decoders, [Piece(each.body, 1) for each in some], is_xml).counts
            numbers.update(each.number for each, count in zip(some, counts, strict=True) if count)
    return numbers


def _example(event: JournalledEvent) -> str:
    return f'{{"event_id": "{event.number}", "time": "{iso(event.time)}", "event": {event_text(event)}}}'
