"""Base of the paper's plans: subscriptions and documents are in tables, and one query matches them.

A plan says which rows the predicates of a subscription become, and which query matches them. The texts of subscriptions
are kept, so that the tables can be filled again if the database is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from logging import getLogger
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.codes.flat import Flat
from harken.concurrency.forking import MATCHER, fork_lock
from harken.databases.connection import Connection
from harken.errors import StoreUnavailableError
from harken.events import EventBatch
from harken.events.xml import Documents
from harken.language.capabilities import Capability
from harken.language.xpath.document_plan import DocumentPlan
from harken.language.xpath.linear import BranchConjunction, conjunctions
from harken.language.xpath.parser import parse_accepted
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.relational.database_session import Session
from harken.relational.tables import create_table, insert_rows
from harken.schema import Kind
from harken.schema.paths import DOCUMENT, Path
from harken_lab.plans.xml import branches, linear_paths, messages
from harken_lab.plans.xml.chains import StoredPredicate
from harken_lab.plans.xml.linear_paths import PathTables
from harken_lab.plans.xml.messages import Messages, TagPathIds
from harken_lab.plans.xml.path_predicates import PlacedPredicate, path_predicates
from harken_lab.plans.xml.rarity import Rarity

log = getLogger(__name__)
_AT_ONCE = 20_000
"""Subscriptions that are inserted in one transaction when tables are filled again."""
_DOCUMENTS_AT_ONCE = 1_024
"""Most documents that one query matches: limits the memory that the database needs for the answer."""
_COLUMNS = (Column(DOCUMENT, Kind.STRING),)
_NUMBERS = 0xFFFFFFFF
"""The bits of a subscription's number in the ids of its rows. Above them is the place of the conjunction."""


class PredicateTables(Protocol):
    """The tables of a plan that hold predicates. New rows are buffered until they are stored."""

    tables: ClassVar[tuple[str, ...]]

    def arranged(self, predicates: list[PlacedPredicate]) -> list[PlacedPredicate]:
        """Predicates of a conjunction, equalities first, in the order and with the additions of this plan."""

    def create(self, database: Connection) -> None:
        """Create empty tables."""

    def add(self, sid: int, predicates: Sequence[StoredPredicate]) -> None:
        """Buffer the rows of a conjunction."""

    def store(self, database: Connection) -> None:
        """Insert the buffered rows."""

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete the rows of conjunctions."""

    def query(self) -> str:
        """The query for pairs of an event and a conjunction whose predicates all hold. A pair may occur twice."""


class _Row(NamedTuple):
    """A conjunction of a subscription: its id in the tables, and the shared data that it uses."""

    sid: int
    pairs: list[tuple[int, int]]
    """The ids of its linear paths, and of the branching points on them."""
    values: list[str]
    """The values of its equalities."""


class RelationalXPath:
    """A matcher of documents whose index is in tables of a database."""

    plan: ClassVar[type[PredicateTables]]
    takes_all: ClassVar[bool] = False

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})

    def __init__(self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb") -> None:
        self._limits = limits
        self._session = Session(database)
        self._lock = fork_lock(MATCHER)
        self._texts: dict[int, str] = {}
        self._rows: dict[int, list[_Row]] = {}
        self._paths = PathTables()
        self._predicates = self.plan()
        self._rarity = Rarity()
        self._tags: TagPathIds | None = None
        self._branching: set[int] = set()
        """The ids of conjunctions that have branching points."""
        self._seen = [0, 0]
        """The numbers of documents matched, and of matching pairs of document and conjunction."""

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that hold subscriptions."""
        return (branches.TABLE, *linear_paths.OF_SUBSCRIPTIONS, *self._predicates.tables)

    # Changing

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            texts: dict[int, str] = {}
            forms: dict[int, list[BranchConjunction]] = {}
            for entry in entries:
                plan = entry.compiled.plan
                assert isinstance(plan, DocumentPlan), "subscriptions to attributes are in another index"
                texts[entry.number] = entry.compiled.text
                forms[entry.number] = conjunctions(plan.expression, self._limits)
            self._change(texts, forms, replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._change({}, {}, list(numbers))

    def _change(
        self, texts: Mapping[int, str], forms: Mapping[int, list[BranchConjunction]], leaving: Collection[int]
    ) -> None:
        """Apply a change. It also holds if the database fails: then the next match fills the tables again."""
        session = self._session
        if not self._texts or session.is_filled:
            try:
                with session.guarded() as database:
                    if not session.is_filled:
                        session.begin(self._create)
                    with database.transaction():
                        self._delete(database, leaving)
                        self._insert(database, forms)
                    session.analyse(self.tables, len(self._texts) + len(texts))
            except StoreUnavailableError as error:  # other indexes have already applied the change
                log.warning("%s; the change is made, and the next match fills the tables again", error.message)
        for number in leaving:
            del self._texts[number]
        self._texts |= texts

    def _create(self, database: Connection) -> None:
        self._rows, self._paths, self._predicates, self._tags = {}, PathTables(), self.plan(), None
        self._rarity, self._branching = Rarity(), set()
        for statement in database.dialect.joined_as_written:
            database.run(statement)
        create_table(database, messages.TABLE, messages.COLUMNS, path="tagpath_id, event_id", value="event_id, value")
        create_table(database, branches.TABLE, branches.COLUMNS, sub="sub_id")
        create_table(database, branches.CANDIDATES, branches.CANDIDATE_COLUMNS)
        self._paths.create(database)
        self._predicates.create(database)

    def _insert(self, database: Connection, forms: Mapping[int, list[BranchConjunction]]) -> None:
        points: list[tuple[Any, ...]] = []
        conjuncts: list[tuple[int, int, list[PlacedPredicate], list[str]]] = []
        for number, several in forms.items():
            self._rows[number] = []
            for place, conjunction in enumerate(several):
                predicates = path_predicates(conjunction)
                if predicates is not None:  # else no document can match the conjunction
                    conjuncts.append((number, place, predicates, self._rarity.learn(predicates)))
        for number, place, predicates, values in conjuncts:
            row, own = self._row(place << 32 | number, self._rarity.ordered(predicates), values)
            self._rows[number].append(row)
            points += own
        self._paths.store(database)
        self._predicates.store(database)
        insert_rows(database, branches.TABLE, branches.COLUMNS, points)

    def _row(
        self, sid: int, predicates: list[PlacedPredicate], values: list[str]
    ) -> tuple[_Row, list[tuple[Any, ...]]]:
        """Buffer the rows of a conjunction. Returns it, and the rows of its branches that have branching points."""
        arranged = self._predicates.arranged(predicates)
        pairs = [self._paths.add_use(predicate.path, points) for predicate, points in arranged]
        stored = [
            StoredPredicate(path, predicate.op, predicate.value, predicate.number)
            for (path, _), (predicate, _) in zip(pairs, arranged, strict=True)
        ]
        self._predicates.add(sid, stored)
        places = zip(pairs, stored, strict=True)
        points: list[tuple[Any, ...]] = [
            (sid, place, brinfo, *each) for place, ((_, brinfo), each) in enumerate(places) if brinfo
        ]
        if points:
            self._branching.add(sid)
        return _Row(sid, pairs, values), points

    def _delete(self, database: Connection, numbers: Collection[int]) -> None:
        rows = [row for number in numbers for row in self._rows.pop(number)]
        if rows:
            sids = [row.sid for row in rows]
            self._predicates.delete(database, sids)
            branching = [(sid,) for sid in sids if sid in self._branching]
            self._branching.difference_update(sids)
            if branching:
                database.run_many(f"DELETE FROM {branches.TABLE} WHERE sub_id = {database.parameter(1)}", branching)
            for row in rows:
                self._paths.remove_uses(row.pairs)
                self._rarity.forget(row.values)

    def _fill(self, database: Connection) -> None:
        self._session.begin(self._create)
        numbers = list(self._texts)
        for first in range(0, len(numbers), _AT_ONCE):
            part = numbers[first : first + _AT_ONCE]
            with database.transaction():
                self._insert(
                    database, {each: conjunctions(parse_accepted(self._texts[each]), self._limits) for each in part}
                )
        self._session.analyse(self.tables, len(numbers))

    # Matching

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        documents = batch.documents(DOCUMENT, self._limits)
        with self._lock:
            if not self._texts or not len(documents):
                return MatchResult.empty(len(batch))
            with self._session.guarded() as database:
                if not self._session.is_filled:
                    self._fill(database)
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
        tags = self._tags
        with database.transaction():
            if tags is None or tags.paths is not documents.paths:
                if tags is not None:
                    self._paths.clear_tag_paths(database)
                tags = self._tags = TagPathIds(documents.paths)
            tags.add(np.unique(documents.path), lambda new: self._paths.add_tag_paths(database, new))
        query = self._predicates.query()
        batch = Messages(documents, tags, self._paths.reached)
        parts = [np.empty((0, 2), np.int64)]
        for first in range(0, len(documents), _DOCUMENTS_AT_ONCE):
            last = min(first + _DOCUMENTS_AT_ONCE, len(documents))
            with database.transaction():
                database.run(f"{database.dialect.emptying} {messages.TABLE}")
                database.insert(messages.TABLE, batch.columns(first, last))
            parts.append(self._meeting(database, documents, np.unique(database.integers(query), axis=0)))
        return np.concatenate(parts)

    def _meeting(self, database: Connection, documents: Documents, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pairs whose branches meet."""
        has_points = np.array([sid in self._branching for sid in pairs[:, 1].tolist()], np.bool_)
        if not has_points.any():
            return pairs
        with database.transaction():
            database.run(f"{database.dialect.emptying} {branches.CANDIDATES}")
            insert_rows(database, branches.CANDIDATES, branches.CANDIDATE_COLUMNS, pairs[has_points].tolist())
        meeting = list(branches.meeting(database.integers(branches.QUERY), documents))
        return np.concatenate([pairs[~has_points], np.array(meeting, np.int64).reshape(-1, 2)])

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
        return (DOCUMENT,) if self._texts else ()

    def stats(self) -> dict[str, Any]:
        with self._lock:
            return {
                "subscriptions": len(self._texts),
                "rows": sum(map(len, self._rows.values())),
                "linear_paths": self._paths.linear_paths,
                "tag_paths": self._paths.tag_paths,
                "database": self._session.database.dialect.name,
                "memory": self._session.size((*self.tables, *linear_paths.OF_BOTH)),
                "documents": self._seen[0],
                "found": self._seen[1],
            }
