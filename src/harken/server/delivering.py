"""Calls webhooks: each in the order of its notifications, in fair shares, until they arrive or are dead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from random import Random
from urllib.parse import urlsplit

from harken.errors import HarkenError
from harken.server.background import logged, woken
from harken.server.body_shapes import CLOUDEVENT_JSON, digest_text, notification_text
from harken.server.committing import Committer
from harken.server.reading import Readers
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.server.webhooks.backoff import Schedule
from harken.server.webhooks.call_outcomes import CallOutcome, OutcomeKind
from harken.server.webhooks.hosts import Hosts
from harken.server.webhooks.sending import Sender
from harken.store import CLOUDEVENTS, Notified, Store, StoredDelivery, WebhookState, Writing
from harken.store.store import microseconds
from harken.store.stored import Due

log = logging.getLogger(__name__)
_LONGEST_SLEEP = 5.0
_CLAIMED_AT_ONCE = 500
_SLACK_SECONDS = 5
"""What a claim lasts longer than the call that it is for. A process that is killed leaves its claims behind."""
_MOST_IN_A_ROW = 100
"""Notifications that one webhook gets before it queues again behind the others."""
_LONGEST_ROW_SECONDS = 5.0
"""How long one webhook is called before it queues again."""


class _End(Enum):
    """What became of notifications."""

    DELIVERED = "delivered"
    OVER = "over"
    """They were given up, or there were none."""
    PENDING = "pending"
    """They are tried again, or are not for this webhook any more."""


class Delivering:
    """Calls the webhooks that are due. Processes that share a store share the work."""

    def __init__(
        self, settings: ServerSettings, store: Store, index: ServedIndex, committer: Committer, readers: Readers
    ) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._committer = committer
        self._readers = readers
        self._schedule = Schedule(settings.webhook_delays)
        self._random = Random()
        # It may wait for one timeout, and be called for another.
        self._hosts = Hosts(settings.webhook_parallel, patience=settings.webhook_timeout)
        self._lease = int((settings.webhook_timeout * 2 + _SLACK_SECONDS) * 1e6)
        self._has_old_claims = not store.is_shared
        """Whether what an earlier process had claimed may be claimed still. Nobody else delivers it now."""
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = dict.fromkeys(("delivered", "failed", "dead"), 0)

    def wake(self) -> None:
        """There may be something to deliver."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        settings = self._settings
        async with Sender(
            allow=settings.webhook_networks,
            deadline=settings.webhook_timeout,
            connections=settings.webhook_parallel,
        ) as sender:
            try:
                while True:
                    await woken(self._wake, await self._turn(sender))
            finally:
                await self._leave()

    async def _turn(self, sender: Sender) -> float:
        """Start what is due. Returns the seconds until there may be more."""
        with logged("calling webhooks"):
            if self._has_old_claims:
                await self._changed(lambda writing: writing.drop_claims())
                self._has_old_claims = False
            await self._start_due(sender)
            return await self._pause()
        return _LONGEST_SLEEP

    async def _leave(self) -> None:
        """Break off, and let other processes have what was claimed."""
        claimed = self._hosts.subscriptions
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._put_off(claimed, 0.0)
        except HarkenError as error:
            log.warning("webhooks that were claimed wait until that runs out: %s", error.message)

    async def _start_due(self, sender: Sender) -> None:
        """Start what waits for its host and what is due, in turns as long as there is some."""
        claimed = _CLAIMED_AT_ONCE
        while True:
            chosen, late = self._hosts.begin(time.monotonic())
            for state in chosen:
                task = asyncio.create_task(self._deliver(sender, state))
                self._tasks.add(task)
                task.add_done_callback(partial(self._ended, state.subscription))
            await self._put_off(late, 0.0)
            if claimed < _CLAIMED_AT_ONCE or not self._hosts.has_room:
                return
            claimed = await self._claim()

    async def _claim(self) -> int:
        """Claim what is due. Returns how many there were."""
        now = microseconds()
        found = await self._readers.run(self._store.claim, now, now + self._lease, _CLAIMED_AT_ONCE)
        beyond: dict[str, list[str]] = {}
        for state in found:
            if state.subscription not in self._hosts:  # one that takes longer than its claim goes on by itself
                host = self._host(state.subscription)
                if not self._hosts.add(host, state, time.monotonic()):
                    beyond.setdefault(host, []).append(state.subscription)
        for host, ids in beyond.items():
            await self._put_off(ids, self._hosts.put_off_seconds(host, time.monotonic()))
        return len(found)

    def _host(self, id: str) -> str:
        delivery = self._index.deliveries.get(id)
        return "" if delivery is None or delivery.url is None else urlsplit(delivery.url).netloc

    async def _put_off(self, ids: Sequence[str], seconds: float) -> None:
        """Have webhooks be claimed again in a moment."""
        if ids:
            next_at = microseconds() + int(seconds * 1e6)
            await self._changed(lambda writing: writing.put_off(ids, next_at))

    def _ended(self, id: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._hosts.end(id)
        if not task.cancelled() and task.exception() is not None:
            log.error("a webhook's delivery failed", exc_info=task.exception())
        self.wake()

    async def _pause(self) -> float:
        """Seconds until a webhook is due."""
        if not self._hosts.has_room:
            return _LONGEST_SLEEP
        due = await self._readers.run(self._store.next_webhook)
        if due is None:
            return _LONGEST_SLEEP
        return min(_LONGEST_SLEEP, max(0.005, (due - microseconds()) / 1e6))

    async def _deliver(self, sender: Sender, state: WebhookState) -> None:
        """Deliver what one webhook waits for."""
        attempts, most = state.attempts, (self._settings.max_digest, self._settings.max_digest_bytes)
        until = time.monotonic() + _LONGEST_ROW_SECONDS
        for turn in range(_MOST_IN_A_ROW):
            if turn and time.monotonic() > until:
                break
            due = await self._readers.run(self._store.next_delivery, state.subscription, *most)
            if due is None:
                return  # the subscription is gone, or wants no webhook any more
            end = await self._settle(sender, due, attempts) if due.batch else _End.OVER
            if end is _End.PENDING:
                return
            attempts = 0
            if not await self._note_settled(due, end):
                return
            if due.delivery.max_delay and not due.is_again and not due.is_full:
                return  # the next digest has its own time; after a full one, more wait already
        await self._put_off([state.subscription], 0.0)

    async def _settle(self, sender: Sender, due: Due, attempts: int) -> _End:
        """Deliver notifications or give them up, unless they are to be tried again."""
        gone = [each for each in due.batch if each.event is None]
        if gone:
            reason = "the journal had let go of the event before it could be delivered"
            if not await self._bury(due, gone, attempts, reason, is_failure=False):
                return _End.PENDING
        batch = [each for each in due.batch if each.event is not None]
        if not batch:
            return _End.OVER
        is_late = not attempts and self._is_late(due)
        id = due.subscription.id
        self._hosts.sent(id, time.monotonic())
        outcome = await self._send(sender, due.delivery, batch)
        if self._hosts.answered(id, time.monotonic()):
            self.wake()  # others that wait for this host may follow
        if outcome.kind is OutcomeKind.DELIVERED:
            self.counts["delivered"] += 1
            return _End.DELIVERED
        self.counts["failed"] += 1
        is_given_up = await self._failed(due, batch, attempts + 1, outcome, is_late)
        return _End.OVER if is_given_up else _End.PENDING

    async def _send(self, sender: Sender, delivery: StoredDelivery, batch: Sequence[Notified]) -> CallOutcome:
        format, source = delivery.format, self._store.source
        first, last = batch[0], batch[-1]
        if delivery.max_delay:
            name, text = f"{first.number}-{last.number}", digest_text(first.subscription, batch, format, source)
        else:
            name, text = str(first.number), notification_text(first, format, source)
        content_type = CLOUDEVENT_JSON if format == CLOUDEVENTS else "application/json"
        assert delivery.url is not None
        secrets = [self._store.sealing.opened(delivery.secret)] if delivery.secret else []
        return await sender.send(delivery.url, secrets, name, text.encode(), content_type)

    def _is_late(self, due: Due) -> bool:
        """Whether notifications waited, ready to be sent, while calls failed for as long as all tries take.

        Those before them were given up then, and they are tried once.
        """
        if due.is_again or due.failing_since is None:
            return False
        ready = due.batch[-1].time + int(due.delivery.max_delay * 1e6)
        return microseconds() - max(ready, due.failing_since) > sum(self._settings.webhook_delays) * 1e6

    async def _failed(
        self, due: Due, batch: Sequence[Notified], attempts: int, outcome: CallOutcome, is_late: bool
    ) -> bool:
        """Note a failure. Returns whether the notifications were given up, so that the next may follow."""
        id = due.subscription.id
        if outcome.kind is OutcomeKind.GONE:
            await self._changed_of(due, lambda writing: writing.stopped(id, outcome.reason))
            return False
        delay = self._schedule.delay_before(attempts + 1, self._random)
        if delay is None or is_late:
            return await self._bury(due, batch, attempts, outcome.reason, is_failure=True)
        next_at = microseconds() + int(max(delay, outcome.retry_after or 0.0) * 1e6)
        await self._changed_of(due, lambda writing: writing.failed(id, attempts, next_at, outcome.reason))
        return False

    async def _bury(self, due: Due, batch: Sequence[Notified], attempts: int, reason: str, *, is_failure: bool) -> bool:
        """Give notifications up, after a call that failed or without one.

        Returns False if that is not for this webhook to do any more.
        """
        id, numbers = due.subscription.id, [each.number for each in batch]

        def bury(writing: Writing) -> None:
            writing.bury(id, numbers, attempts, reason)
            if is_failure:
                writing.note_failure(id, reason)

        if not await self._changed_of(due, bury):
            return False
        self.counts["dead"] += len(numbers)
        log.warning("%d notifications of %r are given up: %s", len(numbers), id, reason)
        return True

    async def _note_settled(self, due: Due, end: _End) -> bool:
        """Note how far a webhook has come. Returns whether there is more."""
        id, delivery, now = due.subscription.id, due.delivery, microseconds()
        again = [each.number for each in due.batch] if due.is_again else []
        up_to = due.batch[-1].number if due.batch and not due.is_again else due.acknowledged
        next_at = now + (int(delivery.max_delay * 1e6) if delivery.max_delay and not again else self._lease)

        def note(writing: Writing) -> bool:
            if writing.is_there(due.subscription):
                return writing.delivered(id, up_to, again, next_at, is_success=end is _End.DELIVERED)
            writing.put_off([id], now)
            return False

        return await asyncio.wrap_future(self._committer.submit(note))

    async def _changed_of(self, due: Due, work: Callable[[Writing], None]) -> bool:
        """Change something of a webhook, unless it has moved meanwhile, or another has its id: then that is next."""
        now = microseconds()

        def change(writing: Writing) -> bool:
            is_same = writing.is_there(due.subscription, as_it_was=True)
            if is_same:
                work(writing)
            else:
                writing.put_off([due.subscription.id], now)
            return is_same

        return await asyncio.wrap_future(self._committer.submit(change))

    async def _changed(self, work: Callable[[Writing], None]) -> None:
        await asyncio.wrap_future(self._committer.submit(work))
