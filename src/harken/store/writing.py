"""A write transaction of the store: subscriptions and their log, events and notifications, webhooks, API keys."""

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
"""Most old events that appending deletes, at once and in all: publishers wait for it. Pruning deletes the rest."""


class BehindError(Exception):
    """Another process has changed subscriptions since the events were matched: match them again."""


class NewEvent(NamedTuple):
    """An event to append, and the ids of the subscriptions that it matched."""

    kind: str
    body: bytes
    matches: Sequence[str]
    key: bytes | None = None
    """Identifies the event: one whose key was appended before is a duplicate. None if it is never one."""


class Publication(NamedTuple):
    """The events of one request."""

    events: Sequence[NewEvent]
    key: bytes | None = None
    """Identifies the request: one whose key came before is a repetition. None if it is never one."""
    answer: str = ""
    """The answer to repetitions of the request."""
    request_hash: bytes | None = None
    """A hash of the request's content: a request with the same key and another hash is a conflict. None: no check."""


@dataclass(slots=True)
class Appended:
    """The result of appending publications."""

    notifications: NewNotifications
    repeated: dict[int, str] = field(default_factory=dict)
    """The earlier answers to repeated requests, by place of the request."""
    conflicts: set[int] = field(default_factory=set)
    """The places of requests whose key another request had before."""
    duplicates: dict[int, int] = field(default_factory=dict)
    """How many events of a request were duplicates, by its place."""
    events: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    """The rows of the new events: number, time, kind, body."""
    dropped: int = 0
    """How many old events were deleted to make room."""


class Writing:
    """A write transaction of the store. A method that raises a HarkenError has changed nothing."""

    def __init__(self, transaction: Transaction, origin: str, now: int) -> None:
        self._transaction = transaction
        self._origin = origin
        self._now = now
        # The first statement locks this row, so that write transactions follow each other and cannot deadlock.
        transaction.run("UPDATE heads SET value = value WHERE name = 'change'")
        self._heads: dict[str, int] = dict(transaction.rows("SELECT name, value FROM heads"))
        """The last number of each sequence, and the size of the journal in bytes."""
        self._changed_heads: set[str] = set()

    # Subscriptions

    def create(
        self, subscriptions: Sequence[StoredSubscription], most: Mapping[str, int] | None = None
    ) -> list[StoredSubscription | DuplicateIdError | LimitError]:
        """Create subscriptions. Returns each as it is stored, or the error for which it was rejected.

        An id must be free: an expired subscription is removed first. `most` limits the subscriptions of some owners.
        """
        ids = [each.id for each in subscriptions]
        rows = list(rows_in(self._transaction, "SELECT id, expires_at FROM subscriptions WHERE id IN", ids))
        self._delete([id for id, expires_at in rows if expires_at <= self._now])
        used_ids = {id for id, expires_at in rows if expires_at > self._now}
        room = {owner: count - self._owned(owner) for owner, count in (most or {}).items()}
        since = self._heads["notification"]
        outcomes: list[StoredSubscription | DuplicateIdError | LimitError] = []
        new: list[StoredSubscription] = []
        for each in subscriptions:
            if each.id in used_ids:
                outcomes.append(DuplicateIdError(f"the id {each.id!r:.80} is taken"))
                continue
            if each.owner is not None and most is not None and each.owner in room:
                if room[each.owner] <= 0:
                    message = f"{each.owner!r:.60} has {most[each.owner]:,} subscriptions already"
                    outcomes.append(LimitError(message, limit="max_subscriptions_per_owner"))
                    continue
                room[each.owner] -= 1
            used_ids.add(each.id)
            new.append(replace(each, since=since))
            outcomes.append(new[-1])
        self._transaction.insert("subscriptions", SUBSCRIPTION_COLUMNS, [each.row() for each in new])
        self._log(PUT, [each.id for each in new])
        for each in new:
            if each.delivery.url is not None:
                self._start_webhook(each.id, since)
        return outcomes

    def change(self, subscription: StoredSubscription) -> None:
        """Replace the subscription of this id; owner, ticket, creation and `since` stay. Raises UnknownIdError."""
        _, condition, language, _, labels, delivery, _, _, expires_at, _, valid_for = subscription.row()
        before = self._transaction.rows("SELECT delivery FROM subscriptions WHERE id = ?", (subscription.id,))
        self._update(
            "UPDATE subscriptions SET condition = ?, language = ?, labels = ?, delivery = ?, expires_at = ?, "
            "valid_for = ? WHERE id = ?",
            (condition, language, labels, delivery, expires_at, valid_for, subscription.id),
            subscription.id,
        )
        self._log(PUT, [subscription.id])
        url, old_url = subscription.delivery.url, StoredDelivery.from_json(before[0][0]).url
        if url is None:
            self._transaction.run("DELETE FROM webhooks WHERE subscription = ?", (subscription.id,))
        elif old_url is None:
            self._start_webhook(subscription.id, self._heads["notification"])
        elif old_url != url:  # failures of the old URL say nothing of the new one
            self._transaction.run(
                "UPDATE webhooks SET state = CASE WHEN state = ? THEN state ELSE ? END, attempts = 0, next_at = ?, "
                "last_error = NULL, failures = 0, failing_since = NULL WHERE subscription = ?",
                (IDLE, WAITING, self._now, subscription.id),
            )

    def renew(self, id: str, expires_at: int, valid_for: int | None = None) -> None:
        """Change when a subscription expires. Raises UnknownIdError."""
        text = "UPDATE subscriptions SET expires_at = ?, valid_for = ? WHERE id = ?"
        self._update(text, (expires_at, valid_for, id), id)
        self._log(RENEWED, [id])

    def remove(self, id: str) -> None:
        """Remove a subscription. Raises UnknownIdError."""
        if not self._transaction.rows("SELECT 1 FROM subscriptions WHERE id = ?", (id,)):
            raise _unknown(id)
        self._delete([id])

    def remove_expired(self, now: int, most: int = 1_000) -> list[str]:
        """Remove at most `most` subscriptions that have expired. Returns their ids."""
        rows = self._transaction.rows(
            "SELECT id FROM subscriptions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?", (now, most)
        )
        ids = [row[0] for row in rows]
        self._delete(ids)
        return ids

    def put_schema(self, version: int, text: str) -> None:
        """Store and log a version of the schema. Raises BehindError if another process has stored it before."""
        if self._transaction.rows("SELECT 1 FROM schemas WHERE version = ?", (version,)):
            raise BehindError
        self._transaction.run("INSERT INTO schemas (version, text, time) VALUES (?, ?, ?)", (version, text, self._now))
        self._log(SCHEMA, [str(version)])

    @property
    def sequence(self) -> int:
        """The number of the last change of the log, those of this transaction included."""
        return self._heads["change"]

    # Events

    def require_current(self, sequence: int) -> None:
        """Raise BehindError if another process has changed subscriptions or the schema since the change `sequence`."""
        if self._heads["change"] == sequence:
            return
        text = "SELECT 1 FROM changes WHERE sequence > ? AND origin <> ? AND kind <> ? LIMIT 1"
        next_one = "SELECT 1 FROM changes WHERE sequence = ?"  # if it was pruned, later ones may have been, too
        if self._transaction.rows(text, (sequence, self._origin, RENEWED)) or not self._transaction.rows(
            next_one, (sequence + 1,)
        ):
            raise BehindError

    def removed_since(self, sequence: int) -> frozenset[str]:
        """The ids that were removed after the change `sequence`. New subscriptions may have some of them by now."""
        if self._heads["change"] == sequence:
            return frozenset()
        text = "SELECT id FROM changes WHERE sequence > ? AND kind = ?"
        return frozenset(row[0] for row in self._transaction.rows(text, (sequence, GONE)))

    def append(
        self,
        publications: Sequence[Publication],
        deliveries: Mapping[str, StoredDelivery],
        most_bytes: int | None = None,
    ) -> Appended:
        """Append events to the journal, and their notifications to the outbox.

        `deliveries` has the deliveries that are not the default. If the journal exceeds `most_bytes`, the oldest events
        are deleted, but none of these and no more than a short time allows.
        """
        now = self._now
        notifications = NewNotifications(self._heads["notification"], now)
        appended = Appended(notifications)
        answers = self._earlier_answers(publications)
        keys: list[tuple[bytes, str | None, int, bytes | None]] = []
        number, size = self._heads["event"], 0
        throttles = _Throttles(self._transaction, now, deliveries)
        for place, publication in enumerate(publications):
            if publication.key is not None:
                if publication.key in answers:
                    answer, request_hash = answers[publication.key]
                    if request_hash is not None and publication.request_hash not in (None, request_hash):
                        appended.conflicts.add(place)
                    else:
                        appended.repeated[place] = answer or publication.answer
                    continue
                answers[publication.key] = publication.answer, publication.request_hash
                keys.append((publication.key, publication.answer, now, publication.request_hash))
            for event in publication.events:
                if event.key is not None:
                    if event.key in answers:
                        appended.duplicates[place] = appended.duplicates.get(place, 0) + 1
                        continue
                    answers[event.key] = None, None
                    keys.append((event.key, None, now, None))
                number += 1
                size += len(event.body)
                appended.events.append((number, now, event.kind, event.body))
                if event.matches:
                    throttles.add(notifications, number, event.matches)
        self._transaction.insert("events", ("number", "time", "kind", "body"), appended.events)
        insert_packs(self._transaction, notifications)
        self._transaction.insert("answers", ("key", "answer", "time", "request_hash"), keys)
        event_bytes = self._heads["event_bytes"] + size
        self._set_heads(event=number, notification=notifications.last, event_bytes=event_bytes)
        throttles.save()
        self._wake_webhooks(notifications, deliveries)
        if most_bytes is not None:
            appended.dropped = self._drop_beyond(most_bytes, number - len(appended.events))
        return appended

    def _drop_beyond(self, most_bytes: int, up_to: int) -> int:
        """Delete the oldest events, up to a number, while the journal exceeds `most_bytes`. Returns how many."""
        dropped = 0
        while self._heads["event_bytes"] > most_bytes and dropped < _MOST_DROPPED:
            count = self.prune_journal(0, most_bytes, _DROPPED_AT_ONCE, up_to)
            if not count:
                break
            dropped += count
        return dropped

    def prune_journal(self, before: int, most_bytes: int, at_once: int = 5_000, up_to: int | None = None) -> int:
        """Delete events that are older than `before`, and the oldest while the journal exceeds `most_bytes`.

        At most `at_once` are deleted, and none after the number `up_to`. Returns how many.
        """
        bytes_left = self._heads["event_bytes"]
        last = self._heads["event"] if up_to is None else up_to
        rows = self._transaction.rows(
            "SELECT number, time, length(body) FROM events WHERE number <= ? ORDER BY number LIMIT ?", (last, at_once)
        )
        last = count = 0
        for number, time, size in rows:
            if time >= before and bytes_left <= most_bytes:
                break
            last, count, bytes_left = number, count + 1, bytes_left - size
        if count:
            self._transaction.run("DELETE FROM events WHERE number <= ?", (last,))
            self._set_heads(event_bytes=bytes_left)
        return count

    def prune_notifications(self, at_once: int = 5_000) -> int:
        """Delete packs of notifications whose events are deleted and which no webhook still needs. Returns how many."""
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
        """Delete the answers to repeated requests that are older than `before`. Returns how many."""
        return self._transaction.run("DELETE FROM answers WHERE time < ?", (before,))

    def prune_changes(self, before: int, up_to: int) -> int:
        """Delete changes that are older than `before`, none after `up_to`. Returns how many.

        The last change stays, because snapshots refer to it.
        """
        last = min(up_to, self._heads["change"] - 1)
        # The first recent change decides, so that the log has no gaps although the clocks of processes differ.
        kept = self._transaction.rows("SELECT MIN(sequence) FROM changes WHERE time >= ?", (before,))[0][0]
        last = last if kept is None else min(last, kept - 1)
        return self._transaction.run("DELETE FROM changes WHERE sequence <= ?", (last,))

    # Webhooks

    def acknowledge(
        self, id: str, up_to: int, redelivered: Sequence[int], next_at: int, *, is_success: bool = True
    ) -> bool:
        """Note that notifications were delivered or given up: all up to a number, and the redelivered ones.

        Returns whether there are more, which are due at `next_at`. Only a success resets the count of failures.
        """
        self._drop("redeliveries", id, redelivered)
        # No notification can be missed: appending waits for this transaction, and then wakes an idle webhook.
        redeliveries = "SELECT 1 FROM redeliveries WHERE subscription = ? LIMIT 1"
        is_behind = has_after(self._transaction, id, up_to)
        has_more = is_behind or bool(self._transaction.rows(redeliveries, (id,)))
        if not is_behind:
            up_to = self._heads["notification"]  # so that the next search begins there
        healthy = ", last_error = NULL, failures = 0, failing_since = NULL" if is_success else ""
        self._transaction.run(
            "UPDATE webhooks SET acknowledged = CASE WHEN acknowledged < ? THEN ? ELSE acknowledged END, "
            f"attempts = 0, state = ?, next_at = ?{healthy} WHERE subscription = ? AND state = 'waiting'",
            (up_to, up_to, WAITING if has_more else IDLE, next_at if has_more else 0, id),
        )
        return has_more

    def retry_later(self, id: str, attempts: int, next_at: int, reason: str) -> None:
        """Note that a call of a webhook failed, and is repeated at `next_at`."""
        self._transaction.run(
            "UPDATE webhooks SET attempts = ?, next_at = ? WHERE subscription = ? AND state = 'waiting'",
            (attempts, next_at, id),
        )
        self.note_failure(id, reason)

    def note_failure(self, id: str, reason: str) -> None:
        """Note that a call of a webhook failed."""
        self._transaction.run(
            "UPDATE webhooks SET failures = failures + 1, failing_since = COALESCE(failing_since, ?), last_error = ? "
            "WHERE subscription = ? AND state = 'waiting'",
            (self._now, reason, id),
        )

    def exists(self, subscription: StoredSubscription, *, same_delivery: bool = False) -> bool:
        """Whether a subscription still exists, and its id does not belong to a new one.

        With `same_delivery`, also whether its delivery is unchanged.
        """
        rows = self._transaction.rows("SELECT since, delivery FROM subscriptions WHERE id = ?", (subscription.id,))
        if not rows or rows[0][0] != subscription.since:
            return False
        return not same_delivery or rows[0][1] == subscription.delivery.to_json()

    def postpone(self, ids: Sequence[str], next_at: int) -> None:
        """Set when claimed webhooks are due."""
        for some in parts(ids):
            text = f"UPDATE webhooks SET next_at = ? WHERE state = 'waiting' AND subscription IN {places(len(some))}"
            self._transaction.run(text, (next_at, *some))

    def release_claims(self) -> None:
        """Release stale claims: webhooks without failures are due now. For stores that no other process serves."""
        text = "UPDATE webhooks SET next_at = ? WHERE state = 'waiting' AND attempts = 0 AND next_at > ?"
        self._transaction.run(text, (self._now, self._now))

    def stop_webhook(self, id: str, reason: str) -> None:
        """Stop a webhook whose receiver wants no more messages."""
        self.note_failure(id, reason)
        self._transaction.run(
            "UPDATE webhooks SET state = ?, last_error = ? WHERE subscription = ?", (STOPPED, reason, id)
        )

    def give_up(self, id: str, numbers: Sequence[int], attempts: int, reason: str) -> None:
        """Give up notifications: make them dead letters."""
        self._drop("dead_notifications", id, numbers)
        columns = "subscription", "notification", "failed_at", "attempts", "reason"
        rows = [(id, number, self._now, attempts, reason) for number in numbers]
        self._transaction.insert("dead_notifications", columns, rows)

    def redeliver(self, id: str, numbers: Sequence[int]) -> None:
        """Schedule notifications to be delivered again, and restart a stopped webhook."""
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
        """Write `size` bytes that nothing reads, to test whether the store accepts writes."""
        if size:
            self._transaction.run("DELETE FROM settings WHERE name = 'probe'")
            row = "probe", secrets.token_hex(size // 2)
            self._transaction.insert("settings", ("name", "value"), [row])

    # Inside

    def finish(self) -> None:
        """Write the heads. The last step of the transaction."""
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

    def _owned(self, owner: str) -> int:
        """How many subscriptions an owner has."""
        return int(self._transaction.rows("SELECT COUNT(*) FROM subscriptions WHERE owner = ?", (owner,))[0][0])

    def _earlier_answers(self, publications: Sequence[Publication]) -> dict[bytes, tuple[str | None, bytes | None]]:
        """The earlier answer and request hash for each key of a request or an event that came before."""
        keys = [each.key for each in publications if each.key is not None]
        keys += [event.key for each in publications for event in each.events if event.key is not None]
        rows = rows_in(self._transaction, "SELECT key, answer, request_hash FROM answers WHERE key IN", keys)
        return {bytes(key): (answer, None if hash is None else bytes(hash)) for key, answer, hash in rows}

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete subscriptions with all that belongs to them, and log it."""
        for some in parts(ids):
            marks = places(len(some))
            self._transaction.run(f"DELETE FROM subscriptions WHERE id IN {marks}", some)
            for table in ("throttles", "webhooks", "redeliveries", "dead_notifications"):
                self._transaction.run(f"DELETE FROM {table} WHERE subscription IN {marks}", some)
        self._log(GONE, ids)

    def _update(self, text: str, values: Sequence[Any], id: str) -> None:
        """Run a statement that changes one subscription. Raises UnknownIdError if it changes none."""
        if not self._transaction.run(text, values):
            raise _unknown(id)

    def _start_webhook(self, id: str, since: int) -> None:
        columns = "subscription", "acknowledged", "state", "attempts", "next_at", "last_error"
        self._transaction.insert("webhooks", columns, [(id, since, IDLE, 0, 0, None)])

    def _wake_webhooks(self, notifications: NewNotifications, deliveries: Mapping[str, StoredDelivery]) -> None:
        """Make the idle webhooks of these notifications due, after the delay of their delivery."""
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
        """Delete a subscription's rows of these notifications from a table."""
        for some in parts(numbers):
            self._transaction.run(
                f"DELETE FROM {table} WHERE subscription = ? AND notification IN {places(len(some))}", (id, *some)
            )


class _Throttles:
    """Counts, for each throttled subscription, the notifications that passed and those that were suppressed."""

    def __init__(self, transaction: Transaction, now: int, deliveries: Mapping[str, StoredDelivery]) -> None:
        self._transaction = transaction
        self._now = now
        self._deliveries = deliveries
        self._rows: dict[str, list[int]] = {}

    def add(self, notifications: NewNotifications, event: int, ids: Sequence[str]) -> None:
        """Add the notifications of an event that no throttle suppresses."""
        if self._deliveries and not self._deliveries.keys().isdisjoint(ids):
            throttles = {id: self._deliveries[id].throttle for id in ids if id in self._deliveries}
            suppressed = {id: self._pass_through(id, each) for id, each in throttles.items() if each is not None}
            ids = [id for id in ids if suppressed.get(id, 0) is not None]
            numbered = enumerate(ids, len(notifications))
            notifications.suppressed |= {place: count for place, id in numbered if (count := suppressed.get(id))}
        notifications.subscriptions += ids
        notifications.events += [event] * len(ids)

    def _pass_through(self, id: str, throttle: StoredThrottle) -> int | None:
        """Count a notification. Returns how many were suppressed before it; None if it is suppressed itself."""
        row = self._rows.get(id)
        if row is None:
            rows = self._transaction.rows(
                "SELECT began_at, passed, suppressed FROM throttles WHERE subscription = ?", (id,)
            )
            row = self._rows[id] = list(rows[0]) if rows else [self._now, 0, 0]
        if self._now - row[0] >= throttle.seconds * 1e6:
            row[0], row[1] = self._now, 0
        if row[1] >= throttle.count:
            row[2] += 1
            return None
        row[1] += 1
        suppressed, row[2] = row[2], 0
        return suppressed

    def save(self) -> None:
        for id, row in self._rows.items():
            self._transaction.run("DELETE FROM throttles WHERE subscription = ?", (id,))
            self._transaction.insert("throttles", ("subscription", "began_at", "passed", "suppressed"), [(id, *row)])


def _unknown(id: str) -> UnknownIdError:
    return UnknownIdError(f"there is no subscription {id!r:.80}")
