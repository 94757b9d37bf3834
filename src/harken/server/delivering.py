"""Delivers notifications to webhooks: in order for each webhook, in fair shares, until delivered or given up."""

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
"""How much longer a claim lasts than its call. The claims of a killed process expire."""
_MOST_IN_A_ROW = 100
"""Calls of one webhook before it queues again behind the others."""
_LONGEST_ROW_SECONDS = 5.0
"""How long one webhook is called before it queues again."""


class _BatchOutcome(Enum):
    """The outcome of delivering a batch of notifications."""

    DELIVERED = "delivered"
    OVER = "over"
    """The batch was given up, or empty."""
    PENDING = "pending"
    """The batch is tried again, or no longer belongs to this webhook."""


class WebhookDeliverer:
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
        # A claimed webhook may wait for one timeout, and its call may take another: the lease covers both.
        self._hosts = Hosts(settings.webhook_parallel, patience=settings.webhook_timeout)
        self._lease = int((settings.webhook_timeout * 2 + _SLACK_SECONDS) * 1e6)
        self._has_old_claims = not store.is_shared
        """Whether claims of an earlier process may be left, which no process delivers now."""
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = dict.fromkeys(("delivered", "failed", "dead"), 0)

    def wake(self) -> None:
        """Look for webhooks that are due."""
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
        """Start the webhooks that are due. Returns the seconds until there may be more."""
        with logged("calling webhooks"):
            if self._has_old_claims:
                await self._write(lambda writing: writing.release_claims())
                self._has_old_claims = False
            await self._start_due(sender)
            return await self._pause()
        return _LONGEST_SLEEP

    async def _leave(self) -> None:
        """Cancel all calls, and release the claims, so that other processes can take over."""
        claimed = self._hosts.subscriptions
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._postpone(claimed, 0.0)
        except HarkenError as error:
            log.warning("claimed webhooks are not called until their claims expire: %s", error.message)

    async def _start_due(self, sender: Sender) -> None:
        """Claim the webhooks that are due, and start as many as their hosts allow."""
        claimed = _CLAIMED_AT_ONCE
        while True:
            chosen, late = self._hosts.begin(time.monotonic())
            for state in chosen:
                task = asyncio.create_task(self._deliver(sender, state))
                self._tasks.add(task)
                task.add_done_callback(partial(self._ended, state.subscription))
            await self._postpone(late, 0.0)
            if claimed < _CLAIMED_AT_ONCE or not self._hosts.has_room:
                return
            claimed = await self._claim()

    async def _claim(self) -> int:
        """Claim the webhooks that are due. Returns how many."""
        now = microseconds()
        states = await self._readers.run(self._store.claim, now, now + self._lease, _CLAIMED_AT_ONCE)
        beyond: dict[str, list[str]] = {}
        for state in states:
            if state.subscription not in self._hosts:  # unless this process still calls it although its claim expired
                host = self._host(state.subscription)
                if not self._hosts.add(host, state, time.monotonic()):
                    beyond.setdefault(host, []).append(state.subscription)
        for host, ids in beyond.items():
            await self._postpone(ids, self._hosts.postpone_seconds(host, time.monotonic()))
        return len(states)

    def _host(self, id: str) -> str:
        delivery = self._index.deliveries.get(id)
        return "" if delivery is None or delivery.url is None else urlsplit(delivery.url).netloc

    async def _postpone(self, ids: Sequence[str], seconds: float) -> None:
        """Release the claims of webhooks, which are due again after some seconds."""
        if ids:
            next_at = microseconds() + int(seconds * 1e6)
            await self._write(lambda writing: writing.postpone(ids, next_at))

    def _ended(self, id: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._hosts.end(id)
        if not task.cancelled() and task.exception() is not None:
            log.error("a webhook's delivery failed", exc_info=task.exception())
        self.wake()

    async def _pause(self) -> float:
        """Seconds until the next webhook is due."""
        if not self._hosts.has_room:
            return _LONGEST_SLEEP
        due = await self._readers.run(self._store.next_webhook)
        if due is None:
            return _LONGEST_SLEEP
        return min(_LONGEST_SLEEP, max(0.005, (due - microseconds()) / 1e6))

    async def _deliver(self, sender: Sender, state: WebhookState) -> None:
        """Deliver the waiting notifications of one webhook."""
        attempts, most = state.attempts, (self._settings.max_digest, self._settings.max_digest_bytes)
        until = time.monotonic() + _LONGEST_ROW_SECONDS
        for turn in range(_MOST_IN_A_ROW):
            if turn and time.monotonic() > until:
                break
            due = await self._readers.run(self._store.next_delivery, state.subscription, *most)
            if due is None:
                return  # the subscription or its webhook was removed
            outcome = await self._settle(sender, due, attempts) if due.batch else _BatchOutcome.OVER
            if outcome is _BatchOutcome.PENDING:
                return
            attempts = 0
            if not await self._acknowledge(due, outcome):
                return
            if due.delivery.max_delay and not due.is_redelivery and not due.is_full:
                return  # the next digest is due later; after a full one, more notifications wait already
        await self._postpone([state.subscription], 0.0)

    async def _settle(self, sender: Sender, due: Due, attempts: int) -> _BatchOutcome:
        """Deliver a batch of notifications, or give it up, unless it is to be tried again."""
        gone = [each for each in due.batch if each.event is None]
        if gone:
            reason = "the event was deleted from the journal before it could be delivered"
            if not await self._give_up(due, gone, attempts, reason, is_failure=False):
                return _BatchOutcome.PENDING
        batch = [each for each in due.batch if each.event is not None]
        if not batch:
            return _BatchOutcome.OVER
        is_late = not attempts and self._is_late(due)
        id = due.subscription.id
        self._hosts.sent(id, time.monotonic())
        outcome = await self._send(sender, due.delivery, batch)
        if self._hosts.answered(id, time.monotonic()):
            self.wake()  # other webhooks of this host may be called now
        if outcome.kind is OutcomeKind.DELIVERED:
            self.counts["delivered"] += 1
            return _BatchOutcome.DELIVERED
        self.counts["failed"] += 1
        is_given_up = await self._failed(due, batch, attempts + 1, outcome, is_late)
        return _BatchOutcome.OVER if is_given_up else _BatchOutcome.PENDING

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
        """Whether notifications were ready to be sent while calls failed for as long as all attempts take.

        Earlier notifications were given up in that time, and these get one attempt only.
        """
        if due.is_redelivery or due.failing_since is None:
            return False
        ready = due.batch[-1].time + int(due.delivery.max_delay * 1e6)
        return microseconds() - max(ready, due.failing_since) > sum(self._settings.webhook_delays) * 1e6

    async def _failed(
        self, due: Due, batch: Sequence[Notified], attempts: int, outcome: CallOutcome, is_late: bool
    ) -> bool:
        """Record a failed call. Returns whether the notifications were given up, so that the next may follow."""
        id = due.subscription.id
        if outcome.kind is OutcomeKind.GONE:
            await self._write_if_same(due, lambda writing: writing.stop_webhook(id, outcome.reason))
            return False
        delay = self._schedule.delay_before(attempts + 1, self._random)
        if delay is None or is_late:
            return await self._give_up(due, batch, attempts, outcome.reason, is_failure=True)
        next_at = microseconds() + int(max(delay, outcome.retry_after or 0.0) * 1e6)
        await self._write_if_same(due, lambda writing: writing.retry_later(id, attempts, next_at, outcome.reason))
        return False

    async def _give_up(
        self, due: Due, batch: Sequence[Notified], attempts: int, reason: str, *, is_failure: bool
    ) -> bool:
        """Give up notifications. `is_failure` says whether a call failed.

        Returns False without doing so if the subscription was removed or its delivery changed meanwhile.
        """
        id, numbers = due.subscription.id, [each.number for each in batch]

        def give_up(writing: Writing) -> None:
            writing.give_up(id, numbers, attempts, reason)
            if is_failure:
                writing.note_failure(id, reason)

        if not await self._write_if_same(due, give_up):
            return False
        self.counts["dead"] += len(numbers)
        log.warning("%d notifications of %r are given up: %s", len(numbers), id, reason)
        return True

    async def _acknowledge(self, due: Due, outcome: _BatchOutcome) -> bool:
        """Record that a batch was delivered or given up. Returns whether there is more to deliver."""
        id, delivery, now = due.subscription.id, due.delivery, microseconds()
        redelivered = [each.number for each in due.batch] if due.is_redelivery else []
        up_to = due.batch[-1].number if due.batch and not due.is_redelivery else due.acknowledged
        next_at = now + (int(delivery.max_delay * 1e6) if delivery.max_delay and not redelivered else self._lease)

        def acknowledge(writing: Writing) -> bool:
            if writing.exists(due.subscription):
                is_success = outcome is _BatchOutcome.DELIVERED
                return writing.acknowledge(id, up_to, redelivered, next_at, is_success=is_success)
            writing.postpone([id], now)
            return False

        return await asyncio.wrap_future(self._committer.submit(acknowledge))

    async def _write_if_same(self, due: Due, work: Callable[[Writing], None]) -> bool:
        """Write to the store unless the subscription was removed or its delivery changed; then its webhook is due."""
        now = microseconds()

        def change(writing: Writing) -> bool:
            is_same = writing.exists(due.subscription, same_delivery=True)
            if is_same:
                work(writing)
            else:
                writing.postpone([due.subscription.id], now)
            return is_same

        return await asyncio.wrap_future(self._committer.submit(change))

    async def _write(self, work: Callable[[Writing], None]) -> None:
        await asyncio.wrap_future(self._committer.submit(work))
