"""Predicate grouping in a database (ToPSS, section 4.2): each distinct predicate is stored and tested once.

The relations are subs(sid, cnt), preds(pid, attr, op, val) and subs_preds(sid, pid). There is one query for each event:
it finds the predicates that hold, and the subscriptions all of whose predicates are among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.relational_matcher import RelationalMatcher
from harken.relational.sql_rows import SqlRow
from harken.relational.tables import create_table, insert_rows
from harken.relational.typed_events import TypedEvents
from harken_lab.plans.predicate_rows import (
    VALUE_COLUMNS,
    Predicate,
    alternatives,
    columns_of,
    create_value_indexes,
    find_by_event,
)

_SUBS = dict.fromkeys(("sid", "row_of", "cnt"), Storage.WHOLE)
_SUBS_PREDS = dict.fromkeys(("sid", "row_of", "pid"), Storage.WHOLE)


class PredicateGrouping(RelationalMatcher):
    """The matcher: counts the predicates that hold, by subscription."""

    tables = ("subs", "preds", "subs_preds")

    def _create(self, database: Connection) -> None:
        self._pids: dict[Predicate, int] = {}
        self._uses: dict[int, tuple[Predicate, int]] = {}
        """By pid, the predicate, and how many rows have it."""
        self._free: list[int] = []
        create_table(database, "subs", _SUBS, sid="sid", row="row_of")
        create_table(database, "preds", {"pid": Storage.WHOLE, **VALUE_COLUMNS}, pid="pid")
        create_table(database, "subs_preds", _SUBS_PREDS, pid="pid, sid", row="row_of")
        create_value_indexes(database, "preds")

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        subs: list[tuple[int, int, int]] = []
        pairs: list[tuple[int, int, int]] = []
        new: dict[int, Predicate] = {}
        for row in rows:
            for sid, predicates in alternatives(row):
                subs.append((sid, row.sid, len(predicates)))
                pairs += ((sid, row.sid, self._shared(each, new)) for each in predicates)
        insert_rows(database, "subs", _SUBS, subs)
        insert_rows(database, "subs_preds", _SUBS_PREDS, pairs)
        if new:
            database.insert("preds", {"pid": (Storage.WHOLE, list(new))} | columns_of(list(new.values())))

    def _shared(self, predicate: Predicate, new: dict[int, Predicate]) -> int:
        """The pid of a predicate that one more row has. A new predicate gets one, and is added to `new`."""
        pid = self._pids.get(predicate)
        if pid is None:
            pid = self._pids[predicate] = self._free.pop() if self._free else len(self._pids) + 1
            new[pid] = predicate
        self._uses[pid] = predicate, self._uses.get(pid, (predicate, 0))[1] + 1
        return pid

    def _delete(self, database: Connection, sids: Sequence[int]) -> None:
        mark = database.parameter(1)
        unused: list[int] = []
        for sid in sids:
            for (pid,) in database.integers(f"SELECT pid FROM subs_preds WHERE row_of = {mark}", (sid,)).tolist():
                predicate, count = self._uses[pid]
                self._uses[pid] = predicate, count - 1
                if count == 1:
                    del self._uses[pid], self._pids[predicate]
                    unused.append(pid)
        rows = [(sid,) for sid in sids]
        database.run_many(f"DELETE FROM subs_preds WHERE row_of = {mark}", rows)
        database.run_many(f"DELETE FROM subs WHERE row_of = {mark}", rows)
        if unused:
            database.run_many(f"DELETE FROM preds WHERE pid = {mark}", [(pid,) for pid in unused])
            self._free += unused

    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        return find_by_event(database, events, range(first, last), "SELECT pid FROM preds", _query)


def _query(satisfied: str) -> str:
    """The query for rows that hold, given the query for predicates that hold."""
    return (
        "SELECT subs.sid FROM subs JOIN"
        f" (SELECT sid, count(*) AS x FROM subs_preds WHERE pid IN ({satisfied}) GROUP BY sid) AS held"
        " ON subs.sid = held.sid AND subs.cnt = held.x"
    )
