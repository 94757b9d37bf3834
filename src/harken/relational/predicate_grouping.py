"""Predicate grouping in a database (ToPSS, section 4.2): each distinct predicate is stored and tested once.

The relations are subs(sid, cnt), preds(pid, attr, op, val) and subs_preds(sid, pid). A query is made for each
publication: it finds the predicates that hold, and the subscriptions that have as many of them as they have in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.relational.databases import Database
from harken.relational.matcher import RelationalMatcher
from harken.relational.predicate_rows import Predicate, alternatives, columns_of, conditions, indexes, value_columns
from harken.relational.sql_rows import SqlRow
from harken.relational.typed_events import TypedEvents
from harken.relational.typed_values import Storage


class PredicateGrouping(RelationalMatcher):
    """Counts the predicates that hold, by subscription."""

    tables = ("subs", "preds", "subs_preds")

    def _create(self, database: Database) -> None:
        self._pids: dict[Predicate, int] = {}
        self._known: dict[int, tuple[Predicate, int]] = {}
        """Each predicate by its pid, and how many rows have it."""
        self._free: list[int] = []
        dialect = database.dialect
        kind = "TEMPORARY TABLE" if dialect.is_temporary else "TABLE"
        whole = dialect.types[Storage.WHOLE]
        database.run(f"CREATE {kind} subs (sid {whole}, row_of {whole}, cnt {whole})")
        database.run(f"CREATE {kind} preds (pid {whole}, {value_columns(dialect)})")
        database.run(f"CREATE {kind} subs_preds (sid {whole}, row_of {whole}, pid {whole})")
        if dialect.has_indexes:
            for statement in (
                "CREATE INDEX subs_sid ON subs (sid)",
                "CREATE INDEX subs_row ON subs (row_of)",
                "CREATE INDEX preds_pid ON preds (pid)",
                "CREATE INDEX subs_preds_pid ON subs_preds (pid, sid)",
                "CREATE INDEX subs_preds_row ON subs_preds (row_of)",
                *indexes("preds"),
            ):
                database.run(statement)

    def _insert(self, database: Database, rows: list[SqlRow]) -> None:
        subs: list[tuple[int, int, int]] = []
        pairs: list[tuple[int, int, int]] = []
        new: dict[int, Predicate] = {}
        for row in rows:
            for sid, predicates in alternatives(row):
                subs.append((sid, row.sid, len(predicates)))
                pairs += ((sid, row.sid, self._shared(each, new)) for each in predicates)
        database.insert("subs", _columns(("sid", "row_of", "cnt"), subs))
        database.insert("subs_preds", _columns(("sid", "row_of", "pid"), pairs))
        if new:
            database.insert("preds", {"pid": (Storage.WHOLE, list(new))} | columns_of(list(new.values())))

    def _shared(self, predicate: Predicate, new: dict[int, Predicate]) -> int:
        """The pid of a predicate that one more row has. Pids are recycled."""
        pid = self._pids.get(predicate)
        if pid is None:
            pid = self._pids[predicate] = self._free.pop() if self._free else len(self._pids) + 1
            new[pid] = predicate
        self._known[pid] = predicate, self._known.get(pid, (predicate, 0))[1] + 1
        return pid

    def _delete(self, database: Database, sids: Sequence[int]) -> None:
        mark = database.parameter(1)
        gone: list[int] = []
        for sid in sids:
            for (pid,) in database.integers(f"SELECT pid FROM subs_preds WHERE row_of = {mark}", (sid,)).tolist():
                predicate, count = self._known[pid]
                self._known[pid] = predicate, count - 1
                if count == 1:
                    del self._known[pid], self._pids[predicate]
                    gone.append(pid)
        rows = [(sid,) for sid in sids]
        database.run_many(f"DELETE FROM subs_preds WHERE row_of = {mark}", rows)
        database.run_many(f"DELETE FROM subs WHERE row_of = {mark}", rows)
        if gone:
            database.run_many(f"DELETE FROM preds WHERE pid = {mark}", [(pid,) for pid in gone])
            self._free += gone

    def _find(self, database: Database, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        found: list[NDArray[np.int64]] = []
        for event, facts in enumerate(events.by_event()[first:last], first):
            if events.apart[event]:
                continue
            texts, values = conditions(facts, database.parameter)
            held = " UNION ALL ".join(f"SELECT pid FROM preds WHERE {text}" for text in texts)
            sids = database.integers(
                "SELECT subs.sid FROM subs JOIN"
                f" (SELECT sid, count(*) AS x FROM subs_preds WHERE pid IN ({held}) GROUP BY sid) AS held"
                " ON subs.sid = held.sid AND subs.cnt = held.x",
                values,
            )
            found.append(np.insert(sids, 0, event, axis=1))
        return np.concatenate([np.empty((0, 2), np.int64), *found])


def _columns(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> dict[str, tuple[Storage, list[Any]]]:
    return {name: (Storage.WHOLE, [row[place] for row in rows]) for place, name in enumerate(names)}
