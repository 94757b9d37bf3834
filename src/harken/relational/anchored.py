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
    Anchor,
    ColumnsByAnchor,
    PredicateColumns,
    anchor_columns,
    anchor_of,
    indexes,
    queries,
    range_indexes,
    values_of,
)
from harken.relational.anchors import MOST_VALUES, Anchors
from harken.relational.relational_matcher import RelationalMatcher
from harken.relational.sql_rows import SqlRow, number_of_sid
from harken.relational.tables import create_table, delete_keys, insert_rows
from harken.relational.typed_events import TypedEvents

USED = "anchored_columns"
"""The table of the columns that the rows of each anchor use."""
_USED_COLUMNS = {
    **dict.fromkeys(("anchor", "is_range", "attribute", "is_outside"), Storage.WHOLE),
    **dict.fromkeys(("anchor_storage", "storage"), Storage.TEXT),
}
MOST_COLUMNS = 256
"""Most attributes with columns. Databases limit the columns of a table: SQLite to 2,000, PostgreSQL to 1,600."""


class RelationalAnchored(RelationalMatcher):
    """Joins events with rows of subscriptions by their anchors."""

    tables = (TABLE, USED)
    row_ids = f"SELECT sid FROM {TABLE}"
    most_columns: ClassVar[int | None] = MOST_COLUMNS

    def _create(self, database: Connection) -> None:
        self._anchors = Anchors()
        self._columns: ColumnsByAnchor = {}
        """Columns of removed rows stay until the tables are filled again, which costs needless tests only."""
        self._storages: dict[str, Storage] = {"sid": Storage.WHOLE, "number": Storage.WHOLE, **anchor_columns()}
        # The query has a branch for each anchor: for a single event, planning takes longer than running it.
        dialect = database.dialect
        for statement in (*dialect.planned_once, *dialect.own_types):
            database.run(statement)
        create_table(database, TABLE, self._storages, number="number")
        create_table(database, USED, _USED_COLUMNS)
        for statement in indexes(dialect):
            database.run(statement)

    def _reopen(self, database: Connection) -> None:
        self._anchors = Anchors()
        self._columns = {}
        self._storages = {"sid": Storage.WHOLE, "number": Storage.WHOLE, **anchor_columns()}
        for anchor, is_range, attribute, is_outside, held, storage in database.rows(f"SELECT * FROM {USED}"):
            key = Anchor(anchor, Storage(held), bool(is_range))
            pairs = self._columns.setdefault(key, set())
            if attribute:
                pair = PredicateColumns(attribute, Storage(storage), bool(is_outside))
                pairs.add(pair)
                self._storages |= dict.fromkeys(pair.columns, pair.storage)
            if anchor and not is_range:
                query = f"SELECT DISTINCT {held}_lo FROM {TABLE} WHERE anchor = {key.number} LIMIT {MOST_VALUES}"
                self._anchors.learn_values(anchor, (value for (value,) in database.rows(query)))

    def _insert(self, database: Connection, rows: list[SqlRow]) -> None:
        self._anchors.learn(rows)
        before = {anchor: set(used) for anchor, used in self._columns.items()}
        inserted: list[dict[str, Any]] = []
        for sid, predicates in rows:
            chosen = self._anchors.choose(predicates)
            values, used = values_of(predicates, chosen)
            values |= {"sid": sid, "number": number_of_sid(sid)}
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
        for statement in range_indexes(database.dialect, self._columns.keys() - before.keys()):
            database.run(statement)
        self._store_used(database, before)

    def _store_used(self, database: Connection, before: ColumnsByAnchor) -> None:
        """Insert the anchors and columns that were not used before."""
        rows: list[tuple[int, int, int, int, str, str]] = []
        for anchor, used in self._columns.items():
            head = anchor.attribute, int(anchor.is_range)
            if anchor not in before:
                rows.append((*head, 0, 0, anchor.storage.value, anchor.storage.value))
            rows += [
                (*head, each.attribute, int(each.is_outside), anchor.storage.value, each.storage.value)
                for each in used - before.get(anchor, set())
            ]
        insert_rows(database, USED, _USED_COLUMNS, rows)

    def _delete(self, database: Connection, numbers: Sequence[int]) -> None:
        delete_keys(database, TABLE, "number", numbers)

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
