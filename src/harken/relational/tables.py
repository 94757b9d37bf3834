"""Create the tables of a matcher with their indexes, insert rows, and join tables with given rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from harken.databases.connection import Connection, Row
from harken.databases.dialects import Storage

Columns = Mapping[str, Storage]
GIVEN = "given"
"""The name under which a query reads given keys: `given.key`."""
_FEW = 16
"""Most keys that are written into a statement. They are integers."""


def create_table(database: Connection, table: str, columns: Columns, **indexes: str) -> None:
    """Create a table and, if the database has any, indexes: `indexes` maps the ends of their names to columns."""
    _create(database, table, columns, indexes, is_temporary=database.dialect.is_temporary)


def create_scratch(database: Connection, table: str, columns: Columns, **indexes: str) -> None:
    """Create a table that ends with the session, and is never written to the database's file."""
    _create(database, table, columns, indexes, is_temporary=True)


def _create(
    database: Connection, table: str, columns: Columns, indexes: Mapping[str, str], *, is_temporary: bool
) -> None:
    dialect = database.dialect
    kind = "TEMPORARY TABLE" if is_temporary else "TABLE"
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


def row_key(*parts: object) -> int:
    """A key of 64 bits, by which rows with these values are found. Who finds a row compares the values."""
    digest = blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def rows_of_keys(database: Connection, query: str, keys: Iterable[int]) -> list[Row]:
    """The rows of a query that joins a table with `given`, which has the keys. Without keys there are none."""
    listed = list(keys)
    if not listed:
        return []
    beginning, values = _given(database, listed)
    return database.rows(beginning + query, values)


def delete_keys(database: Connection, table: str, column: str, keys: Iterable[int], also: str = "") -> None:
    """Delete the rows of a table whose column has one of the keys. `also` is a further condition."""
    listed = list(keys)
    if listed:
        beginning, values = _given(database, listed)
        condition = f"{column} IN (SELECT key FROM {GIVEN}){also and f' AND {also}'}"
        database.run(f"{beginning}DELETE FROM {table} WHERE {condition}", values)


def _given(database: Connection, keys: list[int]) -> tuple[str, list[Any]]:
    """The text to put before a statement that reads `given`, and its values."""
    if len(keys) > _FEW or database.dialect.keeps_order:
        return database.relation(GIVEN, {"key": (Storage.WHOLE, keys)})
    # Passing a table costs DuckDB a millisecond.
    return f"WITH {GIVEN}(key) AS (VALUES {', '.join(f'({key:d})' for key in keys)}) ", []
