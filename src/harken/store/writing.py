"""What changes the store, in one transaction: subscriptions and their log, events and notifications, webhooks, keys."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harken.errors import DuplicateIdError, LimitError, UnknownIdError
from harken.store.database import Transaction, parts, places, rows_in
from harken.store.outbox import NewNotifications, has_after, insert_packs, prune_packs
from harken.store.stored import (
    GONE,
    IDLE,
    PUT,
    RENEWED,
    SCHEMA,
    STOPPED,
    SUBSCRIPTION_COLUMNS,
    WAITING,
    ApiKey,
    StoredSubscription,
)
from harken.store.stored_delivery import StoredDelivery, StoredThrottle

_COLUMNS = ", ".join(SUBSCRIPTION_COLUMNS)
_DROPPED_AT_ONCE, _MOST_DROPPED = 256, 8_192
"""Events that a transaction lets go of: a publisher waits for it. The rest goes when the journal is pruned."""


class BehindError(Exception):
    """Another process has changed subscriptions since the events were matched: match them again."""


class NewEvent(NamedTuple):
    """An event to append, and the ids of the subscriptions that it matched."""

    kind: str
    body: bytes
    matches: Sequence[str]
    key: bytes | None = None
    """What makes it the same as one that was appended before; None if nothing does."""


class Publication(NamedTuple):
    """The events of one request."""

    events: Sequence[NewEvent]
    key: bytes | None = None
    """What makes the request the same as an earlier one."""
    answer: str = ""
    """What a repetition of the request is answered with."""
    request_hash: bytes | None = None
    """What the request says: another one must not come with its key. None if nobody compares."""


@dataclass(slots=True)
class Appended:
    """What came of publications."""

    notifications: NewNotifications
    repeated: dict[int, str] = field(default_factory=dict)
    """The answers of requests that were made before, by their place."""
    conflicts: set[int] = field(default_factory=set)
    """The places of requests whose key another request had before."""
    duplicates: dict[int, int] = field(default_factory=dict)
    """How many events of a request were there before, by its place."""
    events: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    """The rows of the events: number, time, kind, body."""
    dropped: int = 0
    """How many older events had to go."""


class Writing:
    """A transaction of the store. What raises a HarkenError has changed nothing."""

    def __init__(self, transaction: Transaction, origin: str, now: int) -> None:
        self._transaction = transaction
        self._origin = origin
        self._now = now
        # The first statement of all: who has this row is alone, so that nobody waits for another in a circle.
        transaction.run("UPDATE heads SET value = value WHERE name = 'change'")
        self._heads: dict[str, int] = dict(transaction.rows("SELECT name, value FROM heads"))
        """The last numbers that were given out, and how many bytes the journal has."""
        self._changed_heads: set[str] = set()

    # Subscriptions

    def create(
        self, subscriptions: Sequence[StoredSubscription], most: Mapping[str, int] | None = None
    ) -> list[StoredSubscription | DuplicateIdError | LimitError]:
        """Take new subscriptions; those whose id is taken are told so. One that has expired makes way.

        `most` has owners and how many subscriptions each may have. Those beyond are refused.
        """
        ids = [each.id for each in subscriptions]
        rows = list(rows_in(self._transaction, "SELECT id, expires_at FROM subscriptions WHERE id IN", ids))
        self._forget([id for id, expires_at in rows if expires_at <= self._now])
        taken = {id for id, expires_at in rows if expires_at > self._now}
        room = {owner: count - self._owned(owner) for owner, count in (most or {}).items()}
        since = self._heads["notification"]
        found: list[StoredSubscription | DuplicateIdError | LimitError] = []
        new: list[StoredSubscription] = []
        for each in subscriptions:
            if each.id in taken:
                found.append(DuplicateIdError(f"the id {each.id!r:.80} is taken"))
                continue
            if each.owner is not None and most is not None and each.owner in room:
                if room[each.owner] <= 0:
                    message = f"{each.owner!r:.60} has {most[each.owner]:,} subscriptions already"
                    found.append(LimitError(message, limit="max_subscriptions_per_owner"))
                    continue
                room[each.owner] -= 1
            taken.add(each.id)
            new.append(replace(each, since=since))
            found.append(new[-1])
        self._transaction.insert("subscriptions", SUBSCRIPTION_COLUMNS, [each.row() for each in new])
        self._log(PUT, [each.id for each in new])
        for each in new:
            if each.delivery.url is not None:
                self._start_webhook(each.id, since)
        return found

    def change(self, subscription: StoredSubscription) -> None:
        """Make a subscription another. Its ticket, creation and first notification stay. Raises UnknownIdError."""
        _, condition, language, _, labels, delivery, _, _, expires_at, _, valid_for = subscription.row()
        before = self._transaction.rows("SELECT delivery FROM subscriptions WHERE id = ?", (subscription.id,))
        self._one(
            "UPDATE subscriptions SET condition = ?, language = ?, labels = ?, delivery = ?, expires_at = ?, "
            "valid_for = ? WHERE id = ?",
            (condition, language, labels, delivery, expires_at, valid_for, subscription.id),
            subscription.id,
        )
        self._log(PUT, [subscription.id])
        url, known = subscription.delivery.url, StoredDelivery.from_json(before[0][0]).url
        if url is None:
            self._transaction.run("DELETE FROM webhooks WHERE subscription = ?", (subscription.id,))
        elif known is None:
            self._start_webhook(subscription.id, self._heads["notification"])
        elif known != url:  # how the other place failed says nothing of this one
            self._transaction.run(
                "UPDATE webhooks SET state = CASE WHEN state = ? THEN state ELSE ? END, attempts = 0, next_at = ?, "
                "last_error = NULL, failures = 0, failing_since = NULL WHERE subscription = ?",
                (IDLE, WAITING, self._now, subscription.id),
            )

    def renew(self, id: str, expires_at: int, valid_for: int | None = None) -> None:
        """Have a subscription expire later, or sooner. Raises UnknownIdError."""
        text = "UPDATE subscriptions SET expires_at = ?, valid_for = ? WHERE id = ?"
        self._one(text, (expires_at, valid_for, id), id)
        self._log(RENEWED, [id])

    def remove(self, id: str) -> None:
        """Let go of a subscription. Raises UnknownIdError."""
        if not self._known([id]):
            raise _unknown(id)
        self._forget([id])

    def remove_expired(self, now: int, most: int = 1_000) -> list[str]:
        """Let go of some subscriptions that have expired, and return their ids."""
        rows = self._transaction.rows(
            "SELECT id FROM subscriptions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?", (now, most)
        )
        ids = [row[0] for row in rows]
        self._forget(ids)
        return ids

    def put_schema(self, version: int, text: str) -> None:
        """Keep a version of the schema, and log that there is one. Raises BehindError if another process was first."""
        if self._transaction.rows("SELECT 1 FROM schemas WHERE version = ?", (version,)):
            raise BehindError
        self._transaction.run("INSERT INTO schemas (version, text, time) VALUES (?, ?, ?)", (version, text, self._now))
        self._log(SCHEMA, [str(version)])

    @property
    def sequence(self) -> int:
        """The last change of the log, as this transaction leaves it."""
        return self._heads["change"]

    # Events

    def refuse_unless_current(self, known: int) -> None:
        """Raise BehindError if another process has changed subscriptions or the schema since this change."""
        if self._heads["change"] == known:
            return
        text = "SELECT 1 FROM changes WHERE sequence > ? AND origin <> ? AND kind <> ? LIMIT 1"
        next_one = "SELECT 1 FROM changes WHERE sequence = ?"  # if it is gone, others after it may be, too
        if self._transaction.rows(text, (known, self._origin, RENEWED)) or not self._transaction.rows(
            next_one, (known + 1,)
        ):
            raise BehindError

    def gone_since(self, known: int) -> frozenset[str]:
        """Subscriptions that were removed after a change. Another may have the id of one of them by now."""
        if self._heads["change"] == known:
            return frozenset()
        text = "SELECT id FROM changes WHERE sequence > ? AND kind = ?"
        return frozenset(row[0] for row in self._transaction.rows(text, (known, GONE)))

    def append(
        self,
        publications: Sequence[Publication],
        deliveries: Mapping[str, StoredDelivery],
        most_bytes: int | None = None,
    ) -> Appended:
        """Append events to the journal, and what they matched to the outbox.

        `deliveries` has the subscriptions that want more than to be asked. The oldest events go at once where the
        journal would have more bytes: so many as are let go of in a short time, and none of these.
        """
        now = self._now
        notifications = NewNotifications(self._heads["notification"], now)
        appended = Appended(notifications)
        known = self._known_answers(publications)
        keys: list[tuple[bytes, str | None, int, bytes | None]] = []
        number, size = self._heads["event"], 0
        throttled = _Throttled(self._transaction, now, deliveries)
        for place, publication in enumerate(publications):
            if publication.key is not None:
                if publication.key in known:
                    answer, request_hash = known[publication.key]
                    if request_hash is not None and publication.request_hash not in (None, request_hash):
                        appended.conflicts.add(place)
                    else:
                        appended.repeated[place] = answer or publication.answer
                    continue
                known[publication.key] = publication.answer, publication.request_hash
                keys.append((publication.key, publication.answer, now, publication.request_hash))
            for event in publication.events:
                if event.key is not None:
                    if event.key in known:
                        appended.duplicates[place] = appended.duplicates.get(place, 0) + 1
                        continue
                    known[event.key] = None, None
                    keys.append((event.key, None, now, None))
                number += 1
                size += len(event.body)
                appended.events.append((number, now, event.kind, event.body))
                if event.matches:
                    throttled.add(notifications, number, event.matches)
        self._transaction.insert("events", ("number", "time", "kind", "body"), appended.events)
        insert_packs(self._transaction, notifications)
        self._transaction.insert("answers", ("key", "answer", "time", "request_hash"), keys)
        event_bytes = self._heads["event_bytes"] + size
        self._set_heads(event=number, notification=notifications.last, event_bytes=event_bytes)
        throttled.keep()
        self._wake_webhooks(notifications, deliveries)
        if most_bytes is not None:
            appended.dropped = self._drop_beyond(most_bytes, number - len(appended.events))
        return appended

    def _drop_beyond(self, most_bytes: int, up_to: int) -> int:
        """Let go of the oldest events while the journal has more bytes. Returns how many."""
        dropped = 0
        while self._heads["event_bytes"] > most_bytes and dropped < _MOST_DROPPED:
            gone = self.prune_journal(0, most_bytes, _DROPPED_AT_ONCE, up_to)
            if not gone:
                break
            dropped += gone
        return dropped

    def prune_journal(self, before: int, most_bytes: int, at_once: int = 5_000, up_to: int | None = None) -> int:
        """Let go of some events, up to a number, that are too old or too many. Returns how many."""
        held = self._heads["event_bytes"]
        last = self._heads["event"] if up_to is None else up_to
        rows = self._transaction.rows(
            "SELECT number, time, length(body) FROM events WHERE number <= ? ORDER BY number LIMIT ?", (last, at_once)
        )
        last = count = 0
        for number, time, size in rows:
            if time >= before and held <= most_bytes:
                break
            last, count, held = number, count + 1, held - size
        if count:
            self._transaction.run("DELETE FROM events WHERE number <= ?", (last,))
            self._set_heads(event_bytes=held)
        return count

    def prune_notifications(self, at_once: int = 5_000) -> int:
        """Let go of some packs of notifications whose events are gone, unless a webhook waits. Returns how many."""
        oldest = self._transaction.rows("SELECT number FROM events ORDER BY number LIMIT 1")
        first = oldest[0][0] if oldest else self._heads["event"] + 1
        waiting = self._transaction.rows(
            "SELECT MIN(w.acknowledged), MIN(r.notification) - 1 FROM webhooks w "
            "LEFT JOIN redeliveries r ON r.subscription = w.subscription WHERE w.state = 'waiting'"
        )[0]
        up_to = min((each for each in waiting if each is not None), default=None)
        count, kept = prune_packs(self._transaction, first, up_to, at_once)
        if count:
            before = self._heads["notification"] + 1 if kept is None else kept
            self._transaction.run("DELETE FROM dead_notifications WHERE notification < ?", (before,))
            self._transaction.run("DELETE FROM redeliveries WHERE notification < ?", (before,))
        return count

    def prune_answers(self, before: int) -> int:
        """Let go of answers to repeated requests that are too old."""
        return self._transaction.run("DELETE FROM answers WHERE time < ?", (before,))

    def prune_changes(self, before: int, up_to: int) -> int:
        """Let go of changes that are too old, none of them after `up_to`. The last stays: snapshots refer to it."""
        last = min(up_to, self._heads["change"] - 1)
        kept = self._transaction.rows("SELECT MIN(sequence) FROM changes WHERE time >= ?", (before,))[0][0]
        last = last if kept is None else min(last, kept - 1)  # clocks of processes differ: the log has no holes
        return self._transaction.run("DELETE FROM changes WHERE sequence <= ?", (last,))

    # Webhooks

    def delivered(self, id: str, up_to: int, again: Sequence[int], next_at: int, *, is_success: bool = True) -> bool:
        """Everything up to a notification is settled, and some again. Returns whether there is more, due at `next_at`.

        It was delivered, or given up: only a success ends a row of failures.
        """
        self._drop("redeliveries", id, again)
        # Whoever appends meanwhile waits for this, and then wakes a webhook that has nothing to do.
        repeated = "SELECT 1 FROM redeliveries WHERE subscription = ? LIMIT 1"
        is_behind = has_after(self._transaction, id, up_to)
        has_more = is_behind or bool(self._transaction.rows(repeated, (id,)))
        if not is_behind:
            up_to = self._heads["notification"]  # so that the next search begins there
        healthy = ", last_error = NULL, failures = 0, failing_since = NULL" if is_success else ""
        self._transaction.run(
            "UPDATE webhooks SET acknowledged = CASE WHEN acknowledged < ? THEN ? ELSE acknowledged END, "
            f"attempts = 0, state = ?, next_at = ?{healthy} WHERE subscription = ? AND state = 'waiting'",
            (up_to, up_to, WAITING if has_more else IDLE, next_at if has_more else 0, id),
        )
        return has_more

    def failed(self, id: str, attempts: int, next_at: int, reason: str) -> None:
        """A webhook has failed, and is tried again later."""
        self._transaction.run(
            "UPDATE webhooks SET attempts = ?, next_at = ? WHERE subscription = ? AND state = 'waiting'",
            (attempts, next_at, id),
        )
        self.note_failure(id, reason)

    def note_failure(self, id: str, reason: str) -> None:
        """A call of a webhook has failed."""
        self._transaction.run(
            "UPDATE webhooks SET failures = failures + 1, failing_since = COALESCE(failing_since, ?), last_error = ? "
            "WHERE subscription = ? AND state = 'waiting'",
            (self._now, reason, id),
        )

    def is_there(self, known: StoredSubscription, *, as_it_was: bool = False) -> bool:
        """Whether a subscription is still there, and not another that has its id.

        With `as_it_was`, whether it wants to be notified as before, too.
        """
        rows = self._transaction.rows("SELECT since, delivery FROM subscriptions WHERE id = ?", (known.id,))
        return bool(rows) and rows[0][0] == known.since and (not as_it_was or rows[0][1] == known.delivery.to_json())

    def put_off(self, ids: Sequence[str], next_at: int) -> None:
        """Webhooks that were claimed are due at another time."""
        for some in parts(ids):
            text = f"UPDATE webhooks SET next_at = ? WHERE state = 'waiting' AND subscription IN {places(len(some))}"
            self._transaction.run(text, (next_at, *some))

    def drop_claims(self) -> None:
        """Have all webhooks be due that did not fail before. Only for those who share the store with nobody."""
        text = "UPDATE webhooks SET next_at = ? WHERE state = 'waiting' AND attempts = 0 AND next_at > ?"
        self._transaction.run(text, (self._now, self._now))

    def stopped(self, id: str, reason: str) -> None:
        """A webhook wants no more."""
        self.note_failure(id, reason)
        self._transaction.run(
            "UPDATE webhooks SET state = ?, last_error = ? WHERE subscription = ?", (STOPPED, reason, id)
        )

    def bury(self, id: str, numbers: Sequence[int], attempts: int, reason: str) -> None:
        """Give notifications up: they are dead letters from now on."""
        self._drop("dead_notifications", id, numbers)
        columns = "subscription", "notification", "failed_at", "attempts", "reason"
        rows = [(id, number, self._now, attempts, reason) for number in numbers]
        self._transaction.insert("dead_notifications", columns, rows)

    def redeliver(self, id: str, numbers: Sequence[int]) -> None:
        """Have notifications delivered again, and a webhook that was stopped start again."""
        self._drop("redeliveries", id, numbers)
        self._transaction.insert("redeliveries", ("subscription", "notification"), [(id, each) for each in numbers])
        self._drop("dead_notifications", id, numbers)
        self._transaction.run(
            "UPDATE webhooks SET state = ?, attempts = 0, next_at = ? WHERE subscription = ?", (WAITING, self._now, id)
        )

    # Keys

    def add_key(self, key: ApiKey, hashed: bytes) -> None:
        columns = "id", "hash", "owner", "scopes", "name", "created_at"
        row = key.id, hashed, key.owner, " ".join(sorted(key.scopes)), key.name, key.created_at
        self._transaction.insert("api_keys", columns, [row])

    def remove_key(self, id: str) -> bool:
        return self._transaction.run("DELETE FROM api_keys WHERE id = ?", (id,)) > 0

    # Health

    def probe(self, size: int) -> None:
        """Write so many bytes that nothing reads, to see whether the store takes them."""
        if size:
            self._transaction.run("DELETE FROM settings WHERE name = 'probe'")
            row = "probe", secrets.token_hex(size // 2)
            self._transaction.insert("settings", ("name", "value"), [row])

    # Inside

    def finish(self) -> None:
        """Write the heads, last of all."""
        for name in sorted(self._changed_heads):
            self._transaction.run("UPDATE heads SET value = ? WHERE name = ?", (self._heads[name], name))
        if self._changed_heads:
            self._transaction.announce(self._origin)
        self._changed_heads.clear()

    def _set_heads(self, **values: int) -> None:
        for name, value in values.items():
            if self._heads[name] != value:
                self._heads[name] = value
                self._changed_heads.add(name)

    def _log(self, kind: str, ids: Sequence[str]) -> None:
        first = self._heads["change"] + 1
        rows = [(sequence, kind, id, self._origin, self._now) for sequence, id in enumerate(ids, first)]
        self._transaction.insert("changes", ("sequence", "kind", "id", "origin", "time"), rows)
        self._set_heads(change=first + len(ids) - 1)

    def _known(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that a subscription has."""
        return {row[0] for row in rows_in(self._transaction, "SELECT id FROM subscriptions WHERE id IN", ids)}

    def _owned(self, owner: str) -> int:
        """How many subscriptions somebody has."""
        return int(self._transaction.rows("SELECT COUNT(*) FROM subscriptions WHERE owner = ?", (owner,))[0][0])

    def _known_answers(self, publications: Sequence[Publication]) -> dict[bytes, tuple[str | None, bytes | None]]:
        """The answers that were given before, and to what, by what makes a request or an event the same."""
        keys = [each.key for each in publications if each.key is not None]
        keys += [event.key for each in publications for event in each.events if event.key is not None]
        found = rows_in(self._transaction, "SELECT key, answer, request_hash FROM answers WHERE key IN", keys)
        return {bytes(key): (answer, None if mark is None else bytes(mark)) for key, answer, mark in found}

    def _forget(self, ids: Sequence[str]) -> None:
        for some in parts(ids):
            marks = places(len(some))
            self._transaction.run(f"DELETE FROM subscriptions WHERE id IN {marks}", some)
            for table in ("throttles", "webhooks", "redeliveries", "dead_notifications"):
                self._transaction.run(f"DELETE FROM {table} WHERE subscription IN {marks}", some)
        self._log(GONE, ids)

    def _one(self, text: str, values: Sequence[Any], id: str) -> None:
        if not self._transaction.run(text, values):
            raise _unknown(id)

    def _start_webhook(self, id: str, since: int) -> None:
        columns = "subscription", "acknowledged", "state", "attempts", "next_at", "last_error"
        self._transaction.insert("webhooks", columns, [(id, since, IDLE, 0, 0, None)])

    def _wake_webhooks(self, notifications: NewNotifications, deliveries: Mapping[str, StoredDelivery]) -> None:
        """Have those webhooks called that wait for nothing yet."""
        if not deliveries:
            return
        for id in deliveries.keys() & set(notifications.subscriptions):
            delivery = deliveries[id]
            if delivery.url is not None:
                self._transaction.run(
                    "UPDATE webhooks SET state = ?, next_at = ? WHERE subscription = ? AND state = 'idle'",
                    (WAITING, self._now + int(delivery.max_delay * 1e6), id),
                )

    def _drop(self, table: str, id: str, numbers: Sequence[int]) -> None:
        """Delete the rows of notifications."""
        for some in parts(numbers):
            self._transaction.run(
                f"DELETE FROM {table} WHERE subscription = ? AND notification IN {places(len(some))}", (id, *some)
            )


class _Throttled:
    """How many notifications of each throttled subscription may pass, and how many did not."""

    def __init__(self, transaction: Transaction, now: int, deliveries: Mapping[str, StoredDelivery]) -> None:
        self._transaction = transaction
        self._now = now
        self._deliveries = deliveries
        self._rows: dict[str, list[int]] = {}

    def add(self, notifications: NewNotifications, event: int, ids: Sequence[str]) -> None:
        """Add the notifications of an event that may pass."""
        if self._deliveries and not self._deliveries.keys().isdisjoint(ids):
            throttles = {id: self._deliveries[id].throttle for id in ids if id in self._deliveries}
            passed = {id: self._pass_through(id, each) for id, each in throttles.items() if each is not None}
            ids = [id for id in ids if passed.get(id, 0) is not None]
            first = len(notifications)
            notifications.suppressed |= {place: held for place, id in enumerate(ids, first) if (held := passed.get(id))}
        notifications.subscriptions += ids
        notifications.events += [event] * len(ids)

    def _pass_through(self, id: str, throttle: StoredThrottle) -> int | None:
        """How many were suppressed before this one; None if this one is, too."""
        row = self._rows.get(id)
        if row is None:
            known = self._transaction.rows(
                "SELECT began_at, passed, suppressed FROM throttles WHERE subscription = ?", (id,)
            )
            row = self._rows[id] = list(known[0]) if known else [self._now, 0, 0]
        if self._now - row[0] >= throttle.seconds * 1e6:
            row[0], row[1] = self._now, 0
        if row[1] >= throttle.count:
            row[2] += 1
            return None
        row[1] += 1
        suppressed, row[2] = row[2], 0
        return suppressed

    def keep(self) -> None:
        for id, row in self._rows.items():
            self._transaction.run("DELETE FROM throttles WHERE subscription = ?", (id,))
            self._transaction.insert("throttles", ("subscription", "began_at", "passed", "suppressed"), [(id, *row)])


def _unknown(id: str) -> UnknownIdError:
    return UnknownIdError(f"there is no subscription {id!r:.80}")
