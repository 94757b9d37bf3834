"""The server without HTTP: what publishes, subscribes and notifies, and what goes on beside that."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from harken.errors import StoreError, StoreUnavailableError
from harken.schema import Schema, load_schema
from harken.schema.schema_files import format_schema, parse_schema
from harken.server.background import logged
from harken.server.backtest_requests import Backtesting
from harken.server.committing import Committer
from harken.server.delivering import Delivering
from harken.server.feed import Feed
from harken.server.matching_service import Decoders, MatchingService, MatchOutcome, PublishOutcome, Settled, match
from harken.server.publications import Incoming
from harken.server.readiness import Readiness
from harken.server.reading import Readers
from harken.server.secret_words import StreamTokens
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.server.streams import Streams
from harken.server.subscribing import Subscribing
from harken.store import BehindError, JournalledEvent, Notified, Store, open_store
from harken.store.outbox import NewNotification
from harken.store.store import microseconds
from harken.store.writing import Appended, Writing
from harken.versions.locks import locked

log = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter's lock. The usual 5 ms would hold up the event loop, and it all others."""
_COLLECTING = 50_000, 20, 50
"""Thresholds of the collector of cycles: requests make few, and an index has millions of objects to walk."""
_HOUSEKEEPING_SECONDS = 1.0
_LOOK_AHEAD_EVERY, _SAVE_EVERY, _PRUNE_EVERY = 15, 5, 30
_PRUNE_PAUSE = 0.05
_FOLLOW_SECONDS = 1.0
_KEYS_SECONDS = 1.0
"""How often the keys of what is open are looked for."""


class Service:
    """One process that serves a store. Made and used in one event loop; `start` it first, and `stop` it."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.readers = Readers()
        self.streams = Streams()
        self.feed = Feed(lambda: {"subscriptions": len(self.index.engine), "streams": len(self.streams)})
        self.is_ready = False
        self.is_stopping = False
        self.problem: str | None = None
        """Why it is not ready."""
        self._decoders = Decoders()
        self._has_dropped = False
        """Whether events went since the journal was pruned, whose notifications are still there."""
        self._held = ExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the store and the index. Raises HarkenError."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(*_COLLECTING)
        self._loop = asyncio.get_running_loop()
        began = time.perf_counter()
        self.store: Store = await self.readers.run(self._opened)
        self.index = ServedIndex(self.store, self.settings, self._end_streams_of)
        await self.readers.run(self.index.open)
        gc.freeze()  # what is there now stays, and need not be walked again and again
        self.tokens = StreamTokens(self.store.token_secret)
        self._written = await self.readers.run(lambda: self.store.last_notification)
        self.committer = Committer(self.store)
        self.readiness = Readiness(self.committer)
        self.matching = MatchingService(self.index, self.committer, self._appended, self._settle, self.settings)
        parts = self.settings, self.store, self.index, self.committer, self.readers
        self.subscribing = Subscribing(*parts)
        self.delivering = Delivering(*parts)
        self.backtesting = Backtesting(self.settings, self.store, self.index)
        self._tasks = [asyncio.create_task(each) for each in self._background()]
        self.is_ready = True
        log.info("ready with %s subscriptions in %.2f s", f"{len(self.index.engine):,}", time.perf_counter() - began)

    def refuse_more(self) -> None:
        """Refuse new requests, and end answers that would go on. Signal handlers and other threads may call it."""
        self.is_ready, self.is_stopping = False, True
        if hasattr(self, "_loop"):
            self._loop.call_soon_threadsafe(self._end_streams)

    def _end_streams_of(self, id: str) -> None:
        """Nobody listens to a subscription any more. In the committing thread."""
        if self.streams.is_listened(id):
            self._loop.call_soon_threadsafe(self.streams.end, id)

    def _end_streams(self) -> None:
        self.streams.all_fall_behind()  # they see that it stops
        self.feed.end()

    async def stop(self) -> None:
        """Finish what was begun, save the index, and let go of everything."""
        self.refuse_more()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "backtesting"):
            await asyncio.to_thread(self.backtesting.close)
        if hasattr(self, "matching"):
            await asyncio.to_thread(self.matching.close)
            await asyncio.to_thread(self.committer.close)
            await asyncio.to_thread(self.index.save)
        self.readers.close()
        if hasattr(self, "store"):
            await asyncio.to_thread(self.store.close)
        self._held.close()

    # Publishing

    async def publish(self, incoming: Incoming, key: bytes | None, request_hash: bytes | None = None) -> PublishOutcome:
        """Match events and keep them. Returns once they are on disk.

        Raises IdempotencyKeyError if a request with the same key and another hash came before.
        """
        future: asyncio.Future[PublishOutcome] = self._loop.create_future()
        self.matching.publish(incoming, key, request_hash, future)
        return await future

    async def dry_run(self, incoming: Incoming) -> MatchOutcome:
        """What events would match; nothing is kept or sent."""
        return await self.readers.run(self._matched, incoming)

    def _matched(self, incoming: Incoming) -> MatchOutcome:
        return match(self.index, self._decoders, [incoming])[0]

    # What is told to whom

    def _settle(self, settled: Settled) -> None:
        self._loop.call_soon_threadsafe(_settle, settled)

    def _appended(self, appended: Appended) -> None:
        """Tell streams, watchers and webhooks what is on disk now. In the committing thread."""
        self._has_dropped = self._has_dropped or appended.dropped > 0
        samples = self.feed.count(appended)
        new = appended.notifications
        heard: list[NewNotification] = []
        is_delivered = has_gap = False
        if len(new):
            has_gap = new.base != self._written  # somebody else wrote some before
            self._written = new.last
            streams, deliveries = self.streams, self.index.deliveries
            if len(streams):
                places = [place for place, id in enumerate(new.subscriptions) if streams.is_listened(id)]
                heard = list(new.at(places))
            is_delivered = bool(deliveries) and not deliveries.keys().isdisjoint(new.subscriptions)
        if samples or heard or is_delivered or has_gap:
            events = {row[0]: JournalledEvent(*row) for row in appended.events} if heard else {}
            notified = [
                Notified(each.number, each.subscription, each.time, each.suppressed, events[each.event], each.event)
                for each in heard
            ]
            self._loop.call_soon_threadsafe(self._tell, samples, notified, is_delivered, has_gap)

    def _tell(self, samples: list[str], notified: list[Notified], is_delivered: bool, has_gap: bool) -> None:
        if samples:
            self.feed.tell(samples)
        if has_gap and not self.store.is_shared:  # of others, whom this batch does not concern
            self.streams.all_fall_behind()
            self.delivering.wake()
        elif notified:
            if self.store.is_shared:
                self.streams.fall_behind({each.subscription for each in notified})
            else:
                self.streams.hand(notified)
        if is_delivered:
            self.delivering.wake()

    # What goes on beside

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        found = [self._keep_house(), self.delivering.run()]
        if self.store.is_shared:
            found.append(self._follow())
        if self.settings.api_keys:
            found.append(self._watch_keys())
        return found

    async def _watch_keys(self) -> None:
        """End what is open with an API key that was removed, by whichever process."""
        while True:
            await asyncio.sleep(_KEYS_SECONDS)
            keys = self.streams.keys
            with logged("looking for removed API keys"):
                if keys:
                    self.streams.revoke(keys - await self.readers.run(self.store.keys_left, keys))

    async def _look_around(self) -> None:
        """Take over what another process has written to the file of SQLite, such as a pipeline."""
        if self.store.is_shared:
            return
        sequence, last = await self.readers.run(lambda: (self.store.sequence, self.store.last_notification))
        if sequence > self.index.sequence:
            await self.subscribing.follow()
        if last > self._written:
            self._written = last
            self.streams.all_fall_behind()
            self.delivering.wake()

    async def _keep_house(self) -> None:
        """Sweep what has expired, save the index, let go of old events."""
        for turn in range(sys.maxsize):
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            with logged("housekeeping"):
                while self.index.expiry.due(microseconds()):
                    if not await self.subscribing.sweep():
                        break
                await self._look_around()
                if turn % _LOOK_AHEAD_EVERY == 0:
                    await self.readers.run(self.index.expiry.look_ahead, microseconds())
                if turn % _SAVE_EVERY == 0:
                    await self.readers.run(self.index.save_if_due)
                if turn % _PRUNE_EVERY == 0 or self._has_dropped:
                    self._has_dropped = False
                    await self._prune()

    async def _prune(self) -> None:
        """Let go of old events, notifications, answers and changes, a few at a time so that nobody waits."""
        settings, now = self.settings, microseconds()

        def prune(writing: Writing) -> int:
            events = writing.prune_journal(now - int(settings.journal_age * 1e6), settings.journal_bytes)
            writing.prune_answers(now - int(settings.answer_age * 1e6))
            writing.prune_changes(now - int(settings.change_age * 1e6), self.index.sequence)
            return max(events, writing.prune_notifications())

        while await asyncio.wrap_future(self.committer.submit(prune)):
            await asyncio.sleep(_PRUNE_PAUSE)
        while await self.readers.run(self.store.database.give_back):
            await asyncio.sleep(_PRUNE_PAUSE)

    async def _follow(self) -> None:
        """Take over what other processes write."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        thread = threading.Thread(target=self._listen, args=(queue,), name="harken-follow", daemon=True)
        thread.start()
        last = -1
        while True:
            origins = {await queue.get()}
            while not queue.empty():
                origins.add(queue.get_nowait())
            if origins == {self.store.origin}:
                continue
            with logged("following other processes"):
                if await self.readers.run(lambda: self.store.sequence) != self.index.sequence:
                    await self.subscribing.follow()
                head = await self.readers.run(lambda: self.store.last_notification)
                if head != last:
                    last = head
                    self.streams.all_fall_behind()
                    self.delivering.wake()

    def _listen(self, queue: asyncio.Queue[str]) -> None:
        """Hear what other processes announce. In a thread of its own."""
        from harken.store.postgres import PostgresDatabase

        database = self.store.database
        assert isinstance(database, PostgresDatabase)
        while not self.is_stopping:
            try:
                for origin in database.announced(_FOLLOW_SECONDS):
                    if self.is_stopping:
                        return
                    self._loop.call_soon_threadsafe(queue.put_nowait, origin)
            except StoreError as error:
                log.warning("other processes are not heard now: %s", error.message)
                time.sleep(_FOLLOW_SECONDS)

    # Opening

    def _opened(self) -> Store:
        settings = self.settings
        if "://" not in settings.store:
            lock = Path(f"{settings.store}.lock")
            if lock.parent.is_dir() and not Path(settings.store).is_dir():
                self._hold(lock)
        store = open_store(settings.store, secrets_keys=settings.secrets_keys)
        try:
            if not store.is_shared:
                _warn_of_readers(Path(settings.store))
            _seal(store, settings)
            if settings.schema is not None:
                _begin_schema(store, settings.schema)
        except BaseException:
            store.close()
            raise
        return store

    def _hold(self, lock: Path) -> None:
        """Be the only server of a file. Raises StoreError if there is another one, or the folder cannot be used."""
        try:
            self._held.enter_context(locked(lock, lambda _: StoreError(f"{self.settings.store} is served already")))
        except OSError as error:
            raise StoreUnavailableError(f"{lock} cannot be opened: {error.strerror}") from None

    def sizes(self) -> Mapping[str, Any]:
        """How much there is of what."""
        return {
            "subscriptions": len(self.index.engine),
            "streams": len(self.streams),
            "events": self.feed.events,
            "matches": self.feed.matches,
            "batches": self.matching.batches,
            "transactions": self.committer.transactions,
            "webhooks": dict(self.delivering.counts),
        }


def _settle(settled: Settled) -> None:
    for future, result in settled:
        if future.done():  # whoever asked has gone away
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


def _warn_of_readers(path: Path) -> None:
    """Warn of a file that others than its owner may read. It is left so: who may, may be meant to."""
    with suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            log.warning("%s can be opened by other users (mode %o): `chmod 600` it and those beside it", path, mode)


def _seal(store: Store, settings: ServerSettings) -> None:
    """Have all secrets encrypted with the first key. Raises StoreError if the keys do not open those that are."""
    count = store.seal_secrets()
    if count:
        log.info("%s secrets of webhooks are encrypted with the first key now", f"{count:,}")
    if not settings.secrets_keys:
        log.warning("the secrets of webhooks are in the store in clear: --secrets-key encrypts them")


def _begin_schema(store: Store, path: str) -> None:
    """Keep the schema of a file as the first version, unless the store has it, or one that extends it.

    Raises StoreError if it has another, or if it is too late.
    """
    given = load_schema(path)
    changes = store.sequence  # first: another process may begin the schema meanwhile
    known = store.schema()
    if known is not None:
        if not _says_all_of(given, parse_schema(known[1])):
            hint = "start it without --schema, extend its schema over HTTP, or begin a new store"
            raise StoreError(f"the store has a schema that does not say what {path} says", hint=hint)
        return
    if changes:
        raise StoreError("the store has subscriptions and no schema", hint="begin a new store with --schema")
    with suppress(BehindError), store.writing() as writing:
        writing.put_schema(given.version, format_schema(given))


def _says_all_of(given: Schema, known: Schema) -> bool:
    """Whether a known schema is the given one, or extends it."""
    return (
        given.domains.items() <= known.domains.items()
        and given.attributes.items() <= known.attributes.items()
        and given.event_types.keys() <= known.event_types.keys()
        and all(each.rules.items() <= known.event_types[name].rules.items() for name, each in given.event_types.items())
    )
