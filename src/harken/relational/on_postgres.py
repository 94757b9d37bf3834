"""PostgreSQL at a URL. Its tables are those of the session: nothing is left behind, and sessions do not meet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.errors import StoreUnavailableError
from harken.relational.databases import Dialect, EventColumn, postgres_dialect
from harken.relational.typed_values import Storage

if TYPE_CHECKING:
    import psycopg

_ARRAYS = {Storage.NUMBER: "float8[]", Storage.TEXT: "text[]", Storage.WHOLE: "int8[]"}
_COPIED = {Storage.NUMBER: "float8", Storage.TEXT: "text", Storage.WHOLE: "int8"}
_SECONDS = 10
"""How long a connection may take to be made."""


class PostgresMatching:
    """A session of one matcher."""

    dialect: ClassVar[Dialect] = postgres_dialect("pg_temp.")

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._process = os.getpid()

    def connect(self) -> None:
        import psycopg

        if self._process == os.getpid():  # to close that of a parent would end the parent's session
            self.close()
        self._process = os.getpid()
        try:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=_SECONDS,
                cursor_factory=psycopg.RawCursor,
                options="-c client_encoding=UTF8 -c jit=off",
            )
        except psycopg.Error:  # its text may quote a part of the URL, and so of the password
            hint = "is the server up, and is the URL right? In a password, %, / and @ are written %25, %2F and %40"
            raise StoreUnavailableError("PostgreSQL cannot be connected to", hint=hint) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def errors(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.Error,)

    @property
    def connection(self) -> psycopg.Connection[Any]:
        assert self._connection is not None, "it is not connected"
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.connection.transaction():
            yield

    def parameter(self, place: int) -> str:
        return f"${place}"

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self.connection.execute(statement, values or None)

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(statement, values)

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        with self.connection.cursor(binary=True) as cursor:
            cursor.execute(query, values or None)
            columns = len(cursor.description or ())
            return np.array(cursor.fetchall(), np.int64).reshape(-1, columns)

    def insert(self, table: str, columns: Mapping[str, tuple[Storage, list[Any]]]) -> None:
        copying = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self.connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.set_types([_COPIED[storage] for storage, _ in columns.values()])
            for row in zip(*(values for _, values in columns.values()), strict=True):
                copy.write_row(row)

    def events(self, columns: Sequence[EventColumn]) -> tuple[str, list[Any]]:
        """As arrays, not as a table: a table would have to be emptied and analysed for every batch."""
        names = ", ".join(name for name, _, _ in columns)
        arrays = ", ".join(f"${place}::{_ARRAYS[each.storage]}" for place, each in enumerate(columns, 1))
        beginning = f"WITH events({names}) AS MATERIALIZED (SELECT * FROM unnest({arrays})) "
        return beginning, [each.values for each in columns]

    def analyse(self, tables: Sequence[str]) -> None:
        self.connection.execute(f"ANALYZE {', '.join(tables)}")

    def size(self, tables: Sequence[str]) -> int:
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in tables)
        return int(self.integers(f"SELECT {sizes}")[0, 0])
