"""What the relational matchers have in common: rows in a database, a query that finds candidates, verification.

An algorithm says which tables it has, how rows enter and leave them, and which query finds the rows of events. Here
subscriptions become rows (`codes.flatten`), what SQL's types cannot say is verified on what the query returns, and
events that are no single value a column are verified against every subscription. Nothing is kept but the ids of the
rows: a database that was lost is filled again from the normal forms.
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
"""Rows that are made and inserted together when a database is filled again."""
_EVENTS_AT_ONCE = 1_024
"""Events that one query is about at most: it bounds what a database holds of an answer."""


class RelationalMatcher(ABC):
    """A matcher on tables."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.UNSUBSCRIBE, Trait.IN_PLACE})
    tables: ClassVar[tuple[str, ...]]
    most_columns: ClassVar[int | None] = None
    """How many attributes have columns; predicates on others are verified. None: all."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, database: str = "duckdb") -> None:
        self._limits = limits
        self._session = Session(database)
        self._lock = fork_lock(MATCHER)
        self._rows = RowMaker(self.most_columns)
        self._sids: dict[int, tuple[int, ...]] = {}
        self._events = 0
        self._examined = 0

    # What an algorithm is

    @abstractmethod
    def _create(self, database: Connection) -> None:
        """Make empty tables."""

    @abstractmethod
    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        """Add rows."""

    @abstractmethod
    def _delete(self, database: Connection, sids: Sequence[int]) -> None:
        """Remove rows."""

    @abstractmethod
    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        """Pairs of an event, of those first:last, and a row that holds for it."""

    # What all of them do

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
        if not self._sids or session.is_filled:  # else the next match fills the tables, with these
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
        self._hold(rows)

    def _hold(self, rows: list[SqlRow]) -> None:
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
            # A number that is apart is looked up below, when changes may go on: so it is taken now.
            numbers = np.fromiter(self._sids, np.int64, len(self._sids)) if events.apart.any() else None
            found = _candidates(parts, events, numbers)
            self._events += len(batch)
            self._examined += len(found.numbers)
        return settle(found, batch, form_of, self._limits)

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
        held = list(self._sids)
        self._sids.clear()
        try:
            for number in held:
                form = form_of(number)
                assert isinstance(form, NormalForm), "what has no normal form is in another index"
                rows += self._rows.rows(number, form)
                if len(rows) >= _AT_ONCE or number == held[-1]:
                    with database.transaction():
                        self._insert(database, rows)
                    self._hold(rows)
                    rows = []
        except BaseException:
            self._sids = {number: self._sids.get(number, ()) for number in held}
            raise
        self._session.analyse(self.tables, len(held))


def _candidates(parts: list[NDArray[np.int64]], events: TypedEvents, numbers: NDArray[np.int64] | None) -> Candidates:
    """What the queries found, and for the events that are apart all there is."""
    pairs = np.concatenate([np.empty((0, 2), np.int64), *parts])
    owners, found, doubtful = pairs[:, 0], pairs[:, 1] >> 1 & 0xFFFFFFFF, pairs[:, 1] & 1 == 1
    if numbers is not None:
        apart = np.flatnonzero(events.apart)
        owners = np.concatenate([owners, np.repeat(apart, len(numbers))])
        found = np.concatenate([found, np.tile(numbers, len(apart))])
        doubtful = np.concatenate([doubtful, np.ones(len(apart) * len(numbers), np.bool_)])
    order = np.argsort(owners, kind="stable")
    offsets = np.zeros(events.count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=events.count), out=offsets[1:])
    return Candidates(offsets, found[order].astype(np.int32), doubtful[order] if doubtful.any() else None)
