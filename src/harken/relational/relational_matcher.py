"""The base class of relational matchers: rows in a database, queries that find candidates, verification.

A subclass creates its tables, inserts and deletes rows, and queries the rows that match events. The base class turns
subscriptions into rows (`codes.flatten`), verifies candidates whose rows are inexact, and verifies excluded events
(`typed_events`) against every subscription. In memory it keeps a byte for each number of a subscription, and the
columns of predicates: a database that was lost is filled again from the normal forms, and a file is opened as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from harken.concurrency.forking import MATCHER, fork_lock
from harken.databases.connection import Connection
from harken.events import EventBatch
from harken.language.capabilities import Capability
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Entry, FormOf, MatchResult, Trait
from harken.matchers.candidates import Candidates, settle
from harken.matchers.roles import Write
from harken.relational import stored_columns
from harken.relational.kept_tables import KeptTables
from harken.relational.sql_rows import NUMBER_BITS, RowMaker, SqlRow
from harken.relational.table_state import TableState
from harken.relational.tables import row_key
from harken.relational.typed_events import TypedEvents, typed_events
from harken.versions.array_file import ArrayFile

FILE = "relational_rows"
"""The file of a saved engine that says to which moment of its database it belongs."""
_AT_ONCE = 50_000
"""Rows per transaction when a database is filled again."""
_EVENTS_AT_ONCE = 1_024
"""Most events of one query, which limits the size of its result in the database."""


class RelationalMatcher(ABC):
    """A matcher that keeps its rows in tables of a database."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    tables: ClassVar[tuple[str, ...]]
    row_ids: ClassVar[str]
    """The query for the ids of rows, each once or more often."""
    most_columns: ClassVar[int | None] = None
    """Most attributes with columns; predicates on others are verified. None: no limit."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb") -> None:
        self._limits = limits
        settings = row_key(type(self).__name__)
        self._state = TableState("harken_rows", settings, {"columns": 0, "pid": 1})
        tables = (*self.tables, stored_columns.TABLE)
        self._kept = KeptTables(database, self._state, tables)
        self._session = self._kept.session
        self._lock = fork_lock(MATCHER)
        self._rows = RowMaker(self.most_columns)
        self._events = 0
        self._examined = 0

    # What a subclass implements

    @abstractmethod
    def _create(self, database: Connection) -> None:
        """Create empty tables."""

    @abstractmethod
    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        """Add rows."""

    @abstractmethod
    def _delete(self, database: Connection, numbers: Sequence[int]) -> None:
        """Remove the rows of subscriptions."""

    @abstractmethod
    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        """Pairs of an event in first:last and the id of a row that holds for it."""

    def _reopen(self, database: Connection) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare a session with the tables of a file."""

    # What all relational matchers share

    def create_tables(self, database: Connection) -> None:
        """Create empty tables."""
        stored_columns.create_columns(database)
        self._create(database)

    def reopen_tables(self, database: Connection) -> None:
        """Go on with the tables of a file."""
        self._rows.use_columns(stored_columns.stored_columns(database))
        self._reopen(database)

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            self._change({each.number: each.compiled.normal_form for each in entries}, replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._change({}, list(numbers))

    def _change(self, forms: Mapping[int, NormalForm], leaving: Collection[int]) -> None:
        kept = self._kept
        with kept.changed(forms, leaving), self._session.guarded() as database:
            is_ready = kept.is_filled or kept.resume(database, self)
            if not is_ready and not len(kept.numbers):
                is_ready = True
                kept.begin(database, self)
            # Else the next match fills the tables, including these rows. It needs the columns of the rows.
            rows = [row for number, form in forms.items() for row in self._rows.rows(number, form)]
            if not is_ready:
                kept.defer()
                return
            with kept.changing(database, len(forms) - len(leaving)):
                if leaving:
                    self._delete(database, list(leaving))
                self._insert_all(database, rows)
            self._session.analyse(self.tables, self._state["subscriptions"])

    def _insert_all(self, database: Connection, rows: list[SqlRow]) -> None:
        """Insert rows, and the columns that they brought."""
        columns = self._rows.all_columns
        stored_columns.store_columns(database, columns, self._state["columns"])
        self._state["columns"] = len(columns)
        if rows:
            self._insert(database, rows)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        kept = self._kept
        with self._lock:
            if not len(kept.numbers):
                return MatchResult.empty(len(batch))
            with self._session.guarded() as database:
                if kept.is_filled:
                    kept.check(database)
                elif not kept.begin(database, self):
                    self._fill(database, form_of)
                events = typed_events(batch, self._rows.columns)
                parts = [
                    self._find(database, events, first, min(first + _EVENTS_AT_ONCE, len(batch)))
                    for first in range(0, len(batch), _EVENTS_AT_ONCE)
                ]
            # List the numbers for excluded events now: outside of the lock, subscriptions may change.
            numbers = kept.numbers.numbers() if events.excluded.any() else None
            candidates = _candidates(parts, events, numbers)
            self._events += len(batch)
            self._examined += len(candidates.numbers)
        return settle(candidates, batch, form_of, self._limits)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            return {
                "subscriptions": len(self._kept.numbers),
                "rows": self._session.count(f"SELECT count(*) AS n FROM ({self.row_ids}) AS r"),
                "attributes": len(self._rows.columns),
                "database": self._session.database.dialect.name,
                "memory": self._session.size(self.tables),
                "events": self._events,
                "examined": self._examined,
            }

    def _fill(self, database: Connection, form_of: FormOf) -> None:
        """Fill new tables from the texts of subscriptions."""
        rows: list[SqlRow] = []
        numbers = self._kept.numbers.numbers().tolist()
        count = 0
        for number in numbers:
            form = form_of(number)
            assert isinstance(form, NormalForm), "subscriptions without a normal form are in another index"
            rows += self._rows.rows(number, form)
            count += 1
            if len(rows) >= _AT_ONCE or number == numbers[-1]:
                with self._kept.changing(database, count):
                    self._insert_all(database, rows)
                rows, count = [], 0
        self._kept.complete()
        self._session.analyse(self.tables, len(numbers))

    # Saving

    def reject_used(self) -> None:
        """Raise CapabilityError if the file of the database has subscriptions of another engine."""
        self._kept.reject_used()

    def save(self, write: Write) -> None:
        """Save to which moment of its file the engine belongs."""
        with self._lock:
            self._kept.save(FILE, write)

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits = DEFAULT_LIMITS, **options: Any) -> Self | None:
        """The matcher whose tables are in a file. None if they have to be filled from texts. Raises SegmentError."""
        if FILE not in files:
            return None
        matcher = cls(limits, **options)
        query = f"SELECT DISTINCT (sid >> 1) & {NUMBER_BITS} AS number FROM ({cls.row_ids}) AS r"
        return matcher if matcher._kept.load(files[FILE].meta, query, matcher) else None


def _candidates(parts: list[NDArray[np.int64]], events: TypedEvents, numbers: NDArray[np.int64] | None) -> Candidates:
    """The candidates of each event: the results of the queries and, for excluded events, all `numbers`."""
    pairs = np.concatenate([np.empty((0, 2), np.int64), *parts])
    owners, candidates, doubtful = pairs[:, 0], pairs[:, 1] >> 1 & 0xFFFFFFFF, pairs[:, 1] & 1 == 1
    if numbers is not None:
        excluded = np.flatnonzero(events.excluded)
        owners = np.concatenate([owners, np.repeat(excluded, len(numbers))])
        candidates = np.concatenate([candidates, np.tile(numbers, len(excluded))])
        doubtful = np.concatenate([doubtful, np.ones(len(excluded) * len(numbers), np.bool_)])
    order = np.argsort(owners, kind="stable")
    offsets = np.zeros(events.count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=events.count), out=offsets[1:])
    return Candidates(offsets, candidates[order].astype(np.int32), doubtful[order] if doubtful.any() else None)
