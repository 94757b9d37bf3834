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
from harken.relational.sql_rows import SqlRow, number_of_sid
from harken.relational.tables import create_table, delete_keys, insert_rows, row_key, rows_of_keys
from harken.relational.typed_events import TypedEvents
from harken_lab.plans.predicate_rows import (
    VALUE_COLUMNS,
    Predicate,
    alternatives,
    columns_of,
    create_value_indexes,
    find_by_event,
)

_SUBS = dict.fromkeys(("sid", "row_of", "number", "cnt"), Storage.WHOLE)
_SUBS_PREDS = dict.fromkeys(("sid", "number", "pid"), Storage.WHOLE)
_FREE = {"pid": Storage.WHOLE}
_STORED = f"""SELECT p.pid, p.attr, p.op, {", ".join(f"p.{storage}" for storage in Storage)}
FROM given CROSS JOIN preds p WHERE p.pred_key = given.key"""
_PIDS = "SELECT DISTINCT s.pid FROM given CROSS JOIN subs_preds s WHERE s.number = given.key"
_USED = "SELECT DISTINCT s.pid FROM given CROSS JOIN subs_preds s WHERE s.pid = given.key"


class PredicateGrouping(RelationalMatcher):
    """The matcher: counts the predicates that hold, by subscription."""

    tables = ("subs", "preds", "subs_preds", "free_preds")
    row_ids = "SELECT DISTINCT row_of AS sid FROM subs"

    def _create(self, database: Connection) -> None:
        create_table(database, "subs", _SUBS, sid="sid", number="number")
        create_table(
            database,
            "preds",
            {"pid": Storage.WHOLE, "pred_key": Storage.WHOLE, **VALUE_COLUMNS},
            pid="pid",
            key="pred_key",
        )
        create_table(database, "subs_preds", _SUBS_PREDS, pid="pid, sid", number="number")
        create_table(database, "free_preds", _FREE)
        create_value_indexes(database, "preds")

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        found = [(sid, row.sid, predicates) for row in rows for sid, predicates in alternatives(row)]
        pids = self._pids(database, {each for _, _, predicates in found for each in predicates})
        subs = [(sid, row, number_of_sid(row), len(predicates)) for sid, row, predicates in found]
        pairs = [(sid, number_of_sid(row), pids[each]) for sid, row, predicates in found for each in predicates]
        insert_rows(database, "subs", _SUBS, subs)
        insert_rows(database, "subs_preds", _SUBS_PREDS, pairs)

    def _pids(self, database: Connection, wanted: set[Predicate]) -> dict[Predicate, int]:
        """The pids of predicates. New ones are inserted, with recycled pids first."""
        pids: dict[Predicate, int] = {}
        for pid, attribute, operator, *values in rows_of_keys(database, _STORED, map(_key, wanted)):
            (stored,) = [(storage, each) for storage, each in zip(Storage, values, strict=True) if each is not None]
            pids[Predicate(attribute, operator, *stored)] = pid
        new = [each for each in wanted if each not in pids]
        if new:
            free = [pid for (pid,) in database.rows(f"SELECT pid FROM free_preds ORDER BY pid LIMIT {len(new)}")]
            delete_keys(database, "free_preds", "pid", free)
            first = self._state.take("pid", len(new) - len(free))
            fresh = [*free, *range(first, first + len(new) - len(free))]
            keys = {"pid": (Storage.WHOLE, fresh), "pred_key": (Storage.WHOLE, list(map(_key, new)))}
            database.insert("preds", keys | columns_of(new))
            pids |= dict(zip(new, fresh, strict=True))
        return pids

    def _delete(self, database: Connection, numbers: Sequence[int]) -> None:
        pids = {pid for (pid,) in rows_of_keys(database, _PIDS, numbers)}
        delete_keys(database, "subs_preds", "number", numbers)
        delete_keys(database, "subs", "number", numbers)
        unused = pids.difference(pid for (pid,) in rows_of_keys(database, _USED, pids))
        delete_keys(database, "preds", "pid", unused)
        insert_rows(database, "free_preds", _FREE, [(pid,) for pid in sorted(unused)])

    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        return find_by_event(database, events, range(first, last), "SELECT pid FROM preds", _query)


def _key(predicate: Predicate) -> int:
    return row_key(predicate.attribute, predicate.operator, str(predicate.storage), predicate.value)


def _query(satisfied: str) -> str:
    """The query for rows that hold, given the query for predicates that hold."""
    return (
        "SELECT subs.sid FROM subs JOIN"
        f" (SELECT sid, count(*) AS x FROM subs_preds WHERE pid IN ({satisfied}) GROUP BY sid) AS held"
        " ON subs.sid = held.sid AND subs.cnt = held.x"
    )
