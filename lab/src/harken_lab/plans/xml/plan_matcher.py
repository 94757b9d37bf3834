"""Base of the paper's plans: subscriptions and documents are in tables, and one query matches them.

A plan says which rows the predicates of a subscription become, and which query matches them. In memory are a byte for
each number of a subscription, and what grows with the tag paths of documents; all else is in the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from logging import getLogger
from time import perf_counter
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.errors import CapabilityError, StoreUnavailableError, did_you_mean
from harken.events import EventBatch
from harken.events.xml import Documents
from harken.language.capabilities import Capability
from harken.language.xpath.ast import Expression
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.linear import BranchConjunction, conjunctions
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.document_algorithms import DATABASE_MOMENT
from harken.matchers.roles import Write
from harken.relational.kept_tables import KeptTables
from harken.relational.table_state import TableState
from harken.relational.tables import create_scratch, create_table, delete_keys, insert_rows, row_key, rows_of_keys
from harken.schema import Kind
from harken.schema.paths import DOCUMENT, Path
from harken.versions.array_file import ArrayFile
from harken_lab.plans.xml import branches, linear_paths, messages, rarity
from harken_lab.plans.xml.chains import StoredPredicate
from harken_lab.plans.xml.linear_paths import PathTables
from harken_lab.plans.xml.messages import Messages, TagPathIds
from harken_lab.plans.xml.path_predicates import NUMERIC, STRINGS, PlacedPredicate, path_predicates
from harken_lab.plans.xml.plan_costs import measured_costs
from harken_lab.plans.xml.plan_tables import PlacedRow, PredicateTables, StoredConjunction

log = getLogger(__name__)
MOST_TAG_PATHS = 16_384
"""With more tag paths, a quarter of them leaves: those that occurred longest ago."""
_AT_ONCE = 20_000
"""Subscriptions that are inserted in one transaction when tables are filled again."""
_DOCUMENTS_AT_ONCE = 1_024
"""Most documents that one query matches: limits the memory that the database needs for the answer."""
_FEW = 256
"""Fewest conjunctions that have left when unused linear paths are collected."""
_COLUMNS = (Column(DOCUMENT, Kind.STRING),)
_NUMBERS = 0xFFFFFFFF
"""The bits of a subscription's number in the ids of its conjunctions."""
_HAS_POINTS = 1 << 32
"""The bit in the id of a conjunction that has branching points. Above it is the place of the conjunction."""
_NO_ROWS = -1
"""The id in place of a conjunction's, of a subscription that no document can match."""
SUBSCRIPTIONS = "query_subscription"
_SUBSCRIPTION_COLUMNS = {"number": Storage.WHOLE, "sub_id": Storage.WHOLE, "value_keys": Storage.TEXT}
_LEAVING = f"SELECT s.sub_id, s.value_keys FROM given CROSS JOIN {SUBSCRIPTIONS} s WHERE s.number = given.key"
_TABLES = (branches.TABLE, SUBSCRIPTIONS, rarity.TABLE, *linear_paths.OF_SUBSCRIPTIONS)


class RelationalXPath:
    """A matcher of documents whose index is in tables of a database."""

    takes_all: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb", strings: str = NUMERIC) -> None:
        if strings not in STRINGS:
            hint = did_you_mean(str(strings), STRINGS) or f"there are: {', '.join(STRINGS)}"
            raise CapabilityError(f"`strings` has no value {strings!r:.40}", hint=hint)
        self._limits = limits
        self._strings = strings
        counters = {**linear_paths.COUNTERS, "chain": 1, "conjunctions": 0, "predicates": 0, "removed": 0}
        self.state = TableState("harken_documents", row_key(*self.settings()), counters)
        self._predicates = self.plan()
        self._kept = KeptTables(database, self.state, (*self.tables, *linear_paths.OF_BOTH))
        self._session = self._kept.session
        self._lock = fork_lock(MATCHER)
        self._paths = PathTables(self.state)
        self._tags: TagPathIds | None = None
        self._seen = [0, 0, 0, 0.0]
        """Documents, their matching pairs, rows of values, and seconds in the database."""

    def plan(self) -> PredicateTables:
        """The plan's tables."""
        raise NotImplementedError

    def settings(self) -> tuple[object, ...]:
        """What decides which rows a subscription becomes."""
        return type(self).__name__, self._strings

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that hold subscriptions."""
        return (*_TABLES, *self._predicates.tables)

    def __len__(self) -> int:
        return len(self._kept.numbers)

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            forms: dict[int, list[BranchConjunction]] = {}
            for entry in entries:
                plan = entry.compiled.plan
                assert isinstance(plan, DocumentPlan), "subscriptions to attributes are in another index"
                forms[entry.number] = conjunctions(plan.expression, self._limits)
            self._change(forms, replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._change({}, list(numbers))

    def _change(self, forms: Mapping[int, list[BranchConjunction]], leaving: Collection[int]) -> None:
        """Apply a change. It also holds if the database fails: then the next match fills the tables again."""
        kept = self._kept
        with kept.changed(forms, leaving):
            try:
                with self._session.guarded() as database:
                    is_ready = kept.is_filled or kept.resume(database, self)
                    if not is_ready and not len(kept.numbers):
                        is_ready = True
                        kept.begin(database, self)
                    if not is_ready:
                        kept.defer()
                        return
                    with kept.changing(database, len(forms) - len(leaving)):
                        self._delete(database, leaving)
                        self._insert(database, forms)
                    self._session.analyse(self.tables, self.state["subscriptions"])
            except StoreUnavailableError as error:  # other indexes have already applied the change
                kept.defer()
                log.warning("%s; the change is made, and the next match fills the tables again", error.message)

    def create_tables(self, database: Connection) -> None:
        """Create empty tables."""
        self._prepare(database)
        create_table(database, branches.TABLE, branches.COLUMNS, sub="sub_id")
        create_table(database, SUBSCRIPTIONS, _SUBSCRIPTION_COLUMNS, number="number")
        rarity.create_values(database)
        self._paths.create(database)
        self._predicates.create(database)

    def reopen_tables(self, database: Connection) -> None:
        """Go on with the tables of a file."""
        self._prepare(database)
        self._paths.reopen(database)

    def _prepare(self, database: Connection) -> None:
        """Prepare a session: the tables of documents end with it."""
        self._tags = None
        for statement in database.dialect.joined_as_written:
            database.run(statement)
        by_value = {"path": "tagpath_id, event_id", "value": "event_id, value"}
        create_scratch(database, messages.TABLE, messages.COLUMNS, **by_value)
        create_scratch(database, branches.CANDIDATES, branches.CANDIDATE_COLUMNS)

    def _insert(self, database: Connection, forms: Mapping[int, list[BranchConjunction]]) -> None:
        found: list[tuple[int, list[PlacedPredicate]]] = []
        numbers: list[tuple[int, int, str]] = []
        for number, several in forms.items():
            for place, conjunction in enumerate(several):
                predicates = path_predicates(conjunction, self._strings)
                if predicates is not None:  # else no document can match the conjunction
                    has_points = any(points for _, points in predicates)
                    found.append((place << 33 | has_points << 32 | number, predicates))
            if not found or found[-1][0] & _NUMBERS != number:
                numbers.append((number, _NO_ROWS, ""))
        keys = [rarity.value_keys(predicates) for _, predicates in found]
        counts = rarity.count_values(database, (key for several in keys for key in several), 1)
        ids = self._paths.ids(database, {(each.path, points) for _, placed in found for each, points in placed})
        stored = [
            StoredConjunction(
                sid, [_stored(each, ids[each[0].path, each[1]]) for each in rarity.ordered(placed, counts)]
            )
            for sid, placed in found
        ]
        stored = self._predicates.arranged(database, stored)
        self._predicates.insert(database, stored)
        numbers += [
            (sid & _NUMBERS, sid, ",".join(map(str, several))) for (sid, _), several in zip(found, keys, strict=True)
        ]
        insert_rows(database, SUBSCRIPTIONS, _SUBSCRIPTION_COLUMNS, numbers)
        points = [
            (sid, place, brinfo, *predicate)
            for sid, placed in stored
            for place, (predicate, brinfo) in enumerate(placed)
            if brinfo
        ]
        insert_rows(database, branches.TABLE, branches.COLUMNS, points)
        self.state["conjunctions"] += len(stored)
        self.state["predicates"] += sum(len(placed) for _, placed in stored)

    def _delete(self, database: Connection, numbers: Collection[int]) -> None:
        rows = [row for row in rows_of_keys(database, _LEAVING, numbers) if row[0] != _NO_ROWS]
        delete_keys(database, SUBSCRIPTIONS, "number", numbers)
        if not rows:
            return
        sids = [sid for sid, _ in rows]
        self._predicates.delete(database, sids)
        delete_keys(database, branches.TABLE, "sub_id", [sid for sid in sids if sid & _HAS_POINTS])
        rarity.count_values(database, (int(key) for _, keys in rows for key in keys.split(",") if key), -1)
        self.state["predicates"] -= round(self.state["predicates"] * len(sids) / self.state["conjunctions"])
        self.state["conjunctions"] -= len(sids)
        self.state["removed"] += len(sids)
        if self.state["removed"] > max(_FEW, self.state["conjunctions"]):
            self._paths.collect(database, self._predicates.used_paths)
            self.state["removed"] = 0

    def _fill(self, database: Connection, form_of: FormOf) -> None:
        """Fill new tables from the texts of subscriptions."""
        numbers = self._kept.numbers.numbers().tolist()
        for first in range(0, len(numbers), _AT_ONCE):
            part = numbers[first : first + _AT_ONCE]
            with self._kept.changing(database, len(part)):
                expressions = {number: cast(Expression, form_of(number)) for number in part}
                self._insert(database, {each: conjunctions(expressions[each], self._limits) for each in part})
        self._kept.complete()
        self._session.analyse(self.tables, len(numbers))

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        documents = batch.documents(DOCUMENT, self._limits)
        with self._lock:
            if not len(self) or not len(documents):
                return MatchResult.empty(len(batch))
            with self._session.guarded() as database:
                if self._kept.is_filled:
                    self._kept.check(database)
                elif not self._kept.begin(database, self):
                    self._fill(database, form_of)
                pairs = self._find(database, documents)
            self._seen[0] += len(documents)
            self._seen[1] += len(pairs)
        owners = documents.owner[pairs[:, 0]].astype(np.int64)
        # A subscription may match an event by several conjunctions, or documents.
        matches = np.unique(owners << 32 | pairs[:, 1] & _NUMBERS)
        offsets = np.zeros(len(batch) + 1, np.int64)
        np.cumsum(np.bincount(matches >> 32, minlength=len(batch)), out=offsets[1:])
        examined = np.bincount(owners, minlength=len(batch))
        return MatchResult(offsets, (matches & _NUMBERS).astype(np.int32), examined)

    def _find(self, database: Connection, documents: Documents) -> NDArray[np.int64]:
        """Pairs of a document and the id of a conjunction that matches it."""
        tags = self._tag_ids(database, documents)
        query = self._predicates.query.text
        batch = Messages(documents, tags, self._paths.reached)
        parts = [np.empty((0, 2), np.int64)]
        for first in range(0, len(documents), _DOCUMENTS_AT_ONCE):
            last = min(first + _DOCUMENTS_AT_ONCE, len(documents))
            columns = batch.columns(first, last)
            self._seen[2] += len(columns["event_id"][1])
            began = perf_counter()
            with database.transaction():
                database.run(f"{database.dialect.emptying} {messages.TABLE}")
                database.insert(messages.TABLE, columns)
            parts.append(self._meeting(database, documents, np.unique(database.integers(query), axis=0)))
            self._seen[3] += perf_counter() - began
        return np.concatenate(parts)

    def _tag_ids(self, database: Connection, documents: Documents) -> TagPathIds:
        """The ids of the documents' tag paths. New ones are stored; if there are too many, old ones leave."""
        tags = self._tags
        if tags is None or tags.paths is not documents.paths:
            tags = self._tags = TagPathIds(documents.paths)
        occurring = np.unique(documents.path).astype(np.int64)

        def add(new: Sequence[str]) -> list[int]:
            with database.transaction():
                ids = self._paths.add_tag_paths(database, new)
                if self.state["tags"] > MOST_TAG_PATHS:
                    self._removed_old(database, ids)
                self.state.write(database)
            return ids

        tags.add(occurring, add)
        return tags

    def _removed_old(self, database: Connection, new: Sequence[int]) -> None:
        assert self._tags is not None
        stored = {tag for (tag,) in database.rows("SELECT tagpath_id FROM tagpath_map")}.difference(new)
        old = self._tags.oldest(stored, self.state["tags"] - MOST_TAG_PATHS * 3 // 4)
        self._paths.remove_tag_paths(database, old)
        self._tags.forget(old)

    def _meeting(self, database: Connection, documents: Documents, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pairs whose branches meet."""
        has_points = pairs[:, 1] & _HAS_POINTS != 0
        if not has_points.any():
            return pairs
        with database.transaction():
            database.run(f"{database.dialect.emptying} {branches.CANDIDATES}")
            insert_rows(database, branches.CANDIDATES, branches.CANDIDATE_COLUMNS, pairs[has_points].tolist())
        meeting = list(branches.meeting(database.integers(branches.QUERY), documents))
        return np.concatenate([pairs[~has_points], np.array(meeting, np.int64).reshape(-1, 2)])

    # Saving

    def reject_used(self) -> None:
        """Raise CapabilityError if the file of the database has subscriptions of another engine."""
        self._kept.reject_used()

    def save(self, write: Write) -> None:
        """Save to which moment of its file the engine belongs."""
        with self._lock:
            self._kept.save(DATABASE_MOMENT, write)

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS, **options: Any) -> Self | None:
        """The matcher whose tables are in a file. None if they have to be filled from texts. Raises SegmentError."""
        if DATABASE_MOMENT not in files:
            return None
        matcher = cls(limits, **options)
        query = f"SELECT DISTINCT number FROM {SUBSCRIPTIONS}"
        return matcher if matcher._kept.load(files[DATABASE_MOMENT].meta, query, matcher) else None

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""
        return list(self._kept.numbers.numbers().tolist())

    # Contents

    def columns(self) -> tuple[Column, ...]:
        """The columns that subscriptions read: that of the document."""
        return _COLUMNS

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that subscriptions read: the document."""
        return {DOCUMENT}, []

    def flats(self) -> list[Flat]:
        """No rows: conditions on a document cannot be rows."""
        return []

    def document_paths(self) -> tuple[Path, ...]:
        """The attribute that is read as a document."""
        return (DOCUMENT,) if len(self) else ()

    def stats(self) -> dict[str, Any]:
        with self._lock:
            seen = dict(zip(("documents", "found", "values", "seconds"), self._seen, strict=True))
            whole = {
                "subscriptions": len(self),
                "database": self._session.database.dialect.name,
                "memory": self._session.size((*self.tables, *linear_paths.OF_BOTH)),
                "documents": self._seen[0],
                "found": self._seen[1],
            }
            if not self._kept.is_filled:
                return whole
            try:
                with self._session.guarded() as database:
                    return whole | measured_costs(database, self._predicates, self.state, seen)
            except StoreUnavailableError:  # the next match reports it
                return whole


def _stored(placed: PlacedPredicate, ids: tuple[int, int]) -> PlacedRow:
    predicate = placed[0]
    return PlacedRow(StoredPredicate(ids[0], predicate.op, predicate.value, predicate.number), ids[1])
