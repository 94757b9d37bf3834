"""The tables of the store, and the migration of stores of earlier Harkens: numbered steps, each applied once."""

from __future__ import annotations

import secrets

from harken.errors import StoreError
from harken.store.database import StoreDatabase, Transaction

_FIRST = """
CREATE TABLE heads (name {text} PRIMARY KEY, value {integer} NOT NULL){by_key};
INSERT INTO heads (name, value) VALUES ('change', 0), ('event', 0), ('notification', 0), ('event_bytes', 0);
CREATE TABLE settings (name {text} PRIMARY KEY, value {text} NOT NULL){by_key};

CREATE TABLE subscriptions (
    id {text} PRIMARY KEY,
    condition {text} NOT NULL,
    language {text} NOT NULL,
    owner {text},
    labels {text},
    delivery {text},
    ticket {blob} NOT NULL,
    created_at {integer} NOT NULL,
    expires_at {integer} NOT NULL,
    since {integer} NOT NULL
){by_key};
CREATE INDEX subscriptions_by_owner ON subscriptions (owner, id);
CREATE INDEX subscriptions_by_expiry ON subscriptions (expires_at);
CREATE INDEX subscriptions_by_ticket ON subscriptions (ticket);
CREATE INDEX subscriptions_delivered ON subscriptions (id) WHERE delivery IS NOT NULL;
CREATE TABLE changes (
    sequence {integer} PRIMARY KEY,
    kind {text} NOT NULL,
    id {text} NOT NULL,
    origin {text} NOT NULL,
    time {integer} NOT NULL
);
CREATE TABLE schemas (version {integer} PRIMARY KEY, text {text} NOT NULL, time {integer} NOT NULL);

CREATE TABLE events (
    number {integer} PRIMARY KEY,
    time {integer} NOT NULL,
    kind {text} NOT NULL,
    body {blob} NOT NULL
);
CREATE TABLE notifications (
    lane {integer} NOT NULL,
    last {integer} NOT NULL,
    base {integer} NOT NULL,
    event {integer} NOT NULL,
    last_event {integer} NOT NULL,
    time {integer} NOT NULL,
    entries {blob} NOT NULL,
    subscriptions {blob} NOT NULL,
    PRIMARY KEY (lane, last)
){by_key};
CREATE TABLE answers (key {blob} PRIMARY KEY, answer {text}, time {integer} NOT NULL){by_key};
CREATE INDEX answers_by_time ON answers (time);

CREATE TABLE throttles (
    subscription {text} PRIMARY KEY,
    began_at {integer} NOT NULL,
    passed {integer} NOT NULL,
    suppressed {integer} NOT NULL
){by_key};
CREATE TABLE webhooks (
    subscription {text} PRIMARY KEY,
    acknowledged {integer} NOT NULL,
    state {text} NOT NULL,
    attempts {integer} NOT NULL,
    next_at {integer} NOT NULL,
    last_error {text}
){by_key};
CREATE INDEX webhooks_due ON webhooks (next_at) WHERE state = 'waiting';
CREATE TABLE redeliveries (
    subscription {text} NOT NULL,
    notification {integer} NOT NULL,
    PRIMARY KEY (subscription, notification)
){by_key};
CREATE TABLE dead_notifications (
    subscription {text} NOT NULL,
    notification {integer} NOT NULL,
    failed_at {integer} NOT NULL,
    attempts {integer} NOT NULL,
    reason {text} NOT NULL,
    PRIMARY KEY (subscription, notification)
){by_key};
CREATE TABLE api_keys (
    id {text} PRIMARY KEY,
    hash {blob} NOT NULL UNIQUE,
    owner {text} NOT NULL,
    scopes {text} NOT NULL,
    name {text},
    created_at {integer} NOT NULL
){by_key};
"""
_SECOND = """
ALTER TABLE subscriptions ADD COLUMN valid_for {integer};
ALTER TABLE answers ADD COLUMN request_hash {blob};
ALTER TABLE webhooks ADD COLUMN failures {integer} NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since {integer};
UPDATE webhooks SET failures = attempts;
"""
STEPS = (_FIRST, _SECOND)
"""To change the tables, add a step. Never change a step that was released."""


def migrate(database: StoreDatabase, *, create: bool = True) -> None:
    """Create the tables or bring them up to date.

    Raises StoreError for a store of a later Harken, and if there are no tables and `create` is False.
    """
    with database.reading() as reading:
        version = _version(reading, database)
    if version == len(STEPS):
        return
    if version is None and not create:
        raise StoreError("there is no store in this database")
    with database.migrating() as transaction:
        version = _version(transaction, database)  # another process may have been faster
        if version is None:
            transaction.run(database.filled("CREATE TABLE layout (version {integer} NOT NULL)"))
            transaction.run("INSERT INTO layout (version) VALUES (0)")
        for step in STEPS[version or 0 :]:
            for statement in _statements(database.filled(step)):
                transaction.run(statement)
        if version is None:
            _insert_settings(transaction)
        transaction.run("UPDATE layout SET version = ?", (len(STEPS),))


def _version(transaction: Transaction, database: StoreDatabase) -> int | None:
    """The version of a store's layout; None without a store. Raises StoreError for a version of a later Harken."""
    if not transaction.rows(database.layout):
        return None
    version = int(transaction.rows("SELECT version FROM layout")[0][0])
    if version > len(STEPS):
        raise StoreError(
            f"the store has layout {version}, and this Harken knows {len(STEPS)}", hint="use the later Harken"
        )
    return version


def _insert_settings(transaction: Transaction) -> None:
    """Give a new store a random name, and a secret to sign tokens with."""
    for name in ("store", "token_secret"):
        transaction.run("INSERT INTO settings (name, value) VALUES (?, ?)", (name, secrets.token_hex(32)))


def _statements(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]
