"""The columns of predicates in a table: a matcher that opens its file again has to give them the same places."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harken.codes.columns import Column
from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, insert_rows
from harken.schema import Kind

TABLE = "predicate_columns"
_COLUMNS = {"place": Storage.WHOLE, "description": Storage.TEXT}


def create_columns(database: Connection) -> None:
    """Create the table."""
    create_table(database, TABLE, _COLUMNS)


def store_columns(database: Connection, columns: Sequence[Column], first: int) -> None:
    """Insert the columns from place `first` on."""
    rows = [
        (place, json.dumps([each.path, None if each.kind is None else each.kind.value, each.coded]))
        for place, each in enumerate(columns[first:], first)
    ]
    insert_rows(database, TABLE, _COLUMNS, rows)


def stored_columns(database: Connection) -> list[Column]:
    """All columns, in the order of their places."""
    found = database.rows(f"SELECT description FROM {TABLE} ORDER BY place")
    return [_column(*json.loads(description)) for (description,) in found]


def _column(path: list[str], kind: str | None, coded: list[str] | None) -> Column:
    return Column(tuple(path), None if kind is None else Kind(kind), None if coded is None else tuple(coded))
