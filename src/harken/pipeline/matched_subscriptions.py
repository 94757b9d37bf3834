"""The subscriptions of a pipeline: the current version of their index, and the next one when their source changes.

The next version is made from the current one: only new and changed subscriptions are parsed and indexed. A rejected
change is reported once, and the current version stays.
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
from harken.pipeline.subscription_source import SourceContents, contents_of, subscription_source
from harken.schema import EventColumns, Schema
from harken.spark.building import SubscriptionFault, build
from harken.spark.index_versions import Index, IndexVersion
from harken.spark.mismatches import mismatches_of
from harken.spark.session_facts import scratch
from harken.spark.worker_operators import worker_operators
from harken.versions.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config

_SPARK_BUILD = 50_000
"""Least number of subscriptions for which Spark builds the index, with all its cores."""
_REBUILD_SHARE = 4
_REBUILD_CHANGES = 1_000
"""Rebuild the index once more than 1/_REBUILD_SHARE of the subscriptions changed, and more than this many."""
_SHOWN_FAULTS = 20


class Subscriptions:
    """The subscriptions that a pipeline matches with its events. Once `events` are known, mismatches are reported."""

    def __init__(self, config: Config, spark: SparkSession, events: EventColumns | None = None) -> None:
        settings = config.subscriptions
        self._spark = spark
        self._schema: Schema | None = config.load_schema()
        self._skips = settings.on_fault == "skip"
        self._events = events
        self._on_mismatch = config.match.on_mismatch
        self._source = None if settings.index is not None else subscription_source(settings, spark)
        self._operators = worker_operators(config.match.operators, config.match.order)
        root = settings.index if settings.index is not None else settings.keep or scratch()
        self._index = Index(root, spark, self._operators)
        self._is_stream = config.is_stream
        self._version: IndexVersion | None = None
        self.opening: RefreshReport | None = None
        """The report of the first version: changes since the stored one, faults, and mismatches with the events."""
        self._records: dict[str, Record] | None = None
        """The subscriptions of the current version by id, as the source had them."""
        self._unchanged_state: str | None = None
        """A later state of the source with the same subscriptions."""
        self._rejected_state: str | None = None
        """The state of the source that was rejected last."""

    def current(self) -> IndexVersion:
        """The current version. The first call opens or builds it, or updates the stored one.

        Raises HarkenError, with all faults of the subscriptions, if there is no version. If a change since the stored
        version is rejected, a stream continues with the stored one, and `opening` reports the rejection.
        """
        if self._version is None:
            stored = None if self._source is None else self._stored()
            self._version = stored or (self._index.current() if self._source is None else self._first())
            if stored is not None:
                self.opening = self.refresh()
                if self.opening is not None and self.opening.rejected is not None and not self._is_stream:
                    raise SubscriptionError(self.opening.rejected)
            self._note_mismatches(self._version)
        return self._version

    def compare_with(self, events: EventColumns) -> None:
        """Compare the current version, and later ones, with the columns of the events.

        `opening` reports mismatches. Raises MismatchError with `on_mismatch = "fail"`.
        """
        version = self.current()
        self._events = events
        self._note_mismatches(version)

    def _note_mismatches(self, version: IndexVersion) -> None:
        mismatches = self._compared(version)
        if mismatches:
            self.opening = replace(self.opening or RefreshReport(version), mismatches=mismatches)

    def version(self, number: int, fingerprint: str) -> IndexVersion:
        """The version that a batch began with. Raises SegmentError if it is gone, or has another fingerprint."""
        version = self._index.version(number)
        if version.fingerprint != fingerprint:
            raise SegmentError(
                f"version {number} of the index in {self._index.root} is not the one with which the batch began",
                hint="keep an index together with the checkpoint whose batches use it",
            )
        return version

    def pin(self, name: str, version: IndexVersion) -> None:
        """Keep a version until `name` pins another one. Raises SegmentError if the version is gone."""
        self.version(version.version, version.fingerprint)
        self._index.pin(name, version.version)
        self.version(version.version, version.fingerprint)  # it may have been removed before it was pinned

    def refresh(self) -> RefreshReport | None:
        """Take the changes since the last call; None if there are none. Faults are reported, not raised."""
        last = self.current()
        try:
            report = self._newer(last) if self._source is None else self._changed(last)
        except Exception as error:  # the current version stays
            reason = str(error) if isinstance(error, HarkenError | OSError) else f"{type(error).__name__}: {error}"
            return self._reject(last, f"unreadable: {reason}", reason)
        if report is not None and report.rejected is None:
            self._version, self._rejected_state = report.version, None
        return report

    def _reject(
        self, last: IndexVersion, state: str, reason: str, faults: Sequence[SubscriptionFault] = ()
    ) -> RefreshReport | None:
        """The report of a rejected change; None if it was reported before."""
        if state == self._rejected_state:
            return None
        self._rejected_state = state
        return RefreshReport(last, faults=tuple(faults), rejected=reason)

    def _newer(self, last: IndexVersion) -> RefreshReport | None:
        """The report of a version that another process has published in the index; None if there is none."""
        current = self._index.current()
        if current.version == last.version and current.fingerprint == last.fingerprint:
            self._rejected_state = None
            return None
        difference = current.subscriptions - last.subscriptions
        added, removed = max(difference, 0), max(-difference, 0)
        return RefreshReport(current, added=added, removed=removed, mismatches=self._compared(current))

    def _stored(self) -> IndexVersion | None:
        """The version that an earlier process built; None if there is none that can be updated."""
        try:
            stored = self._index.current()
            is_usable = self._loaded(stored).schema == self._schema
        except SegmentError:
            return None
        return stored if is_usable else None

    def _first(self) -> IndexVersion:
        """Build and publish a version from scratch."""
        assert self._source is not None
        state = self._source.state()
        contents = self._source.poll()
        engine, faults = self._built(contents)
        if faults and not self._skips:
            raise listed(faults)
        self._records = contents.records
        version = self._published(engine, state)
        if faults:
            self.opening = RefreshReport(version, added=len(engine), faults=tuple(faults))
        return version

    def _changed(self, last: IndexVersion) -> RefreshReport | None:
        """Poll the source, and publish the next version if its subscriptions changed."""
        assert self._source is not None
        state = self._source.state()
        if self._digest(state) == last.source or state == self._unchanged_state:
            self._rejected_state = None
            return None
        if state == self._rejected_state:
            return None
        contents = self._source.poll()
        if self._source.state() != state:
            return None  # the source is being written; the next batch polls again
        engine = self._loaded(last)
        before = self._records if self._records is not None else contents_of(each.record() for each in engine).records
        changes = changes_between(before, contents.records, engine.sequence or 0)
        if not changes and not contents.faults:
            self._records, self._unchanged_state, self._rejected_state = contents.records, state, None
            return None
        if len(changes) > max(_REBUILD_CHANGES, len(before) // _REBUILD_SHARE):
            engine, faults = self._built(contents)
        else:
            faults = _located([*contents.faults, *engine.apply(changes).faults], contents)
        if faults and not self._skips:
            return self._reject(last, state, str(listed(faults)), faults)
        if not len(engine) and before and not contents.may_be_empty:
            reason = "the source has no subscriptions any more, which is probably a mistake"
            return self._reject(last, state, reason, faults)
        try:
            version = self._published(engine, state)
        except MismatchError as error:
            return self._reject(last, state, str(error))
        self._records, self._unchanged_state = contents.records, None
        removed = sum(each.record is None for each in changes)
        replaced = sum(each.record is not None and each.id in before for each in changes)
        added = len(changes) - removed - replaced
        mismatches = self._compared(version)
        return RefreshReport(version, added, replaced, removed, tuple(faults), mismatches=mismatches)

    def _built(self, contents: SourceContents) -> tuple[Engine, list[SubscriptionFault]]:
        """Build an engine from scratch. Returns it and the faults of all rejected subscriptions."""
        table = contents.table() if len(contents.records) >= _SPARK_BUILD else None
        if table is None:
            engine = self._operators.engine(schema=self._schema)
            report = engine.subscribe_many(contents.records.values())
            return engine, _located([*contents.faults, *report.faults], contents)
        frame = self._spark.createDataFrame(table)
        built = build(frame, self._schema, staging=self._index.root, operators=self._operators)
        faults = [
            contents.records[each.id].fault(SubscriptionError(each.reason))
            for each in built.faults
            if each.id is not None
        ]
        return built.engine, _located([*contents.faults, *faults], contents)

    def _compared(self, version: IndexVersion) -> Mismatches:
        """What a version uses and the events do not have. Raises MismatchError with `on_mismatch = "fail"`."""
        if self._events is None or self._on_mismatch == IGNORE:
            return NO_MISMATCHES
        mismatches = mismatches_of(version, self._events, self._spark)
        if self._on_mismatch == FAIL:
            tell(mismatches, FAIL)
        return mismatches

    def _published(self, engine: Engine, state: str) -> IndexVersion:
        """Publish the next version. With `on_mismatch = "fail"`, raises MismatchError instead if it has mismatches."""
        if self._events is not None and self._on_mismatch == FAIL:
            tell(engine.mismatches(self._events), FAIL)
        return self._index.publish(engine, source=self._digest(state))

    def _digest(self, state: str) -> str:
        """A digest of a state of the source and of how its faults are treated."""
        return hashlib.sha256(f"{self._skips}\n{state}".encode()).hexdigest()[:32]

    def _loaded(self, version: IndexVersion) -> Engine:
        """Load an engine from a version. Changes to the engine do not change the version."""
        root = local_path(version.root)
        if root is not None:
            return self._operators.loaded(root / version.folder)
        with tempfile.TemporaryDirectory(prefix="harken-version-") as folder:
            version.files(self._spark).download(version.folder, Path(folder))
            return self._operators.loaded(folder)


def listed(faults: Sequence[SubscriptionFault]) -> SubscriptionError:
    """One error that lists the faults of subscriptions."""
    reasons = (f"{each.id!r:.60}: {each.reason}" if each.id else each.reason for each in faults[:_SHOWN_FAULTS])
    shown = "\n".join("  " + each.replace("\n", "\n    ") for each in reasons)
    more = f"\n  and {len(faults) - _SHOWN_FAULTS:,} others" if len(faults) > _SHOWN_FAULTS else ""
    count = "a subscription is faulty" if len(faults) == 1 else f"{len(faults):,} subscriptions are faulty"
    return SubscriptionError(f"{count}:\n{shown}{more}", hint='`on_fault = "skip"` leaves them out')


def _located(faults: Iterable[Fault], contents: SourceContents) -> list[SubscriptionFault]:
    """Faults with their file and line, in the order of the source."""
    located = []
    for each in sorted(faults, key=lambda fault: fault.position):
        place = contents.place(each.position, each.line)
        located.append(SubscriptionFault(each.id, str(each.error) if place is None else f"{place}: {each.error}"))
    return located
