"""SQLite under the store: one file, WAL, every commit on disk."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from harken.errors import StoreError, StoreUnavailableError
from harken.store.database import Row, Transaction, places

_BUSY_SECONDS = 30.0
_CACHE_KIB = 65_536
_CHECKPOINT_PAGES = 4_000
"""Pages of the WAL after which it is written back: more, so that pages that many batches change are written less."""
_LOG_BYTES = 32 << 20
"""Bytes of the WAL that stay on disk once it was written back."""
_FEWEST_FREE, _FREE_SHARE = 4_096, 4
"""Free pages are given back if there are more than this, and more than a quarter of all."""
_GIVEN_BACK_AT_ONCE = 1_000
_PATIENCE_MS = 200
"""How long the WAL's end waits for those who read, and writers with it."""
_ROWS_AT_ONCE = 512
"""Rows of one INSERT. A statement a row would hand the interpreter's lock over for each of them."""
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


class SqliteDatabase:
    """A file. One connection writes, and as many as are needed read."""

    words: ClassVar[dict[str, str]] = {
        "integer": "INTEGER",
        "text": "TEXT",
        "blob": "BLOB",
        "by_key": " WITHOUT ROWID",
        "layout": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'layout'",
    }

    def __init__(self, path: str) -> None:
        self._path = path
        self._write_lock = threading.Lock()
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._closed = False
        self._is_lost = False
        """Whether the connection that writes has to be made anew."""
        _create_private(path)
        with _sqlite_errors(path):
            self._writer = self._connected()
            try:
                if not self._pragma("page_count"):  # later it would have no effect
                    self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
                if _set_wal(self._writer) != "wal":
                    raise StoreError(f"{path} cannot be kept in WAL mode: is it on a network file system?")
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._write_lock, _sqlite_errors(self._path):
            if self._is_lost:
                self._writer.close()
                self._writer, self._is_lost = self._connected(), False
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield _SqliteTransaction(self._writer)
                self._writer.execute("COMMIT")
            except BaseException as error:
                self._is_lost = _code(error) in _LOST
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself where the disk was full
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def erasing(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            ((before,),) = transaction.rows("PRAGMA secure_delete")
            transaction.rows("PRAGMA secure_delete = ON")
            try:
                yield transaction
            finally:
                with suppress(sqlite3.Error):
                    transaction.rows(f"PRAGMA secure_delete = {before}")
        with self._write_lock, suppress(sqlite3.Error):  # somebody may read: a later checkpoint does it then
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def migrating(self) -> AbstractContextManager[Transaction]:
        return self.writing()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with _sqlite_errors(self._path):
            try:
                connection = self._readers.get_nowait()
            except Empty:
                connection = self._connected()
                connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            try:
                yield _SqliteTransaction(connection)
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                if self._closed:
                    connection.close()
                else:
                    self._readers.put(connection)

    def give_back(self) -> bool:
        """A file of an earlier Harken gives nothing back until it had a VACUUM: it uses what is free again."""
        with self._write_lock, _sqlite_errors(self._path):
            self._end_log()
            if not self._has_much_free() or not self._pragma("auto_vacuum"):
                return False
            # It has a row without columns for each page, after the first of which `execute` would stop.
            self._writer.executescript(f"PRAGMA incremental_vacuum({_GIVEN_BACK_AT_ONCE})")
            has_more = self._has_much_free()
            if not has_more:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # cuts the file
            return has_more

    def _has_much_free(self) -> bool:
        return self._pragma("freelist_count") > max(_FEWEST_FREE, self._pragma("page_count") // _FREE_SHARE)

    def _end_log(self) -> None:
        """Begin the WAL anew if it is long: where somebody always reads, SQLite does not by itself."""
        with suppress(OSError):
            if Path(f"{self._path}-wal").stat().st_size > _LOG_BYTES:
                self._writer.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
                try:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1_000:.0f}")

    def _pragma(self, name: str) -> int:
        return int(self._writer.execute(f"PRAGMA {name}").fetchone()[0])

    def claims(self) -> str:
        return ""  # one process has the file

    def close(self) -> None:
        self._closed = True
        with self._write_lock, suppress(sqlite3.Error):
            self._writer.close()
        with suppress(Empty):
            while True:
                self._readers.get_nowait().close()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        return connection


class _SqliteTransaction:
    writes_whole_pages: ClassVar[bool] = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(text, values).fetchall()

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        cursor = self._connection.execute(text, values)
        while found := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from found

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(text, values).rowcount

    def contains(self, column: str) -> str:
        return f"instr({column}, ?) > 0"

    def announce(self, text: str) -> None:
        """Nobody else has the file."""

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """In statements of 512, 256, … and 1 rows, which SQLite keeps prepared."""
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        row = places(len(columns))
        start = 0
        while start < len(rows):
            count = min(_ROWS_AT_ONCE, 1 << ((len(rows) - start).bit_length() - 1))
            values = [value for each in rows[start : start + count] for value in each]
            self._connection.execute(head + ", ".join([row] * count), values)
            start += count


def _create_private(path: str) -> None:
    """Make the file, for its owner only, if it is not there. SQLite gives the files beside it the same rights."""
    with suppress(OSError):  # it is there, or SQLite says why it cannot be
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _set_wal(connection: sqlite3.Connection) -> str:
    """Set the mode, and return the one that it is. SQLite itself does not wait for others who set it, too."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _code(error: BaseException) -> int | None:
    """What SQLite calls an error, without the details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


@contextmanager
def _sqlite_errors(path: str) -> Iterator[None]:
    """Errors of SQLite as those of the store."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise StoreError("a text has a lone surrogate, which UTF-8 cannot encode") from error
    except sqlite3.Error as error:
        kind = StoreUnavailableError if _code(error) in _UNAVAILABLE else StoreError
        raise kind(f"the store {Path(path).name} cannot be used: {error}") from error
