"""The engine of a server: loaded from its snapshot, updated from the change log, and saved from time to time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from harken.engine import Engine
from harken.errors import ExtensionError, HarkenError
from harken.live.changes import Change
from harken.live.loading import Checked
from harken.live.subscriptions import Fault
from harken.schema import Schema
from harken.schema.extensions import Extension, extensions_between
from harken.schema.schema_files import parse_schema
from harken.server.expiry import Expiry
from harken.server.settings import ServerSettings
from harken.server.snapshots import SavedSnapshot
from harken.store import Store, StoredChange, StoredDelivery, StoredSubscription
from harken.store.stored import RENEWED, SCHEMA

log = logging.getLogger(__name__)
_AT_ONCE = 50_000
_SAVE_SHARE = 20
"""Saving takes at most 1/_SAVE_SHARE of the time."""


class ServedIndex:
    """The engine with the subscriptions of a store. Once it is open, only the committing thread changes it."""

    def __init__(
        self, store: Store, settings: ServerSettings, removed: Callable[[str], None] = lambda id: None
    ) -> None:
        """`removed` is called in the committing thread with the id of each removed subscription."""
        self._store = store
        self._removed = removed
        self._settings = settings
        self._snapshot = SavedSnapshot(store, settings)
        self.engine = Engine(operators=settings.operators)
        self.deliveries: dict[str, StoredDelivery] = {}
        """The deliveries that are not the default, by subscription."""
        self.expiry = Expiry(store)
        self._saved_sequence = 0
        """The last change in the snapshot; 0 without one."""
        self._saved_at = 0.0
        self._save_seconds = 0.0
        self._saving = threading.Lock()
        self._has_faults = False

    # Opening

    def open(self) -> None:
        """Load the snapshot, or build the index from the store, and apply the changes since."""
        engine = self._snapshot.load()
        if engine is None:
            self._build()
        else:
            self.engine = engine
            self._saved_sequence = self.sequence
        self.deliveries = self._store.deliveries()
        self.follow()
        self.expiry.look_ahead(time.time_ns() // 1_000)

    def _build(self) -> None:
        """Build a new engine from all subscriptions of the store, and replace the old one once it is complete."""
        schema = self._store.schema()
        engine = self._empty(None if schema is None else parse_schema(schema[1]))
        with self._store.all_subscriptions() as (sequence, subscriptions):
            waiting: list[StoredSubscription] = []
            for each in subscriptions:
                waiting.append(each)
                if len(waiting) == _AT_ONCE:
                    self._add(engine, waiting)
                    waiting = []
            self._add(engine, waiting)
        _set_sequence(engine, sequence)
        self.engine = engine

    def _add(self, engine: Engine, subscriptions: Sequence[StoredSubscription]) -> None:
        report = engine.subscribe_many([each.record() for each in subscriptions])
        self._log_faults(report.faults)

    def _log_faults(self, faults: Sequence[Fault]) -> None:
        """Log subscriptions that cannot be indexed. The index is not saved without them, so the next start retries."""
        self._has_faults = self._has_faults or bool(faults)
        for fault in faults:
            log.error("the subscription %r cannot be indexed: %s", fault.id, fault.error)

    def _empty(self, schema: Schema | None) -> Engine:
        return Engine(schema, operators=self._settings.operators)

    # Changing

    @property
    def sequence(self) -> int:
        """The last change that the engine has."""
        return self.engine.sequence or 0

    def apply(self, changes: Sequence[StoredChange], checked: Mapping[str, Checked] | None = None) -> list[Fault]:
        """Apply changes that this process has just logged, and those of other processes before them."""
        if not changes or changes[0].sequence != self.sequence + 1:
            return self.follow(checked)
        return self._apply(changes, checked)

    def follow(self, checked: Mapping[str, Checked] | None = None) -> list[Fault]:
        """Apply all new changes of the log."""
        faults: list[Fault] = []
        while True:
            changes = self._store.changes(self.sequence)
            if changes is None:
                log.warning("the log does not reach back to change %s: the index is rebuilt", self.sequence)
                self._build()
                self.deliveries = self._store.deliveries()
                continue
            if not changes:
                return faults
            faults += self._apply(changes, checked)

    def _apply(self, changes: Sequence[StoredChange], checked: Mapping[str, Checked] | None) -> list[Fault]:
        if any(each.kind == SCHEMA for each in changes):
            self._update_schema()
        for each in changes:
            if each.kind == SCHEMA:
                continue
            subscription = each.subscription
            if subscription is None:
                self.expiry.forget(each.id)
                self.deliveries.pop(each.id, None)
                self._removed(each.id)
                continue
            self.expiry.note(subscription)
            if each.kind == RENEWED:
                continue  # its other fields may be older than those of an earlier change
            if subscription.delivery.is_default:
                self.deliveries.pop(each.id, None)
            else:
                self.deliveries[each.id] = subscription.delivery
        engine_changes = [
            Change(each.sequence, each.id, None if each.subscription is None else each.subscription.record())
            for each in changes
            if each.kind not in (SCHEMA, RENEWED)
        ]
        last = changes[-1].sequence
        if not engine_changes or engine_changes[-1].sequence < last:
            engine_changes.append(Change(last, "", None))  # no subscription has this id: it only sets the sequence
        report = self.engine.apply(engine_changes, checked)
        # The caller removes its own new subscriptions again if they have faults.
        self._log_faults([each for each in report.faults if not checked or each.id not in checked])
        return report.faults

    # The schema

    def extended(self, extension: Extension) -> Schema:
        """The schema with an extension, without applying it. Raises SchemaError, and ExtensionError on a conflict."""
        current = self.engine.schema
        if current is None:
            if len(self.engine):
                hint = "start the server on a new store with --schema FILE"
                raise ExtensionError("this server has subscriptions but no schema: it is too late for one", hint=hint)
            current = Schema()
        return current.extend(extension)

    def _update_schema(self) -> None:
        """Apply the latest version of the schema."""
        stored = self._store.schema()
        assert stored is not None, "a version was logged"
        latest, current = parse_schema(stored[1]), self.engine.schema
        if current is None:
            sequence = self.sequence
            engine = self._empty(latest)
            self._log_faults(engine.subscribe_many([each.record() for each in self.engine]).faults)
            _set_sequence(engine, sequence)
            self.engine = engine
        elif latest.version > current.version:
            self.engine.extend_schema(*extensions_between(current, latest))

    # Saving

    def save_if_due(self) -> None:
        """Save the index after `snapshot_changes` changes, unless that would take too large a share of the time."""
        unsaved = self.sequence - self._saved_sequence
        has_time = time.monotonic() - self._saved_at > _SAVE_SHARE * self._save_seconds
        if unsaved >= self._settings.snapshot_changes and has_time:
            self.save()

    def save(self) -> None:
        """Save the index, if it has unsaved changes. A failure is only logged: the store has all subscriptions."""
        with self._saving:
            sequence = self.sequence
            if sequence == self._saved_sequence or self._has_faults:
                return
            began = time.monotonic()
            try:
                self._snapshot.save(self.engine, sequence)
                self._saved_sequence = sequence
            except (HarkenError, OSError) as error:
                log.warning("the index cannot be saved: %s", error)
            self._saved_at = time.monotonic()
            self._save_seconds = self._saved_at - began


def _set_sequence(engine: Engine, sequence: int) -> None:
    """Record in the engine that it has all changes up to this one."""
    if sequence:
        engine.apply([Change(sequence, "", None)])
