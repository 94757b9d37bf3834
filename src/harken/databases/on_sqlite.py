"""SQLite, inside the process, with b-trees."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

from harken.databases.connection import ColumnValues, Connection, Row
from harken.databases.dialects import DIALECTS, Dialect, Storage

_ROWS_AT_ONCE = 512
"""Rows of one INSERT. A statement a row would hand the interpreter's lock over for each of them."""
_MOST_VALUES = 32_000
"""Values of one statement: SQLite takes 32,766."""
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
}
_LOST = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""After these a connection may stay of no use, also when the file is in order again."""


class SqliteConnection(Connection):
    """A file, or a database in memory that no other connection sees."""

    dialect: ClassVar[Dialect] = DIALECTS["sqlite"]

    def __init__(self, path: str = ":memory:", *settings: str, busy_seconds: float = 5.0) -> None:
        super().__init__()
        self._path = path
        self._settings = settings
        """Pragmas that a new connection is given."""
        self._busy_seconds = busy_seconds
        """How long it waits for others that have locked the file."""
        self._relations: dict[str, dict[str, Storage]] = {}

    def _opened(self) -> sqlite3.Connection:
        self._relations = {}
        # Threads take turns under the lock of whoever has it. Statements are prepared once and kept.
        driver = sqlite3.connect(
            self._path,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        for each in self._settings:
            driver.execute(f"PRAGMA {each}")
        return driver

    @classmethod
    def errors(cls) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    @classmethod
    def is_passing(cls, error: BaseException) -> bool:
        return code_of(error) in _UNAVAILABLE

    def is_lost(self, error: BaseException) -> bool:
        return code_of(error) in _LOST

    def parameter(self, place: int) -> str:
        return f"?{place}"

    def marked(self, text: str) -> str:
        """A statement that has a `?` for each of its values, and no other, as the driver takes it."""
        return text

    def insert(self, table: str, columns: ColumnValues) -> None:
        self.insert_rows(table, list(columns), list(zip(*(values for _, values in columns.values()), strict=True)))

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows, in statements of 512, 256, … and 1 of them, which SQLite keeps prepared."""
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        marks = f"({', '.join('?' * len(columns))})"
        most = min(_ROWS_AT_ONCE, 1 << (_MOST_VALUES // len(columns)).bit_length() - 1)
        start = 0
        while start < len(rows):
            count = min(most, 1 << (len(rows) - start).bit_length() - 1)
            values = [value for each in rows[start : start + count] for value in each]
            self.driver.execute(head + ", ".join([marks] * count), values)
            start += count

    def relation(self, name: str, columns: ColumnValues) -> tuple[str, list[Any]]:
        wanted = {column: storage for column, (storage, _) in columns.items()}
        is_new = wanted != self._relations.get(name)
        if is_new:
            self.run(f"DROP TABLE IF EXISTS {name}")
            listed = ", ".join(f"{column} {self.dialect.types[storage]}" for column, storage in wanted.items())
            self.run(f"CREATE TABLE {name} ({listed})")
            self._relations[name] = wanted
        self.run(f"DELETE FROM {name}")
        self.insert(name, columns)
        if is_new:  # else it expects a million rows, and reads whole indexes for Bloom filters
            self.run(f"ANALYZE {name}")
        return "", []

    def analyse(self, tables: Sequence[str]) -> None:
        self.run("PRAGMA analysis_limit = 1000")
        for table in tables:
            self.run(f"ANALYZE {table}")

    def size(self, tables: Sequence[str]) -> int:
        pages, page = (self.rows(f"PRAGMA {name}")[0][0] for name in ("page_count", "page_size"))
        return int(pages * page)


def code_of(error: BaseException) -> int | None:
    """What SQLite calls an error, without the details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
