"""Sequential search in a database (ToPSS, section 4.1): one row a predicate, counted by subscription.

The relation is subs(sid, attr, op, val). There is one query for each event: it counts, by subscription, the predicates
that hold, and selects the subscriptions that have as many predicates in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.relational_matcher import RelationalMatcher
from harken.relational.sql_rows import SqlRow, number_of_sid
from harken.relational.tables import create_table, delete_keys
from harken.relational.typed_events import TypedEvents
from harken_lab.plans.predicate_rows import (
    VALUE_COLUMNS,
    alternatives,
    columns_of,
    create_value_indexes,
    find_by_event,
)

_COLUMNS = {**dict.fromkeys(("sid", "row_of", "number"), Storage.WHOLE), **VALUE_COLUMNS}


class SequentialSearch(RelationalMatcher):
    """The matcher: tests all predicates of all subscriptions."""

    tables = ("subs",)
    row_ids = "SELECT DISTINCT row_of AS sid FROM subs"

    def _create(self, database: Connection) -> None:
        create_table(database, "subs", _COLUMNS, number="number")
        create_value_indexes(database, "subs")

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        predicates = [(row.sid, sid, each) for row in rows for sid, several in alternatives(row) for each in several]
        columns: dict[str, tuple[Storage, list[Any]]] = {
            "sid": (Storage.WHOLE, [sid for _, sid, _ in predicates]),
            "row_of": (Storage.WHOLE, [row for row, _, _ in predicates]),
            "number": (Storage.WHOLE, [number_of_sid(row) for row, _, _ in predicates]),
        }
        database.insert("subs", columns | columns_of([each for _, _, each in predicates]))

    def _delete(self, database: Connection, numbers: Sequence[int]) -> None:
        delete_keys(database, "subs", "number", numbers)

    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        return find_by_event(database, events, range(first, last), "SELECT sid FROM subs", _query)


def _query(satisfied: str) -> str:
    """The query for rows that hold, given the query for predicates that hold."""
    return (
        f"SELECT held.sid FROM (SELECT sid, count(*) AS x FROM ({satisfied}) AS t GROUP BY sid) AS held"
        " JOIN (SELECT sid, count(*) AS x FROM subs GROUP BY sid) AS whole"
        " ON held.sid = whole.sid AND held.x = whole.x"
    )
