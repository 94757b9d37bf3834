"""The store of a server: its queries, and the transactions that change it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from harken.errors import StoreError
from harken.store.database import StoreDatabase, Transaction, fitting, parts, places, rows_in
from harken.store.outbox import event_of, read_after, read_at
from harken.store.sealing import Sealing
from harken.store.stored import (
    GONE,
    SCHEMA,
    SUBSCRIPTION_COLUMNS,
    ApiKey,
    DeadNotification,
    Due,
    JournalledEvent,
    Notified,
    Page,
    StoredChange,
    StoredSubscription,
    WebhookState,
)
from harken.store.stored_delivery import StoredDelivery
from harken.store.writing import Writing

_COLUMNS = ", ".join(f"s.{name}" for name in SUBSCRIPTION_COLUMNS)
_WEBHOOK_COLUMNS = "subscription, acknowledged, state, attempts, next_at, last_error, failures, failing_since"
_LENGTH = "length(s.condition) + length(COALESCE(s.labels, ''))"
"""Characters of the columns of a subscription that can be long."""


def microseconds() -> int:
    """The current time in microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


class Store:
    """Subscriptions, change log, journal and outbox. Threads may share it."""

    def __init__(self, database: StoreDatabase, *, is_shared: bool, sealing: Sealing | None = None) -> None:
        self.database = database
        self.sealing = sealing or Sealing()
        """Encrypts the secrets of webhooks. The store returns them encrypted: open one only where it is used."""
        self.is_shared = is_shared
        """Whether other processes may change the store, too."""
        self.origin = secrets.token_hex(8)
        """The random name of this process in the change log."""
        self._settings = self._read_settings()

    def close(self) -> None:
        self.database.close()

    @contextmanager
    def writing(self, now: int | None = None) -> Iterator[Writing]:
        """A write transaction, committed to disk when the block ends. Raises StoreError."""
        with self.database.writing() as transaction:
            writing = Writing(transaction, self.origin, microseconds() if now is None else now)
            yield writing
            writing.finish()

    @property
    def name(self) -> str:
        """The random name of the store, which no other store has."""
        return self._settings["store"]

    @property
    def source(self) -> str:
        """The `source` of CloudEvents with notifications of this store, in which their numbers are unique."""
        return f"/stores/{self.name[:32]}/subscriptions"

    @property
    def token_secret(self) -> bytes:
        return bytes.fromhex(self.sealing.opened(self._settings["token_secret"]))

    def seal_secrets(self) -> int:
        """Encrypt with the first key all secrets that are in clear or encrypted with another key. Returns how many.

        Raises StoreError if the keys do not decrypt the secrets of the store.
        """
        sealing, token = self.sealing, self._settings["token_secret"]
        sealing.opened(token)
        if not sealing.prefix:
            return 0
        with self.database.reading() as reading:
            is_sealed = reading.contains("delivery")
            text = f"SELECT id, delivery FROM subscriptions WHERE delivery IS NOT NULL AND NOT ({is_sealed})"
            rows = reading.rows(text, (f'"secret": "{sealing.prefix}',))
        parsed = [(id, text, StoredDelivery.from_json(text)) for id, text in rows]
        stale = [(id, text, delivery) for id, text, delivery in parsed if delivery.secret]
        if not stale and sealing.sealed(token) == token:
            return 0
        with self.database.erasing() as transaction:
            transaction.run("UPDATE settings SET value = ? WHERE name = 'token_secret'", (sealing.sealed(token),))
            for id, text, delivery in stale:
                sealed = replace(delivery, secret=sealing.sealed(delivery.secret or "")).to_json()
                # A process that changed the delivery meanwhile has sealed its secret: leave that one.
                update = "UPDATE subscriptions SET delivery = ? WHERE id = ? AND delivery = ?"
                transaction.run(update, (sealed, id, text))
        return len(stale)

    # Subscriptions

    def subscription(self, id: str) -> StoredSubscription | None:
        return next(iter(self.subscriptions_of([id])), None)

    def subscriptions_of(self, ids: Sequence[str]) -> list[StoredSubscription]:
        """The subscriptions of these ids. Unknown ids are left out."""
        text = f"SELECT {_COLUMNS} FROM subscriptions s WHERE s.id IN"
        with self.database.reading() as transaction:
            return [StoredSubscription.of_row(row) for row in rows_in(transaction, text, ids)]

    def listed(
        self, after: str, limit: int, *, owner: str | None = None, language: str | None = None
    ) -> list[StoredSubscription]:
        """Subscriptions in the order of their ids."""
        return self.listed_page(after, limit, owner=owner, language=language)[0]

    def listed_page(
        self,
        after: str,
        limit: int,
        *,
        owner: str | None = None,
        language: str | None = None,
        most_length: int | None = None,
    ) -> tuple[list[StoredSubscription], str | None]:
        """A page of subscriptions in the order of their ids, and the id after which there may be others.

        The page has fewer than `limit` if their texts have more than `most_length` characters together, but at least
        one.
        """
        columns = {"s.owner": owner, "s.language": language}
        filters = {name: value for name, value in columns.items() if value is not None}
        where = "".join(f" AND {name} = ?" for name in filters)
        rest = f"FROM subscriptions s WHERE s.id > ?{where} ORDER BY s.id LIMIT ?"
        values = after, *filters.values()
        with self.database.reading() as transaction:
            if most_length is not None:
                lengths = [row[0] for row in transaction.rows(f"SELECT {_LENGTH} {rest}", (*values, limit))]
                if len(lengths) > (count := fitting(lengths, most_length)):
                    limit = count
            rows = transaction.rows(f"SELECT {_COLUMNS} {rest}", (*values, limit))
        has_more = bool(rows) and len(rows) == limit
        return [StoredSubscription.of_row(row) for row in rows], rows[-1][0] if has_more else None

    def owned(self, owner: str) -> int:
        """How many subscriptions an owner has."""
        return self._integer("SELECT COUNT(*) FROM subscriptions WHERE owner = ?", (owner,))

    def expiring(self, before: int, limit: int) -> list[tuple[str, int]]:
        """(id, time) of the first `limit` subscriptions that expire before a time."""
        text = "SELECT id, expires_at FROM subscriptions WHERE expires_at < ? ORDER BY expires_at LIMIT ?"
        with self.database.reading() as transaction:
            return [(row[0], row[1]) for row in transaction.rows(text, (before, limit))]

    def last_expiry(self, now: int) -> int:
        """The latest expiry among the expired subscriptions that are not removed yet; 0 if there are none."""
        return self._integer("SELECT COALESCE(MAX(expires_at), 0) FROM subscriptions WHERE expires_at <= ?", (now,))

    def deliveries(self) -> dict[str, StoredDelivery]:
        """The deliveries that are not the default, by subscription."""
        text = "SELECT id, delivery FROM subscriptions WHERE delivery IS NOT NULL"
        with self.database.reading() as transaction:
            return {id: StoredDelivery.from_json(delivery) for id, delivery in transaction.stream(text)}

    # The change log

    @property
    def sequence(self) -> int:
        """The number of the last change."""
        return self._integer("SELECT value FROM heads WHERE name = 'change'")

    def origin_of(self, sequence: int) -> str | None:
        """The unique name of the process that made a change; None if the log does not reach back to it."""
        with self.database.reading() as transaction:
            rows = transaction.rows("SELECT origin FROM changes WHERE sequence = ?", (sequence,))
        return str(rows[0][0]) if rows else None

    def changes(self, after: int, limit: int = 10_000) -> list[StoredChange] | None:
        """The changes after one, in their order, each with the current state of its subscription.

        None if the log does not reach back so far: read `all_subscriptions` then.
        """
        text = (
            f"SELECT c.sequence, c.kind, c.id, {_COLUMNS} FROM changes c "
            "LEFT JOIN subscriptions s ON s.id = c.id AND c.kind <> ? AND c.kind <> ? "
            "WHERE c.sequence > ? ORDER BY c.sequence LIMIT ?"
        )
        with self.database.reading() as transaction:
            head = transaction.rows("SELECT value FROM heads WHERE name = 'change'")[0][0]
            rows = transaction.rows(text, (GONE, SCHEMA, after, limit))
        if after > head or (after < head and (not rows or rows[0][0] != after + 1)):
            return None
        subscriptions = [None if row[3] is None else StoredSubscription.of_row(row[3:]) for row in rows]
        return [StoredChange(row[0], row[1], row[2], each) for row, each in zip(rows, subscriptions, strict=True)]

    @contextmanager
    def all_subscriptions(self) -> Iterator[tuple[int, Iterator[StoredSubscription]]]:
        """The number of the last change, and all subscriptions as of that change."""
        with self.database.reading() as transaction:
            head = transaction.rows("SELECT value FROM heads WHERE name = 'change'")[0][0]
            rows = transaction.stream(f"SELECT {_COLUMNS} FROM subscriptions s")
            yield head, map(StoredSubscription.of_row, rows)

    def schema(self) -> tuple[int, str] | None:
        """The latest version of the schema, and its text; None if there is none."""
        with self.database.reading() as transaction:
            rows = transaction.rows("SELECT version, text FROM schemas ORDER BY version DESC LIMIT 1")
        return (rows[0][0], rows[0][1]) if rows else None

    # Events and notifications

    def latest_events(self, count: int, before: int | None = None) -> list[JournalledEvent]:
        """The newest `count` events of the journal, or of those before a number; the oldest first."""
        where, values = ("", ()) if before is None else ("WHERE number < ? ", (before,))
        text = f"SELECT number, time, kind, body FROM events {where}ORDER BY number DESC LIMIT ?"
        with self.database.reading() as transaction:
            return [event_of(row) for row in reversed(transaction.rows(text, (*values, count)))]

    def latest_sizes(self, count: int) -> list[tuple[int, int]]:
        """(number, bytes) of the newest `count` events of the journal, the newest first."""
        text = "SELECT number, length(body) FROM events ORDER BY number DESC LIMIT ?"
        with self.database.reading() as transaction:
            return [(row[0], row[1]) for row in transaction.rows(text, (count,))]

    @property
    def last_notification(self) -> int:
        return self._integer("SELECT value FROM heads WHERE name = 'notification'")

    def notifications(self, since: Mapping[str, int], after: int, limit: int) -> list[Notified]:
        """Notifications of subscriptions, in their order, each after `after` and after its subscription's `since`."""
        return self.notifications_page(since, after, limit).notified

    def notifications_page(
        self, since: Mapping[str, int], after: int, limit: int, most_bytes: int | None = None
    ) -> Page:
        """A page of these notifications, which ends early, after at least one, if their events exceed `most_bytes`."""
        with self.database.reading() as transaction:
            head = int(transaction.rows("SELECT value FROM heads WHERE name = 'notification'")[0][0])
            begin = {id: max(first, after) for id, first in since.items()}
            notified, has_more = read_after(transaction, begin, limit, most_bytes)
        return Page(notified, notified[-1].number if has_more else max(head, after), has_more)

    def notifications_of(self, id: str, numbers: Sequence[int]) -> list[Notified]:
        """The notifications of a subscription that have these numbers."""
        with self.database.reading() as transaction:
            return read_at(transaction, id, numbers)

    # Webhooks

    def claim(self, now: int, until: int, limit: int) -> list[WebhookState]:
        """Claim webhooks that are due: no other process gets them until `until`."""
        text = (
            f"SELECT {_WEBHOOK_COLUMNS} FROM webhooks "
            f"WHERE state = 'waiting' AND next_at <= ? ORDER BY next_at LIMIT ?{self.database.claims}"
        )
        with self.database.writing() as transaction:
            states = [WebhookState(*row) for row in transaction.rows(text, (now, limit))]
            ids = [each.subscription for each in states]
            for some in parts(ids):
                marks = places(len(some))
                transaction.run(f"UPDATE webhooks SET next_at = ? WHERE subscription IN {marks}", (until, *some))
            owners: dict[str, str] = dict(rows_in(transaction, "SELECT id, owner FROM subscriptions WHERE id IN", ids))
        return [replace(each, owner=owners.get(each.subscription)) for each in states]

    def next_webhook(self) -> int | None:
        """When the next webhook is due; None if none waits."""
        with self.database.reading() as transaction:
            ((next_at,),) = transaction.rows("SELECT MIN(next_at) FROM webhooks WHERE state = 'waiting'")
        return None if next_at is None else int(next_at)

    def webhook(self, id: str) -> tuple[WebhookState, int] | None:
        """The state of a subscription's webhook, and the number of its dead letters; None without a webhook."""
        text = f"SELECT {_WEBHOOK_COLUMNS} FROM webhooks WHERE subscription = ?"
        with self.database.reading() as transaction:
            rows = transaction.rows(text, (id,))
            dead = transaction.rows("SELECT COUNT(*) FROM dead_notifications WHERE subscription = ?", (id,))
        return (WebhookState(*rows[0]), int(dead[0][0])) if rows else None

    def next_delivery(self, id: str, most: int, most_bytes: int | None = None) -> Due | None:
        """The next notifications for the webhook of a subscription; None without a webhook.

        There is one, or up to `most` if the delivery has a delay. There are fewer if their events have more than
        `most_bytes` together, but at least one.
        """
        text = (
            f"SELECT w.acknowledged, w.failing_since, {_COLUMNS} FROM webhooks w "
            "JOIN subscriptions s ON s.id = w.subscription WHERE w.subscription = ?"
        )
        with self.database.reading() as transaction:
            rows = transaction.rows(text, (id,))
            if not rows:
                return None
            acknowledged, failing_since = rows[0][:2]
            subscription = StoredSubscription.of_row(rows[0][2:])
            if subscription.delivery.url is None:
                return None
            limit = most if subscription.delivery.max_delay else 1
            requested = _redeliveries(transaction, id, limit, most_bytes)
            batch = [each for each in requested if each.number > subscription.since]
            if batch:
                return Due(subscription, acknowledged, batch, is_redelivery=True, failing_since=failing_since)
            batch, is_full = read_after(transaction, {id: acknowledged}, limit, most_bytes)
            return Due(
                subscription, acknowledged, batch, is_redelivery=False, is_full=is_full, failing_since=failing_since
            )

    def redeliveries(self, id: str, limit: int) -> list[Notified]:
        """Notifications that wait to be delivered again because the subscriber requested it."""
        with self.database.reading() as transaction:
            return _redeliveries(transaction, id, limit)

    def dead_notifications(self, id: str, after: int, limit: int) -> list[DeadNotification]:
        """The dead letters of a subscription, in their order."""
        return self.dead_page(id, after, limit)[0]

    def dead_page(
        self, id: str, after: int, limit: int, most_bytes: int | None = None
    ) -> tuple[list[DeadNotification], int | None]:
        """A page of dead letters, and the cursor of the next page, if there may be one.

        The page has fewer than `limit` if their events have more than `most_bytes` together, but at least one.
        """
        text = (
            "SELECT notification, failed_at, attempts, reason FROM dead_notifications "
            "WHERE subscription = ? AND notification > ? ORDER BY notification LIMIT ?"
        )
        with self.database.reading() as transaction:
            dead = {row[0]: row[1:] for row in transaction.rows(text, (id, after, limit))}
            notified = read_at(transaction, id, list(dead), most_bytes)
        has_more = bool(notified) and (len(dead) == limit or notified[-1].number < max(dead))
        page = [DeadNotification(each, *dead[each.number]) for each in notified]
        return page, notified[-1].number if has_more else None

    # Keys

    def key(self, hashed: bytes) -> ApiKey | None:
        """The API key with this SHA-256; None if there is none."""
        return next(iter(self._keys("WHERE hash = ?", (hashed,))), None)

    def existing_keys(self, ids: Collection[str]) -> set[str]:
        """The ids of API keys that still exist, of those given."""
        with self.database.reading() as transaction:
            return {row[0] for row in rows_in(transaction, "SELECT id FROM api_keys WHERE id IN", list(ids))}

    def keys(self) -> list[ApiKey]:
        return self._keys("ORDER BY created_at, id", ())

    # Sizes

    def sizes(self) -> dict[str, int]:
        """Numbers of rows and bytes, by what they count."""
        with self.database.reading() as transaction:
            heads: dict[str, int] = dict(transaction.rows("SELECT name, value FROM heads"))
            first = transaction.rows("SELECT number FROM events ORDER BY number LIMIT 1")
            dead = transaction.rows("SELECT COUNT(*) FROM dead_notifications")[0][0]
            waiting = transaction.rows("SELECT COUNT(*) FROM webhooks WHERE state = 'waiting'")[0][0]
        events = heads["event"] - first[0][0] + 1 if first else 0
        return {
            "journal_events": events,
            "journal_bytes": heads["event_bytes"],
            "sequence": heads["change"],
            "dead_notifications": dead,
            "webhooks_waiting": waiting,
        }

    # Inside

    def _read_settings(self) -> dict[str, str]:
        with self.database.reading() as transaction:
            settings: dict[str, str] = dict(transaction.rows("SELECT name, value FROM settings"))
        if "store" not in settings:
            raise StoreError("the store has lost its name")
        return settings

    def _integer(self, text: str, values: Sequence[object] = ()) -> int:
        """The only value that a query returns."""
        with self.database.reading() as transaction:
            return int(transaction.rows(text, values)[0][0])

    def _keys(self, rest: str, values: Sequence[object]) -> list[ApiKey]:
        text = f"SELECT id, owner, scopes, name, created_at FROM api_keys {rest}"
        with self.database.reading() as transaction:
            rows = transaction.rows(text, values)
        return [ApiKey(id, owner, frozenset(scopes.split()), name, at) for id, owner, scopes, name, at in rows]


def _redeliveries(transaction: Transaction, id: str, limit: int, most_bytes: int | None = None) -> list[Notified]:
    text = "SELECT notification FROM redeliveries WHERE subscription = ? ORDER BY notification LIMIT ?"
    return read_at(transaction, id, [row[0] for row in transaction.rows(text, (id, limit))], most_bytes)


__all__ = ["Store", "Transaction", "microseconds"]
