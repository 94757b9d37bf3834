"""The subscriptions of a pipeline: the version of the index that counts, and the next one when their source changes.

A change makes the next version out of the last: what is new, changed or gone is all that is parsed and indexed. A
change that cannot be taken is told once and left alone, and the last good version goes on.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harken.engine import Engine
from harken.errors import HarkenError, MismatchError, SegmentError, SubscriptionError
from harken.live.mismatch import FAIL, IGNORE, NO_MISMATCHES, Mismatches, tell
from harken.live.subscriptions import Fault
from harken.pipeline.rules import Changes, Rules, changes, rules_of, rules_source
from harken.schema import EventColumns, Schema
from harken.spark.asked_columns import mismatches_of
from harken.spark.building import SubscriptionFault, build
from harken.spark.index import Index, IndexVersion
from harken.spark.session_facts import scratch
from harken.versions.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.pipeline.config import Config

_MANY = 50_000
"""Subscriptions from which on Spark builds the first version, with all its cores."""
_SHARE_ANEW = 4
"""A change of more than a quarter of all is an index built anew."""
_FEW = 1_000
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a change of the subscriptions' source."""

    version: IndexVersion
    """The version that counts now."""
    added: int = 0
    replaced: int = 0
    removed: int = 0
    faults: tuple[SubscriptionFault, ...] = ()
    """Subscriptions that were left out or, if the change is refused, for which it is."""
    refused: str | None = None
    """Why the change was refused as a whole."""
    mismatches: Mismatches = NO_MISMATCHES
    """What the subscriptions ask for and the columns of the events do not have."""

    def __str__(self) -> str:
        if self.refused is not None:
            return f"a change of the subscriptions is refused, version {self.version.version} goes on: {self.refused}"
        parts = [f"{self.added:,} added", f"{self.replaced:,} replaced", f"{self.removed:,} removed"]
        left_out = [f"{len(self.faults):,} left out"] if self.faults else []
        is_new = bool(self.added or self.replaced or self.removed or self.faults)
        changed = [", ".join(parts + left_out)] if is_new or not self.mismatches else []
        told = "; ".join([*changed, *([str(self.mismatches)] if self.mismatches else [])])
        return f"version {self.version.version} of the subscriptions: {told}"


class Subscriptions:
    """What a pipeline's events are matched with. With the columns of the events, it is compared with these."""

    def __init__(self, config: Config, spark: SparkSession, events: EventColumns | None = None) -> None:
        given = config.subscriptions
        self._spark = spark
        self._schema: Schema | None = config.load_schema()
        self._skips = given.on_fault == "skip"
        self._events = events
        self._on_mismatch = config.match.on_mismatch
        self._source = None if given.index is not None else rules_source(given, spark)
        self._index = Index(given.index if given.index is not None else given.keep or scratch(), spark)
        self._is_stream = config.is_stream
        self._version: IndexVersion | None = None
        self.opening: Change | None = None
        """What there is to tell of the first version: what changed since the one that was kept, what was left out, or
        does not fit the columns of the events."""
        self._rules: Rules | None = None
        """The subscriptions of the last version, as they came."""
        self._same: str | None = None
        """A later state of the source that holds the same."""
        self._refused: str | None = None
        """The state of the source that was refused last."""

    def current(self) -> IndexVersion:
        """The version that counts. The first time it is opened or built, or made of the one that was kept.

        Raises HarkenError if there is none, with all that is wrong with the subscriptions. A stream goes on with the
        version that was kept if what changed since is refused; `opening` tells.
        """
        if self._version is None:
            kept = None if self._source is None else self._kept()
            self._version = kept or (self._index.current() if self._source is None else self._first())
            if kept is not None:
                self.opening = self.refresh()
                if self.opening is not None and self.opening.refused is not None and not self._is_stream:
                    raise SubscriptionError(self.opening.refused)
            self._note_mismatches(self._version)
        return self._version

    def compare_with(self, events: EventColumns) -> None:
        """Compare the version that counts, and those that follow, with the columns of the events; `opening` tells.

        Raises MismatchError if the pipeline is to fail for what does not fit.
        """
        version = self.current()
        self._events = events
        self._note_mismatches(version)

    def _note_mismatches(self, version: IndexVersion) -> None:
        found = self._compared(version)
        if found:
            self.opening = replace(self.opening or Change(version), mismatches=found)

    def version(self, number: int, fingerprint: str) -> IndexVersion:
        """A version that a batch was begun with. Raises SegmentError if it is not there, or is another."""
        found = self._index.version(number)
        if found.fingerprint != fingerprint:
            raise SegmentError(
                f"version {number} of the index in {self._index.root} is not the one that the batch was begun with",
                hint="an index is kept together with the checkpoint whose batches use it",
            )
        return found

    def pin(self, name: str, version: IndexVersion) -> None:
        """Keep a version until this name pins another. Raises SegmentError if it is gone already."""
        self.version(version.version, version.fingerprint)
        self._index.pin(name, version.version)
        self.version(version.version, version.fingerprint)  # it may have gone before it was pinned

    def refresh(self) -> Change | None:
        """Take over what changed since, None if nothing did. It raises nothing but what is wrong with `current`."""
        last = self.current()
        try:
            change = self._newer(last) if self._source is None else self._changed(last)
        except Exception as error:  # whatever is wrong with a change, the last good version goes on
            reason = str(error) if isinstance(error, HarkenError | OSError) else f"{type(error).__name__}: {error}"
            return self._refuse(last, f"unreadable: {reason}", reason)
        if change is not None and change.refused is None:
            self._version, self._refused = change.version, None
        return change

    def _refuse(
        self, last: IndexVersion, state: str, reason: str, faults: Sequence[SubscriptionFault] = ()
    ) -> Change | None:
        """A change that is refused; the same is told once."""
        if state == self._refused:
            return None
        self._refused = state
        return Change(last, faults=tuple(faults), refused=reason)

    def _newer(self, last: IndexVersion) -> Change | None:
        found = self._index.current()
        if found.version == last.version and found.fingerprint == last.fingerprint:
            self._refused = None
            return None
        difference = found.subscriptions - last.subscriptions
        added, removed = max(difference, 0), max(-difference, 0)
        return Change(found, added=added, removed=removed, mismatches=self._compared(found))

    def _kept(self) -> IndexVersion | None:
        """The version that was built before this process, if it can be gone on with."""
        try:
            found = self._index.current()
            is_usable = self._loaded(found).schema == self._schema
        except SegmentError:
            return None
        return found if is_usable else None

    def _first(self) -> IndexVersion:
        assert self._source is not None
        state = self._source.state()
        rules = self._source.rules()
        engine, faults = self._built(rules)
        if faults and not self._skips:
            raise listed(faults)
        self._rules = rules
        version = self._published(engine, state)
        if faults:
            self.opening = Change(version, added=len(engine), faults=tuple(faults))
        return version

    def _changed(self, last: IndexVersion) -> Change | None:
        assert self._source is not None
        state = self._source.state()
        mark = self._mark(state)
        if mark == last.source or state == self._same:
            self._refused = None
            return None
        if state == self._refused:
            return None
        rules = self._source.rules()
        if self._source.state() != state:
            return None  # it is being written; the next batch looks again
        engine = self._loaded(last)
        before = self._rules if self._rules is not None else rules_of(each.record() for each in engine)
        found = changes(before, rules)
        if not found.count and not rules.faults:
            self._rules, self._same, self._refused = rules, state, None
            return None
        if found.count > max(_FEW, len(before) // _SHARE_ANEW):
            engine, faults = self._built(rules)
        else:
            faults = self._applied(engine, found, rules)
        if faults and not self._skips:
            return self._refuse(last, state, str(listed(faults)), faults)
        if not len(engine) and len(before):
            reason = "all subscriptions are gone, which is more often a mishap than a wish"
            return self._refuse(last, state, reason, faults)
        try:
            version = self._published(engine, state)
        except MismatchError as error:
            return self._refuse(last, state, str(error))
        self._rules, self._same = rules, None
        told = self._compared(version)
        return Change(version, found.added, found.replaced, len(found.gone), tuple(faults), mismatches=told)

    def _applied(self, engine: Engine, found: Changes, rules: Rules) -> list[SubscriptionFault]:
        """Change an engine, and say what it did not take. What it did not take has no older text in it either."""
        for id in found.gone:
            if id in engine:
                engine.unsubscribe(id)
        report = engine.subscribe_many(found.new, replace=True)
        for fault in report.faults:
            if fault.id is not None and fault.id in engine:
                engine.unsubscribe(fault.id)
        return _told([*rules.faults, *report.faults], rules)

    def _built(self, rules: Rules) -> tuple[Engine, list[SubscriptionFault]]:
        """An engine built anew, and what it did not take."""
        table = rules.table() if len(rules) >= _MANY else None
        if table is None:
            engine = Engine(self._schema)
            report = engine.subscribe_many(rules.records)
            return engine, _told([*rules.faults, *report.faults], rules)
        built = build(self._spark.createDataFrame(table), self._schema, staging=self._index.root)
        faulty = {each.id: each.reason for each in built.faults}
        faults = [each.fault(SubscriptionError(faulty[each.id])) for each in rules.records if each.id in faulty]
        return built.engine, _told([*rules.faults, *faults], rules)

    def _compared(self, version: IndexVersion) -> Mismatches:
        """What a version asks for and events do not have. Raises MismatchError if the pipeline is to fail for it."""
        if self._events is None or self._on_mismatch == IGNORE:
            return NO_MISMATCHES
        found = mismatches_of(version, self._events, self._spark)
        if self._on_mismatch == FAIL:
            tell(found, FAIL)
        return found

    def _published(self, engine: Engine, state: str) -> IndexVersion:
        """The next version. Raises MismatchError, with nothing published, if the pipeline is to fail for it."""
        if self._events is not None and self._on_mismatch == FAIL:
            tell(engine.mismatches(self._events), FAIL)
        return self._index.publish(engine, source=self._mark(state))

    def _mark(self, state: str) -> str:
        """A state of the source, and how it was understood, in few letters."""
        return hashlib.sha256(f"{self._skips}\n{state}".encode()).hexdigest()[:32]

    def _loaded(self, version: IndexVersion) -> Engine:
        """An engine of a version that may be changed: the version stays what it is."""
        root = local_path(version.root)
        if root is not None:
            return Engine.load(root / version.folder, background=False)
        with tempfile.TemporaryDirectory(prefix="harken-version-") as folder:
            version.files(self._spark).download(version.folder, Path(folder))
            return Engine.load(folder, background=False)


def listed(faults: Sequence[SubscriptionFault]) -> SubscriptionError:
    """One error for many faulty subscriptions."""
    told = (f"{each.id!r:.60}: {each.reason}" if each.id else each.reason for each in faults[:_SHOWN])
    shown = "\n".join("  " + each.replace("\n", "\n    ") for each in told)
    more = f"\n  and {len(faults) - _SHOWN:,} others" if len(faults) > _SHOWN else ""
    count = "a subscription is faulty" if len(faults) == 1 else f"{len(faults):,} subscriptions are faulty"
    return SubscriptionError(f"{count}:\n{shown}{more}", hint='`on_fault = "skip"` leaves them out')


def _told(faults: Sequence[Fault], rules: Rules) -> list[SubscriptionFault]:
    """Faults with their places."""
    told = []
    for each in sorted(faults, key=lambda fault: fault.position):
        place = rules.place(each.position, each.line)
        told.append(SubscriptionFault(each.id, str(each.error) if place is None else f"{place}: {each.error}"))
    return told
