"""One row a conjunction, found by its most selective equality: a batch of events is joined with them in one query.

Harken's own, for those who must stay inside a database. The rest of a conjunction is columns of the same row, so that
nothing is counted, and the join looks only at rows whose key an event has. Rows without an equality are found by their
most selective range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.databases.connection import ColumnValues, Connection
from harken.databases.dialects import Storage
from harken.relational.anchored_tables import (
    TABLE,
    Uses,
    anchor_columns,
    anchor_of,
    indexes,
    queries,
    range_indexes,
    values_of,
)
from harken.relational.anchors import Anchors
from harken.relational.relational_matcher import RelationalMatcher
from harken.relational.sql_rows import SqlRow
from harken.relational.tables import create_table
from harken.relational.typed_events import TypedEvents

MOST_COLUMNS = 256
"""Attributes that have columns. Databases bound the columns of a table: SQLite 2,000, PostgreSQL 1,600."""


class RelationalAnchored(RelationalMatcher):
    """Joins events with subscriptions by key."""

    tables = (TABLE,)
    most_columns: ClassVar[int | None] = MOST_COLUMNS

    def _create(self, database: Connection) -> None:
        self._anchors = Anchors()
        self._uses: Uses = {}
        """Those of rows that left are among them: then a condition is tested in vain, until the tables are refilled."""
        self._storages: dict[str, Storage] = {"sid": Storage.WHOLE, **anchor_columns()}
        dialect = database.dialect
        # The query has a branch an anchor: for an event alone, planning it takes longer than running it.
        for statement in (*dialect.planned_once, *dialect.own_types):
            database.run(statement)
        create_table(database, TABLE, self._storages, sid="sid")
        for statement in indexes(dialect):
            database.run(statement)

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        self._anchors.learn(rows)
        known = set(self._uses)
        made: list[dict[str, Any]] = []
        for sid, predicates in rows:
            chosen = self._anchors.choose(predicates)
            values, uses = values_of(predicates, chosen)
            values["sid"] = sid
            made.append(values)
            self._uses.setdefault(anchor_of(chosen), set()).update(uses)
            for use in uses:
                for name in use.columns:
                    if name not in self._storages:
                        self._storages[name] = use.storage
                        database.run(f"ALTER TABLE {TABLE} ADD COLUMN {name} {database.dialect.types[use.storage]}")
        made.sort(key=lambda values: values["anchor"])  # rows of one anchor lie together, where there is no index
        names = {name: None for values in made for name in values}
        database.insert(TABLE, {name: (self._storages[name], [each.get(name) for each in made]) for name in names})
        for statement in range_indexes(database.dialect, self._uses.keys() - known):
            database.run(statement)

    def _delete(self, database: Connection, sids: Sequence[int]) -> None:
        database.run_many(f"DELETE FROM {TABLE} WHERE sid = {database.parameter(1)}", [(sid,) for sid in sids])

    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        kept = [event for event in range(first, last) if not events.apart[event]]
        if not kept or not self._uses:
            return np.empty((0, 2), np.int64)
        beginning, values = database.relation("events", self._event_columns(events, kept, first, last))
        found = [
            database.integers(beginning + text, values)
            for text in queries(database.dialect, self._uses, "e.event, s.sid")
        ]
        return np.concatenate(found)

    def _event_columns(self, events: TypedEvents, kept: list[int], first: int, last: int) -> ColumnValues:
        """All attributes that some row asks for, in one order: statements stay the same from batch to batch."""
        known = {each.attribute: each for each in events.columns}
        asked = {anchor.attribute: anchor.storage for anchor in self._uses if anchor.attribute}
        asked |= {use.attribute: use.storage for uses in self._uses.values() for use in uses}
        found: dict[str, tuple[Storage, list[Any]]] = {"event": (Storage.WHOLE, list(kept))}
        for attribute, storage in sorted(asked.items()):
            values: list[Any] = [None] * (last - first)
            column = known.get(attribute)
            if column is not None:
                begin, end = np.searchsorted(column.rows, (first, last)).tolist()
                for row, value in zip((column.rows[begin:end] - first).tolist(), column.values[begin:end], strict=True):
                    values[row] = value
            found[f"c{attribute}"] = storage, [values[event - first] for event in kept]
        return found
