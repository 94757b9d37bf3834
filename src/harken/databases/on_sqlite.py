"""Connections to SQLite, inside the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

from harken.databases.connection import ColumnValues, Connection, Row
from harken.databases.dialects import DIALECTS, Dialect, Storage

_ROWS_AT_ONCE = 512
"""Rows of one INSERT. A statement for each row would release the interpreter's lock for each row."""
_MOST_VALUES = 32_000
"""Most values of one statement. SQLite takes 32,766."""
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
}
_LOST = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""Errors after which a connection may stay unusable, even when the file can be used again."""


class SqliteConnection(Connection):
    """A connection to a file, or to a private database in memory."""

    dialect: ClassVar[Dialect] = DIALECTS["sqlite"]

    def __init__(self, path: str = ":memory:", *settings: str, busy_seconds: float = 5.0) -> None:
        super().__init__()
        self._path = path
        self._settings = settings
        """Pragmas to set when the connection is opened, such as "synchronous = NORMAL"."""
        self._busy_seconds = busy_seconds
        """How long to wait for a lock on the file."""
        self._relations: dict[str, dict[str, Storage]] = {}
        """The columns of each table that `relation` made."""

    def _opened(self) -> sqlite3.Connection:
        self._relations = {}
        # Threads may use the connection in turn. Prepared statements are cached.
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
    def is_transient(cls, error: BaseException) -> bool:
        return code_of(error) in _UNAVAILABLE

    def is_lost(self, error: BaseException) -> bool:
        return code_of(error) in _LOST

    def parameter(self, place: int) -> str:
        return f"?{place}"

    def marked(self, text: str) -> str:
        """A statement with a `?` for each value, and no other `?`, as the driver takes it: unchanged."""
        return text

    def insert(self, table: str, columns: ColumnValues) -> None:
        self.insert_rows(table, list(columns), list(zip(*(values for _, values in columns.values()), strict=True)))

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows, by statements for 512, 256, … and 1 rows, so that the cache of statements has few."""
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
            self.run(f"DROP TABLE IF EXISTS temp.{name}")
            listed = ", ".join(f"{column} {self.dialect.types[storage]}" for column, storage in wanted.items())
            self.run(f"CREATE TEMPORARY TABLE {name} ({listed})")
            self._relations[name] = wanted
        self.run(f"DELETE FROM {name}")
        self.insert(name, columns)
        if is_new:  # without ANALYZE SQLite expects a million rows, and reads whole indexes for Bloom filters
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
    """The primary result code of an error; None if it is none of SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
