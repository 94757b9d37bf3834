"""The base class of relational matchers: rows in a database, queries that find candidates, verification.

A subclass creates its tables, inserts and deletes rows, and queries the rows that match events. The base class turns
subscriptions into rows (`codes.flatten`), verifies candidates whose rows are inexact, and verifies excluded events
(`typed_events`) against every subscription. In memory it keeps only the ids of rows: a lost database is filled again
from the normal forms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

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
from harken.relational.database_session import Session
from harken.relational.sql_rows import RowMaker, SqlRow
from harken.relational.typed_events import TypedEvents, typed_events

_AT_ONCE = 50_000
"""Rows per transaction when a database is filled again."""
_EVENTS_AT_ONCE = 1_024
"""Most events of one query, which limits the size of its result in the database."""


class RelationalMatcher(ABC):
    """A matcher that keeps its rows in tables of a database."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    tables: ClassVar[tuple[str, ...]]
    most_columns: ClassVar[int | None] = None
    """Most attributes with columns; predicates on others are verified. None: no limit."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb") -> None:
        self._limits = limits
        self._session = Session(database)
        self._lock = fork_lock(MATCHER)
        self._rows = RowMaker(self.most_columns)
        self._sids: dict[int, tuple[int, ...]] = {}
        """The ids of the rows of each subscription, by its number."""
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
    def _delete(self, database: Connection, sids: Sequence[int]) -> None:
        """Remove rows."""

    @abstractmethod
    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        """Pairs of an event in first:last and the id of a row that holds for it."""

    # What all relational matchers share

    def add(self, entries: Iterable[Entry], replaced: Collection[int] = ()) -> None:
        with self._lock:
            rows = [row for entry in entries for row in self._rows.rows(entry.number, entry.compiled.normal_form)]
            self._change(rows, replaced)

    def remove(self, numbers: Iterable[int]) -> None:
        with self._lock:
            self._change([], list(numbers))

    def _change(self, rows: list[SqlRow], leaving: Collection[int]) -> None:
        sids = [sid for number in leaving for sid in self._sids[number]]
        session = self._session
        if not self._sids or session.is_filled:  # else the next match fills the tables, including these rows
            with session.guarded() as database:
                if not session.is_filled:
                    session.begin(self._create)
                with database.transaction():
                    if sids:
                        self._delete(database, sids)
                    if rows:
                        self._insert(database, rows)
                session.analyse(self.tables, len(self._sids) + len(rows))
        for number in leaving:
            del self._sids[number]
        self._note_sids(rows)

    def _note_sids(self, rows: list[SqlRow]) -> None:
        for sid, _ in rows:
            number = sid >> 1 & 0xFFFFFFFF
            self._sids[number] = (*self._sids.get(number, ()), sid)

    def match(self, batch: EventBatch, form_of: FormOf) -> MatchResult:
        with self._lock:
            if not self._sids:
                return MatchResult.empty(len(batch))
            events = typed_events(batch, self._rows.columns)
            with self._session.guarded() as database:
                if not self._session.is_filled:
                    self._fill(database, form_of)
                parts = [
                    self._find(database, events, first, min(first + _EVENTS_AT_ONCE, len(batch)))
                    for first in range(0, len(batch), _EVENTS_AT_ONCE)
                ]
            # List the numbers for excluded events now: outside of the lock, subscriptions may change.
            numbers = np.fromiter(self._sids, np.int64, len(self._sids)) if events.excluded.any() else None
            candidates = _candidates(parts, events, numbers)
            self._events += len(batch)
            self._examined += len(candidates.numbers)
        return settle(candidates, batch, form_of, self._limits)

    def stats(self) -> dict[str, Any]:
        with self._lock:
            return {
                "subscriptions": len(self._sids),
                "rows": sum(map(len, self._sids.values())),
                "attributes": len(self._rows.columns),
                "database": self._session.database.dialect.name,
                "memory": self._session.size(self.tables),
                "events": self._events,
                "examined": self._examined,
            }

    def _fill(self, database: Connection, form_of: FormOf) -> None:
        self._session.begin(self._create)
        rows: list[SqlRow] = []
        numbers = list(self._sids)
        self._sids.clear()
        try:
            for number in numbers:
                form = form_of(number)
                assert isinstance(form, NormalForm), "subscriptions without a normal form are in another index"
                rows += self._rows.rows(number, form)
                if len(rows) >= _AT_ONCE or number == numbers[-1]:
                    with database.transaction():
                        self._insert(database, rows)
                    self._note_sids(rows)
                    rows = []
        except BaseException:
            self._sids = {number: self._sids.get(number, ()) for number in numbers}
            raise
        self._session.analyse(self.tables, len(numbers))


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
