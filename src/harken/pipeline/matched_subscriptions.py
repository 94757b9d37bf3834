"""The subscriptions of a pipeline: the current version of their index, and the next one when their source changes.

A change turns the last version into the next: only what is new, changed or gone is parsed and indexed. A change that
is refused is reported once, and the last good version stays current.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harken.engine import Engine
from harken.errors import HarkenError, MismatchError, SegmentError, SubscriptionError
from harken.live.changes import changes_between
from harken.live.mismatch import FAIL, IGNORE, NO_MISMATCHES, Mismatches, tell
from harken.live.subscriptions import Fault, Record
from harken.pipeline.reports import RefreshReport
from harken.pipeline.subscription_source import Polled, polled, subscription_source
from harken.schema import EventColumns, Schema
from harken.spark.building import SubscriptionFault, build
from harken.spark.index_versions import Index, IndexVersion
from harken.spark.mismatches import mismatches_of
from harken.spark.plugged import plugged
from harken.spark.session_facts import scratch
from harken.versions.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config

_MANY = 50_000
"""From this many subscriptions on, Spark builds an index with all its cores."""
_REBUILD_SHARE = 4
_FEW = 1_000
"""Rebuild the index once more than 1/_REBUILD_SHARE of the subscriptions changed, and more than this many."""
_SHOWN = 20


class Subscriptions:
    """The subscriptions that a pipeline matches events with, checked against the columns of the events once known."""

    def __init__(self, config: Config, spark: SparkSession, events: EventColumns | None = None) -> None:
        own = config.subscriptions
        self._spark = spark
        self._schema: Schema | None = config.load_schema()
        self._skips = own.on_fault == "skip"
        self._events = events
        self._on_mismatch = config.match.on_mismatch
        self._source = None if own.index is not None else subscription_source(own, spark)
        self._plugs = plugged(config.match.operators, config.match.order)
        self._index = Index(own.index if own.index is not None else own.keep or scratch(), spark, self._plugs)
        self._is_stream = config.is_stream
        self._version: IndexVersion | None = None
        self.opening: RefreshReport | None = None
        """What to report of the first version: changes since the stored one, faults, and mismatches with the events."""
        self._records: dict[str, Record] | None = None
        """The subscriptions of the current version, as the source had them."""
        self._same: str | None = None
        """A later state of the source with the same subscriptions."""
        self._refused: str | None = None
        """The state of the source that was refused last."""

    def current(self) -> IndexVersion:
        """The current version. The first call opens or builds it, or updates the stored one.

        Raises HarkenError if there is none, with all faults of the subscriptions. If a change since the stored version
        is refused, a stream continues with the stored one, and `opening` reports it.
        """
        if self._version is None:
            stored = None if self._source is None else self._stored()
            self._version = stored or (self._index.current() if self._source is None else self._first())
            if stored is not None:
                self.opening = self.refresh()
                if self.opening is not None and self.opening.refused is not None and not self._is_stream:
                    raise SubscriptionError(self.opening.refused)
            self._note_mismatches(self._version)
        return self._version

    def compare_with(self, events: EventColumns) -> None:
        """Check the current version, and those that follow, against the columns of the events.

        `opening` reports mismatches. Raises MismatchError if the pipeline is to fail for them.
        """
        version = self.current()
        self._events = events
        self._note_mismatches(version)

    def _note_mismatches(self, version: IndexVersion) -> None:
        found = self._compared(version)
        if found:
            self.opening = replace(self.opening or RefreshReport(version), mismatches=found)

    def version(self, number: int, fingerprint: str) -> IndexVersion:
        """The version that a batch began with. Raises SegmentError if it is gone, or is another one."""
        found = self._index.version(number)
        if found.fingerprint != fingerprint:
            raise SegmentError(
                f"version {number} of the index in {self._index.root} is not the one that the batch was begun with",
                hint="an index is kept together with the checkpoint whose batches use it",
            )
        return found

    def pin(self, name: str, version: IndexVersion) -> None:
        """Keep a version until this name pins another one. Raises SegmentError if it is already gone."""
        self.version(version.version, version.fingerprint)
        self._index.pin(name, version.version)
        self.version(version.version, version.fingerprint)  # it may have gone before it was pinned

    def refresh(self) -> RefreshReport | None:
        """Take the changes since the last call; None if there are none. Faults in a change are reported, not raised."""
        last = self.current()
        try:
            report = self._newer(last) if self._source is None else self._changed(last)
        except Exception as error:  # whatever fails, the last good version stays current
            reason = str(error) if isinstance(error, HarkenError | OSError) else f"{type(error).__name__}: {error}"
            return self._refuse(last, f"unreadable: {reason}", reason)
        if report is not None and report.refused is None:
            self._version, self._refused = report.version, None
        return report

    def _refuse(
        self, last: IndexVersion, state: str, reason: str, faults: Sequence[SubscriptionFault] = ()
    ) -> RefreshReport | None:
        """The report of a refused change; None if it was reported before."""
        if state == self._refused:
            return None
        self._refused = state
        return RefreshReport(last, faults=tuple(faults), refused=reason)

    def _newer(self, last: IndexVersion) -> RefreshReport | None:
        """The version that somebody else published since."""
        found = self._index.current()
        if found.version == last.version and found.fingerprint == last.fingerprint:
            self._refused = None
            return None
        difference = found.subscriptions - last.subscriptions
        added, removed = max(difference, 0), max(-difference, 0)
        return RefreshReport(found, added=added, removed=removed, mismatches=self._compared(found))

    def _stored(self) -> IndexVersion | None:
        """The version that an earlier process built, if it can be updated."""
        try:
            found = self._index.current()
            is_usable = self._loaded(found).schema == self._schema
        except SegmentError:
            return None
        return found if is_usable else None

    def _first(self) -> IndexVersion:
        assert self._source is not None
        state = self._source.state()
        found = self._source.poll()
        engine, faults = self._built(found)
        if faults and not self._skips:
            raise listed(faults)
        self._records = found.records
        version = self._published(engine, state)
        if faults:
            self.opening = RefreshReport(version, added=len(engine), faults=tuple(faults))
        return version

    def _changed(self, last: IndexVersion) -> RefreshReport | None:
        """Poll the source, and publish the next version if its subscriptions changed."""
        assert self._source is not None
        state = self._source.state()
        if self._mark(state) == last.source or state == self._same:
            self._refused = None
            return None
        if state == self._refused:
            return None
        found = self._source.poll()
        if self._source.state() != state:
            return None  # it is being written; the next batch looks again
        engine = self._loaded(last)
        before = self._records if self._records is not None else polled(each.record() for each in engine).records
        changes = changes_between(before, found.records, engine.sequence or 0)
        if not changes and not found.faults:
            self._records, self._same, self._refused = found.records, state, None
            return None
        if len(changes) > max(_FEW, len(before) // _REBUILD_SHARE):
            engine, faults = self._built(found)
        else:
            faults = _located([*found.faults, *engine.apply(changes).faults], found)
        if faults and not self._skips:
            return self._refuse(last, state, str(listed(faults)), faults)
        if not len(engine) and before and not found.may_be_empty:
            reason = "all subscriptions are gone, which is more often a mishap than a wish"
            return self._refuse(last, state, reason, faults)
        try:
            version = self._published(engine, state)
        except MismatchError as error:
            return self._refuse(last, state, str(error))
        self._records, self._same = found.records, None
        removed = sum(each.record is None for each in changes)
        replaced = sum(each.record is not None and each.id in before for each in changes)
        added = len(changes) - removed - replaced
        mismatches = self._compared(version)
        return RefreshReport(version, added, replaced, removed, tuple(faults), mismatches=mismatches)

    def _built(self, found: Polled) -> tuple[Engine, list[SubscriptionFault]]:
        """An engine built from scratch, and the subscriptions that it did not take."""
        table = found.table() if len(found.records) >= _MANY else None
        if table is None:
            engine = self._plugs.engine(schema=self._schema)
            report = engine.subscribe_many(found.records.values())
            return engine, _located([*found.faults, *report.faults], found)
        frame = self._spark.createDataFrame(table)
        built = build(frame, self._schema, staging=self._index.root, operators=self._plugs)
        faults = [
            found.records[each.id].fault(SubscriptionError(each.reason)) for each in built.faults if each.id is not None
        ]
        return built.engine, _located([*found.faults, *faults], found)

    def _compared(self, version: IndexVersion) -> Mismatches:
        """What a version asks for and the events lack. Raises MismatchError if the pipeline is to fail for it."""
        if self._events is None or self._on_mismatch == IGNORE:
            return NO_MISMATCHES
        found = mismatches_of(version, self._events, self._spark)
        if self._on_mismatch == FAIL:
            tell(found, FAIL)
        return found

    def _published(self, engine: Engine, state: str) -> IndexVersion:
        """Publish the next version. Raises MismatchError before that if the pipeline is to fail for mismatches."""
        if self._events is not None and self._on_mismatch == FAIL:
            tell(engine.mismatches(self._events), FAIL)
        return self._index.publish(engine, source=self._mark(state))

    def _mark(self, state: str) -> str:
        """A short digest of a state of the source and of how faults in it were treated."""
        return hashlib.sha256(f"{self._skips}\n{state}".encode()).hexdigest()[:32]

    def _loaded(self, version: IndexVersion) -> Engine:
        """An engine loaded from a version. Changing it does not change the version."""
        root = local_path(version.root)
        if root is not None:
            return self._plugs.loaded(root / version.folder)
        with tempfile.TemporaryDirectory(prefix="harken-version-") as folder:
            version.files(self._spark).download(version.folder, Path(folder))
            return self._plugs.loaded(folder)


def listed(faults: Sequence[SubscriptionFault]) -> SubscriptionError:
    """One error for many faulty subscriptions."""
    reasons = (f"{each.id!r:.60}: {each.reason}" if each.id else each.reason for each in faults[:_SHOWN])
    shown = "\n".join("  " + each.replace("\n", "\n    ") for each in reasons)
    more = f"\n  and {len(faults) - _SHOWN:,} others" if len(faults) > _SHOWN else ""
    count = "a subscription is faulty" if len(faults) == 1 else f"{len(faults):,} subscriptions are faulty"
    return SubscriptionError(f"{count}:\n{shown}{more}", hint='`on_fault = "skip"` leaves them out')


def _located(faults: Iterable[Fault], found: Polled) -> list[SubscriptionFault]:
    """Faults with their file and line, in the order of the source."""
    located = []
    for each in sorted(faults, key=lambda fault: fault.position):
        place = found.place(each.position, each.line)
        located.append(SubscriptionFault(each.id, str(each.error) if place is None else f"{place}: {each.error}"))
    return located
