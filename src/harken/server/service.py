"""The server without HTTP: publishing, subscribing and notifying, and its background tasks."""

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
from harken.server.backtest_requests import BacktestRunner
from harken.server.committing import Committer
from harken.server.credentials import StreamTokens
from harken.server.delivering import WebhookDeliverer
from harken.server.feed import Feed
from harken.server.matching_service import Decoders, MatchingService, MatchOutcome, PublishOutcome, Settled, match
from harken.server.publications import Incoming
from harken.server.readiness import Readiness
from harken.server.reading import Readers
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.server.streams import Streams
from harken.server.subscribing import SubscriptionService
from harken.store import BehindError, JournalledEvent, Notified, Store, open_store
from harken.store.outbox import NewNotification
from harken.store.store import microseconds
from harken.store.writing import Appended, Writing
from harken.versions.locks import locked

log = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter's lock. The default of 5 ms would delay the event loop and all requests."""
_GC_THRESHOLDS = 50_000, 20, 50
"""High, because requests make few cycles, and a collection walks the millions of objects of an index."""
_HOUSEKEEPING_SECONDS = 1.0
_LOOK_AHEAD_EVERY, _SAVE_EVERY, _PRUNE_EVERY = 15, 5, 30
_PRUNE_PAUSE = 0.05
_FOLLOW_SECONDS = 1.0
_KEYS_SECONDS = 1.0
"""How often to check whether the API keys of open streams still exist."""


class Service:
    """One process that serves a store. It belongs to one event loop. Call `start` first and `stop` at the end."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.readers = Readers()
        self.streams = Streams()
        self.feed = Feed(lambda: {"subscriptions": len(self.index.engine), "streams": len(self.streams)})
        self.is_ready = False
        self.is_stopping = False
        self.problem: str | None = None
        """Why the service could not start; None if it could."""
        self._decoders = Decoders()
        self._has_dropped = False
        """Whether events were dropped for room since the last pruning, which has to delete their notifications."""
        self._locks = ExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the store and the index. Raises HarkenError."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(*_GC_THRESHOLDS)
        self._loop = asyncio.get_running_loop()
        began = time.perf_counter()
        self.store: Store = await self.readers.run(self._opened)
        self.index = ServedIndex(self.store, self.settings, self._end_streams_of)
        await self.readers.run(self.index.open)
        gc.freeze()  # the index stays alive, so collections need not walk it
        self.tokens = StreamTokens(self.store.token_secret)
        self._written = await self.readers.run(lambda: self.store.last_notification)
        self.committer = Committer(self.store)
        self.readiness = Readiness(self.committer)
        self.matching = MatchingService(self.index, self.committer, self._appended, self._settle, self.settings)
        parts = self.settings, self.store, self.index, self.committer, self.readers
        self.subscriptions = SubscriptionService(*parts)
        self.webhooks = WebhookDeliverer(*parts)
        self.backtests = BacktestRunner(self.settings, self.store, self.index)
        self._tasks = [asyncio.create_task(each) for each in self._background()]
        self.is_ready = True
        log.info("ready with %s subscriptions in %.2f s", f"{len(self.index.engine):,}", time.perf_counter() - began)

    def reject_more(self) -> None:
        """Reject new requests, and end all streams. Signal handlers and other threads may call it."""
        self.is_ready, self.is_stopping = False, True
        if hasattr(self, "_loop"):
            self._loop.call_soon_threadsafe(self._end_streams)

    def _end_streams_of(self, id: str) -> None:
        """Take a removed subscription off all streams. Called in the committing thread."""
        if self.streams.is_listened(id):
            self._loop.call_soon_threadsafe(self.streams.end, id)

    def _end_streams(self) -> None:
        self.streams.all_fall_behind()  # wakes them, so that they see `is_stopping`
        self.feed.end()

    async def stop(self) -> None:
        """Finish the work in progress, save the index, and close everything."""
        self.reject_more()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "backtests"):
            await asyncio.to_thread(self.backtests.close)
        if hasattr(self, "matching"):
            await asyncio.to_thread(self.matching.close)
            await asyncio.to_thread(self.committer.close)
            await asyncio.to_thread(self.index.save)
        self.readers.close()
        if hasattr(self, "store"):
            await asyncio.to_thread(self.store.close)
        self._locks.close()

    # Publishing

    async def publish(self, incoming: Incoming, key: bytes | None, request_hash: bytes | None = None) -> PublishOutcome:
        """Match events and write them to the journal. Returns once they are on disk.

        Raises IdempotencyKeyError if an earlier request had the same key and another hash.
        """
        future: asyncio.Future[PublishOutcome] = self._loop.create_future()
        self.matching.publish(incoming, key, request_hash, future)
        return await future

    async def dry_run(self, incoming: Incoming) -> MatchOutcome:
        """What events would match. Nothing is stored or sent."""
        return await self.readers.run(self._matched, incoming)

    def _matched(self, incoming: Incoming) -> MatchOutcome:
        return match(self.index, self._decoders, [incoming])[0]

    # Notifying

    def _settle(self, settled: Settled) -> None:
        self._loop.call_soon_threadsafe(_settle, settled)

    def _appended(self, appended: Appended) -> None:
        """Notify streams, watchers and webhooks of what is on disk now. Called in the committing thread."""
        self._has_dropped = self._has_dropped or appended.dropped > 0
        samples = self.feed.count(appended)
        new = appended.notifications
        streamed: list[NewNotification] = []
        has_webhooks = has_gap = False
        if len(new):
            has_gap = new.base != self._written  # another process wrote notifications in between
            self._written = new.last
            streams, deliveries = self.streams, self.index.deliveries
            if len(streams):
                places = [place for place, id in enumerate(new.subscriptions) if streams.is_listened(id)]
                streamed = list(new.at(places))
            has_webhooks = bool(deliveries) and not deliveries.keys().isdisjoint(new.subscriptions)
        if samples or streamed or has_webhooks or has_gap:
            events = {row[0]: JournalledEvent(*row) for row in appended.events} if streamed else {}
            notified = [
                Notified(each.number, each.subscription, each.time, each.suppressed, events[each.event], each.event)
                for each in streamed
            ]
            self._loop.call_soon_threadsafe(self._notify, samples, notified, has_webhooks, has_gap)

    def _notify(self, samples: list[str], notified: list[Notified], has_webhooks: bool, has_gap: bool) -> None:
        if samples:
            self.feed.send(samples)
        if has_gap and not self.store.is_shared:  # the notifications of another process may be for any stream
            self.streams.all_fall_behind()
            self.webhooks.wake()
        elif notified:
            if self.store.is_shared:
                self.streams.fall_behind({each.subscription for each in notified})
            else:
                self.streams.hand(notified)
        if has_webhooks:
            self.webhooks.wake()

    # Background tasks

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        tasks = [self._housekeeping(), self.webhooks.run()]
        if self.store.is_shared:
            tasks.append(self._follow())
        if self.settings.api_keys:
            tasks.append(self._watch_keys())
        return tasks

    async def _watch_keys(self) -> None:
        """End streams whose API key was removed, by this or another process."""
        while True:
            await asyncio.sleep(_KEYS_SECONDS)
            keys = self.streams.keys
            with logged("checking for removed API keys"):
                if keys:
                    self.streams.revoke(keys - await self.readers.run(self.store.existing_keys, keys))

    async def _follow_file(self) -> None:
        """Apply what another process, such as a pipeline, has written to the SQLite file."""
        if self.store.is_shared:
            return
        sequence, last = await self.readers.run(lambda: (self.store.sequence, self.store.last_notification))
        if sequence > self.index.sequence:
            await self.subscriptions.follow()
        if last > self._written:
            self._written = last
            self.streams.all_fall_behind()
            self.webhooks.wake()

    async def _housekeeping(self) -> None:
        """Remove expired subscriptions, save the index, and delete old data."""
        for turn in range(sys.maxsize):
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            with logged("housekeeping"):
                while self.index.expiry.due(microseconds()):
                    if not await self.subscriptions.sweep():
                        break
                await self._follow_file()
                if turn % _LOOK_AHEAD_EVERY == 0:
                    await self.readers.run(self.index.expiry.look_ahead, microseconds())
                if turn % _SAVE_EVERY == 0:
                    await self.readers.run(self.index.save_if_due)
                if turn % _PRUNE_EVERY == 0 or self._has_dropped:
                    self._has_dropped = False
                    await self._prune()

    async def _prune(self) -> None:
        """Delete old events, notifications, answers and changes, in small transactions that do not delay requests."""
        settings, now = self.settings, microseconds()

        def prune(writing: Writing) -> int:
            events = writing.prune_journal(now - int(settings.journal_age * 1e6), settings.journal_bytes)
            writing.prune_answers(now - int(settings.answer_age * 1e6))
            writing.prune_changes(now - int(settings.change_age * 1e6), self.index.sequence)
            return max(events, writing.prune_notifications())

        while await asyncio.wrap_future(self.committer.submit(prune)):
            await asyncio.sleep(_PRUNE_PAUSE)
        while await self.readers.run(self.store.database.shrink):
            await asyncio.sleep(_PRUNE_PAUSE)

    async def _follow(self) -> None:
        """Apply what other processes write to PostgreSQL."""
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
                    await self.subscriptions.follow()
                head = await self.readers.run(lambda: self.store.last_notification)
                if head != last:
                    last = head
                    self.streams.all_fall_behind()
                    self.webhooks.wake()

    def _listen(self, queue: asyncio.Queue[str]) -> None:
        """Queue the announcements of other processes. Runs in a thread of its own."""
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
                log.warning("changes of other processes are not received now: %s", error.message)
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
        """Hold the lock of a file's only server. Raises StoreError if another holds it, or it cannot be opened."""
        try:
            self._locks.enter_context(locked(lock, lambda _: StoreError(f"{self.settings.store} is served already")))
        except OSError as error:
            raise StoreUnavailableError(f"{lock} cannot be opened: {error.strerror}") from None

    def sizes(self) -> Mapping[str, Any]:
        """Numbers of subscriptions, streams, events, matches, batches, transactions and calls of webhooks."""
        return {
            "subscriptions": len(self.index.engine),
            "streams": len(self.streams),
            "events": self.feed.events,
            "matches": self.feed.matches,
            "batches": self.matching.batches,
            "transactions": self.committer.transactions,
            "webhooks": dict(self.webhooks.counts),
        }


def _settle(settled: Settled) -> None:
    for future, result in settled:
        if future.done():  # the request was cancelled
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


def _warn_of_readers(path: Path) -> None:
    """Warn of a file that other users may read. The mode is not changed, since that may be intended."""
    with suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            log.warning("%s can be opened by other users (mode %o): `chmod 600` it and its -wal and -shm", path, mode)


def _seal(store: Store, settings: ServerSettings) -> None:
    """Encrypt all secrets with the first key. Raises StoreError if the keys do not decrypt the encrypted ones."""
    count = store.seal_secrets()
    if count:
        log.info("%s secrets of webhooks were encrypted with the first key", f"{count:,}")
    if not settings.secrets_keys:
        log.warning("the store has the secrets of webhooks in clear: --secrets-key encrypts them")


def _begin_schema(store: Store, path: str) -> None:
    """Store the schema of a file as the first version, unless the store has it, or one that extends it.

    Raises StoreError if the store has another schema, or has subscriptions and no schema.
    """
    schema = load_schema(path)
    changes = store.sequence  # before the schema, which another process may store meanwhile
    stored = store.schema()
    if stored is not None:
        if not _extends(parse_schema(stored[1]), schema):
            hint = "start the server without --schema, extend the schema over HTTP, or begin a new store"
            raise StoreError(f"the store has a schema that does not contain the one of {path}", hint=hint)
        return
    if changes:
        raise StoreError("the store has subscriptions and no schema", hint="begin a new store with --schema")
    with suppress(BehindError), store.writing() as writing:
        writing.put_schema(schema.version, format_schema(schema))


def _extends(schema: Schema, base: Schema) -> bool:
    """Whether a schema is `base`, or extends it."""
    return (
        base.domains.items() <= schema.domains.items()
        and base.attributes.items() <= schema.attributes.items()
        and base.event_types.keys() <= schema.event_types.keys()
        and all(each.rules.items() <= schema.event_types[name].rules.items() for name, each in base.event_types.items())
    )
