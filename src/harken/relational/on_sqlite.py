"""SQLite, inside the process and in memory, with b-trees."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harken.relational.databases import DIALECTS, Dialect, EventColumn
from harken.relational.typed_values import Storage


class SqliteMatching:
    """A database of one matcher."""

    dialect: ClassVar[Dialect] = DIALECTS["sqlite"]

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._columns: tuple[tuple[str, Storage], ...] = ()

    def connect(self) -> None:
        self.close()
        # Threads take turns under the matcher's lock. Statements are prepared once and kept.
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
        )
        self._columns = ()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None, "it is not connected"
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        yield  # a matcher whose change failed connects anew: there is nothing to roll back
        self.connection.execute("COMMIT")

    def parameter(self, place: int) -> str:
        return f"?{place}"

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self.connection.execute(statement, values)

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        self.connection.executemany(statement, values)

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        cursor = self.connection.execute(query, values)
        return np.array(cursor.fetchall(), np.int64).reshape(-1, len(cursor.description))

    def insert(self, table: str, columns: Mapping[str, tuple[Storage, list[Any]]]) -> None:
        marks = ", ".join("?" * len(columns))
        rows = zip(*(values for _, values in columns.values()), strict=True)
        self.connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def events(self, columns: Sequence[EventColumn]) -> tuple[str, list[Any]]:
        wanted = tuple((name, storage) for name, storage, _ in columns)
        is_new = wanted != self._columns
        if is_new:
            self.connection.execute("DROP TABLE IF EXISTS events")
            listed = ", ".join(f"{name} {self.dialect.types[storage]}" for name, storage in wanted)
            self.connection.execute(f"CREATE TABLE events ({listed})")
            self._columns = wanted
        self.connection.execute("DELETE FROM events")
        self.insert("events", {name: (storage, values) for name, storage, values in columns})
        if is_new:  # else it expects a million events, and reads whole indexes for Bloom filters
            self.connection.execute("ANALYZE events")
        return "", []

    def analyse(self, tables: Sequence[str]) -> None:
        self.connection.execute("PRAGMA analysis_limit = 1000")
        for table in tables:
            self.connection.execute(f"ANALYZE {table}")

    def size(self, tables: Sequence[str]) -> int:
        pages, page = (self.integers(f"PRAGMA {name}")[0, 0] for name in ("page_count", "page_size"))
        return int(pages * page)
