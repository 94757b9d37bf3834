"""The engine of a server: opened from its snapshot, kept in step with the change log, and saved now and then."""

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
_QUIET = 20
"""Save at most so often that a twentieth of the time goes into it."""


class ServedIndex:
    """Subscriptions as the matcher finds them. Only the committing thread changes it, once it is open."""

    def __init__(self, store: Store, settings: ServerSettings, left: Callable[[str], None] = lambda id: None) -> None:
        """`left` is told, in the committing thread, of subscriptions that are gone."""
        self._store = store
        self._left = left
        self._settings = settings
        self._snapshot = SavedSnapshot(store, settings)
        self.engine = Engine(operators=settings.operators)
        self.deliveries: dict[str, StoredDelivery] = {}
        """The subscriptions that want more than to be asked."""
        self.expiry = Expiry(store)
        self._saved_sequence = 0
        """The last change that was saved: what has none need not be."""
        self._saved_at = 0.0
        self._save_seconds = 0.0
        self._saving = threading.Lock()
        self._has_faults = False

    # Opening

    def open(self) -> None:
        """Load the snapshot, or begin anew, and make the changes since."""
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
        """Take all subscriptions from the store. Until that is done, others see the engine as it was."""
        schema = self._store.schema()
        engine = self._empty(None if schema is None else parse_schema(schema[1]))
        with self._store.everything() as (sequence, subscriptions):
            waiting: list[StoredSubscription] = []
            for each in subscriptions:
                waiting.append(each)
                if len(waiting) == _AT_ONCE:
                    self._take(engine, waiting)
                    waiting = []
            self._take(engine, waiting)
        _take_sequence(engine, sequence)
        self.engine = engine

    def _take(self, engine: Engine, subscriptions: Sequence[StoredSubscription]) -> None:
        report = engine.subscribe_many([each.record() for each in subscriptions])
        self._tell(report.faults)

    def _tell(self, faults: Sequence[Fault]) -> None:
        """Log what the index does not have. It is tried again at the next start: the index is not saved without it."""
        self._has_faults = self._has_faults or bool(faults)
        for fault in faults:
            log.error("the subscription %r cannot be indexed: %s", fault.id, fault.error)

    def _empty(self, schema: Schema | None) -> Engine:
        return Engine(schema, operators=self._settings.operators)

    # Changing

    @property
    def sequence(self) -> int:
        """The last change that the engine knows."""
        return self.engine.sequence or 0

    def apply(self, changes: Sequence[StoredChange], checked: Mapping[str, Checked] | None = None) -> list[Fault]:
        """Make changes that were just logged by this process, and those of others in between."""
        if not changes or changes[0].sequence != self.sequence + 1:
            return self.follow(checked)
        return self._make(changes, checked)

    def follow(self, checked: Mapping[str, Checked] | None = None) -> list[Fault]:
        """Make all changes of the log that are new."""
        faults: list[Fault] = []
        while True:
            changes = self._store.changes(self.sequence)
            if changes is None:
                log.warning("the log does not reach back to change %s: the index is built anew", self.sequence)
                self._build()
                self.deliveries = self._store.deliveries()
                continue
            if not changes:
                return faults
            faults += self._make(changes, checked)

    def _make(self, changes: Sequence[StoredChange], checked: Mapping[str, Checked] | None) -> list[Fault]:
        if any(each.kind == SCHEMA for each in changes):
            self._take_schema()
        for each in changes:
            if each.kind == SCHEMA:
                continue
            known = each.subscription
            if known is None:
                self.expiry.forget(each.id)
                self.deliveries.pop(each.id, None)
                self._left(each.id)
                continue
            self.expiry.note(known)
            if each.kind == RENEWED:
                continue  # what else it says may be older than a change that came before it
            if known.delivery.is_default:
                self.deliveries.pop(each.id, None)
            else:
                self.deliveries[each.id] = known.delivery
        made = [
            Change(each.sequence, each.id, None if each.subscription is None else each.subscription.record())
            for each in changes
            if each.kind not in (SCHEMA, RENEWED)
        ]
        last = changes[-1].sequence
        if not made or made[-1].sequence < last:
            made.append(Change(last, "", None))  # nobody has this id: it only says how far the log is known
        report = self.engine.apply(made, checked)
        self._tell([each for each in report.faults if not checked or each.id not in checked])  # those are taken back
        return report.faults

    # The schema

    def extended(self, extension: Extension) -> Schema:
        """The schema with an extension, which is not in force yet. Raises SchemaError; ExtensionError on a conflict."""
        known = self.engine.schema
        if known is None:
            if len(self.engine):
                hint = "start the server on a new store with --schema FILE"
                raise ExtensionError("this server has subscriptions and no schema, so that none can begin", hint=hint)
            known = Schema()
        return known.extend(extension)

    def _take_schema(self) -> None:
        """Go by the latest version of the schema."""
        stored = self._store.schema()
        assert stored is not None, "a version was logged"
        schema, known = parse_schema(stored[1]), self.engine.schema
        if known is None:
            sequence = self.sequence
            engine = self._empty(schema)
            self._tell(engine.subscribe_many([each.record() for each in self.engine]).faults)
            _take_sequence(engine, sequence)
            self.engine = engine
        elif schema.version > known.version:
            self.engine.extend_schema(*extensions_between(known, schema))

    # Saving

    def save_if_due(self) -> None:
        """Save the index if many changes were made since, and it was not saved a moment ago."""
        behind = self.sequence - self._saved_sequence
        rested = time.monotonic() - self._saved_at > _QUIET * self._save_seconds
        if behind >= self._settings.snapshot_changes and rested:
            self.save()

    def save(self) -> None:
        """Save the index, if anything changed. A failure is logged: the store has everything."""
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


def _take_sequence(engine: Engine, sequence: int) -> None:
    """Have the engine know that it has all changes up to this one."""
    if sequence:
        engine.apply([Change(sequence, "", None)])
