"""Create the tables of a matcher with their indexes, and insert rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.databases.connection import Connection
from harken.databases.dialects import Storage

Columns = Mapping[str, Storage]


def create_table(database: Connection, table: str, columns: Columns, **indexes: str) -> None:
    """Create a table and, if the database has any, indexes: `indexes` maps the ends of their names to columns."""
    dialect = database.dialect
    kind = "TEMPORARY TABLE" if dialect.is_temporary else "TABLE"
    listed = ", ".join(f"{name} {dialect.types[storage]}" for name, storage in columns.items())
    database.run(f"CREATE {kind} {table} ({listed})")
    if dialect.has_indexes:
        for name, indexed in indexes.items():
            database.run(f"CREATE INDEX {table}_{name} ON {table} ({indexed})")


def insert_rows(database: Connection, table: str, columns: Columns, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, each with a value for every column."""
    if rows:
        values = zip(*rows, strict=True)
        stored = {name: (storage, list(each)) for (name, storage), each in zip(columns.items(), values, strict=True)}
        database.insert(table, stored)
