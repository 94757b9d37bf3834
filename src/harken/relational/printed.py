"""Subscriptions as an SQL script: the tables, rows and queries of `relational_anchored`, for use without Harken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harken.codes.columns import Column
from harken.databases.dialects import Dialect, Storage
from harken.databases.quoting import literal
from harken.language.normal_form import NormalForm
from harken.relational.anchored import MOST_COLUMNS
from harken.relational.anchored_tables import (
    ColumnsByAnchor,
    anchor_columns,
    anchor_of,
    indexes,
    queries,
    range_indexes,
    values_of,
)
from harken.relational.anchors import Anchors
from harken.relational.sql_rows import RowMaker, SqlRow
from harken.relational.typed_values import storage_of
from harken.schema import Kind, format_path

ATTRIBUTES, SUBSCRIPTIONS, EVENTS = "harken_attributes", "harken_subscriptions", "harken_events"
_ROWS_AT_ONCE = 200
"""Rows in one INSERT."""


class Script:
    """The statements that create and fill tables of subscriptions, and the query that matches events."""

    def __init__(self) -> None:
        self._maker = RowMaker(MOST_COLUMNS)
        self._rows: list[tuple[str, SqlRow]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, id: str, form: NormalForm) -> None:
        """Add a subscription."""
        self._rows += ((id, row) for row in self._maker.rows(0, form))

    def statements(self, dialect: Dialect, most_rows: int | None = None) -> Iterator[str]:
        """All statements, without semicolons. The last is the query; more than 100 anchors need several queries.

        Rows beyond `most_rows` are not inserted. Raises CapabilityError for an id with NUL, which no literal can have.
        """
        rows, by_anchor = self._filled()
        storages = {"id": Storage.TEXT, "exact": Storage.WHOLE, **anchor_columns()}
        for several in by_anchor.values():
            storages |= {name: pair.storage for pair in sorted(several) for name in pair.columns}
        yield from self._attributes(dialect)
        yield from dialect.own_types
        yield _table(dialect, SUBSCRIPTIONS, storages)
        yield from _inserts(dialect, SUBSCRIPTIONS, list(storages), rows[:most_rows])
        yield from indexes(dialect, SUBSCRIPTIONS)
        yield from range_indexes(dialect, by_anchor, SUBSCRIPTIONS)
        columns = enumerate(self._maker.columns, 1)
        yield _table(dialect, EVENTS, {"event": Storage.TEXT, **{f"c{at}": storage_of(each) for at, each in columns}})
        for query in queries(dialect, by_anchor, "e.event, s.id, s.exact", (EVENTS, SUBSCRIPTIONS)):
            yield f"SELECT event, id, max(exact) AS exact FROM (\n{query}\n) AS matched GROUP BY event, id"

    def _filled(self) -> tuple[list[dict[str, Any]], ColumnsByAnchor]:
        """The values of each row by column, and the columns of predicates."""
        anchors = Anchors()
        anchors.learn(row for _, row in self._rows)
        rows: list[dict[str, Any]] = []
        by_anchor: ColumnsByAnchor = {}
        for id, row in self._rows:
            chosen = anchors.choose(row.predicates)
            values, used = values_of(row.predicates, chosen)
            rows.append({"id": id, "exact": int(row.is_exact), **values})
            by_anchor.setdefault(anchor_of(chosen), set()).update(used)
        return rows, by_anchor

    def _attributes(self, dialect: Dialect) -> Iterator[str]:
        """The table of the attribute of each column of events. Names of attributes are values, not names of columns."""
        columns = ("name", "attribute", "kind")
        yield _table(dialect, ATTRIBUTES, dict.fromkeys(columns, Storage.TEXT))
        rows = [
            {"name": f"c{at}", "attribute": format_path(each.path), "kind": _stored_as(each)}
            for at, each in enumerate(self._maker.columns, 1)
        ]
        yield from _inserts(dialect, ATTRIBUTES, columns, rows)


def _stored_as(column: Column) -> str:
    """The values that a user has to write to a column of events, in words."""
    if column.coded is not None:
        return "the place of the value in its domain, from 0"
    if column.kind is None:
        return "whether there is a value, 0 or 1, never NULL"
    return {
        Kind.BOOLEAN: "boolean, 0 or 1",
        Kind.DATE: "date, in days since 1970-01-01",
        Kind.TIMESTAMP: "timestamp, in microseconds since 1970-01-01 UTC",
    }.get(column.kind, str(column.kind))


def _table(dialect: Dialect, name: str, columns: dict[str, Storage]) -> str:
    listed = ", ".join(f"{column} {dialect.types[storage]}" for column, storage in columns.items())
    return f"CREATE TABLE {name} ({listed}){dialect.table_suffix}"


def _inserts(dialect: Dialect, table: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        tuples = [
            f"({', '.join(literal(row.get(column), dialect) for column in columns)})"
            for row in rows[first : first + _ROWS_AT_ONCE]
        ]
        yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES\n" + ",\n".join(tuples)
