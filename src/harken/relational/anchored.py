"""A matcher with one row a conjunction: one query joins a batch of events with the rows.

Harken's own algorithm, for users who must stay inside a database. A row is found by its most selective equality or, if
it has none, by its most selective range. The other predicates are columns of the same row, so that the join reads only
rows whose key an event has, and counts nothing.
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
    ColumnsByAnchor,
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
"""Most attributes with columns. Databases limit the columns of a table: SQLite to 2,000, PostgreSQL to 1,600."""


class RelationalAnchored(RelationalMatcher):
    """Joins events with rows of subscriptions by their anchors."""

    tables = (TABLE,)
    most_columns: ClassVar[int | None] = MOST_COLUMNS

    def _create(self, database: Connection) -> None:
        self._anchors = Anchors()
        self._columns: ColumnsByAnchor = {}
        """Columns of removed rows stay until the tables are filled again, which costs needless tests only."""
        self._storages: dict[str, Storage] = {"sid": Storage.WHOLE, **anchor_columns()}
        dialect = database.dialect
        # The query has a branch for each anchor: for a single event, planning takes longer than running it.
        for statement in (*dialect.planned_once, *dialect.own_types):
            database.run(statement)
        create_table(database, TABLE, self._storages, sid="sid")
        for statement in indexes(dialect):
            database.run(statement)

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        self._anchors.learn(rows)
        indexed = set(self._columns)
        inserted: list[dict[str, Any]] = []
        for sid, predicates in rows:
            chosen = self._anchors.choose(predicates)
            values, used = values_of(predicates, chosen)
            values["sid"] = sid
            inserted.append(values)
            self._columns.setdefault(anchor_of(chosen), set()).update(used)
            for pair in used:
                for name in pair.columns:
                    if name not in self._storages:
                        self._storages[name] = pair.storage
                        database.run(f"ALTER TABLE {TABLE} ADD COLUMN {name} {database.dialect.types[pair.storage]}")
        inserted.sort(key=lambda values: values["anchor"])  # databases without indexes skip blocks of other anchors
        names = {name: None for values in inserted for name in values}
        database.insert(TABLE, {name: (self._storages[name], [each.get(name) for each in inserted]) for name in names})
        for statement in range_indexes(database.dialect, self._columns.keys() - indexed):
            database.run(statement)

    def _delete(self, database: Connection, sids: Sequence[int]) -> None:
        database.run_many(f"DELETE FROM {TABLE} WHERE sid = {database.parameter(1)}", [(sid,) for sid in sids])

    def _find(self, database: Connection, events: TypedEvents, first: int, last: int) -> NDArray[np.int64]:
        kept = [event for event in range(first, last) if not events.excluded[event]]
        if not kept or not self._columns:
            return np.empty((0, 2), np.int64)
        beginning, values = database.relation("events", self._event_columns(events, kept, first, last))
        pairs = [
            database.integers(beginning + text, values)
            for text in queries(database.dialect, self._columns, "e.event, s.sid")
        ]
        return np.concatenate(pairs)

    def _event_columns(self, events: TypedEvents, kept: list[int], first: int, last: int) -> ColumnValues:
        """The values of all attributes that rows use, in one order, so that statements are the same for all batches."""
        by_attribute = {each.attribute: each for each in events.columns}
        used = {anchor.attribute: anchor.storage for anchor in self._columns if anchor.attribute}
        used |= {pair.attribute: pair.storage for several in self._columns.values() for pair in several}
        columns: dict[str, tuple[Storage, list[Any]]] = {"event": (Storage.WHOLE, list(kept))}
        for attribute, storage in sorted(used.items()):
            values: list[Any] = [None] * (last - first)
            column = by_attribute.get(attribute)
            if column is not None:
                begin, end = np.searchsorted(column.rows, (first, last)).tolist()
                for row, value in zip((column.rows[begin:end] - first).tolist(), column.values[begin:end], strict=True):
                    values[row] = value
            columns[f"c{attribute}"] = storage, [values[event - first] for event in kept]
        return columns
