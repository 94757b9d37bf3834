"""SQLite under the store: one file in WAL mode; every commit is flushed to disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from harken.databases.on_sqlite import SqliteConnection, code_of
from harken.errors import StoreError
from harken.store.database import StoreConnection, StoreDatabase, Transaction

_BUSY_SECONDS = 30.0
_CACHE_KIB = 65_536
_CHECKPOINT_PAGES = 4_000
"""Pages of the WAL per checkpoint. SQLite's lower default rewrites pages that many batches change more often."""
_LOG_BYTES = 32 << 20
"""Bytes to which the WAL file is truncated after a checkpoint."""
_FEWEST_FREE, _FREE_SHARE = 4_096, 4
"""Shrink the file if it has more free pages than `_FEWEST_FREE` and than 1/_FREE_SHARE of all."""
_FREED_AT_ONCE = 1_000
_PATIENCE_MS = 200
"""How long truncating the WAL waits for readers. Writers wait meanwhile."""


class SqliteDatabase(StoreDatabase):
    """A file. One connection writes, any number of others read."""

    kind = SqliteConnection
    layout = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'layout'"
    writes_whole_pages = True
    contains = "instr({}, ?) > 0"
    _begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: str) -> None:
        super().__init__(partial(_connection, path), partial(_connection, path, "query_only = ON"))
        self._path = path
        _create_private(path)
        try:
            with self._writer() as writer:
                if not _pragma(writer, "page_count"):  # it has an effect on an empty file only
                    writer.run("PRAGMA auto_vacuum = INCREMENTAL")
                if _set_wal(writer) != "wal":
                    raise StoreError(f"{path} cannot be kept in WAL mode: is it on a network file system?")
        except BaseException:
            self.close()
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
        with suppress(StoreError), self._writer() as writer:  # while somebody reads, a later checkpoint does it
            writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def shrink(self) -> bool:
        """Truncate the file. A file of an earlier Harken does not shrink before a VACUUM; it reuses its free pages."""
        with self._writer() as writer:
            self._truncate_log(writer)
            if not _has_much_free(writer) or not _pragma(writer, "auto_vacuum"):
                return False
            # The pragma returns a row for each page: `execute` would stop after the first.
            writer.driver.executescript(f"PRAGMA incremental_vacuum({_FREED_AT_ONCE})")
            has_more = _has_much_free(writer)
            if not has_more:
                writer.rows("PRAGMA wal_checkpoint(PASSIVE)")  # truncates the file
            return has_more

    def _truncate_log(self, writer: StoreConnection) -> None:
        """Truncate the WAL if it is long. SQLite does not do it by itself while there is always a reader."""
        with suppress(OSError):
            if Path(f"{self._path}-wal").stat().st_size > _LOG_BYTES:
                writer.run(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
                try:
                    writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    writer.run(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1_000:.0f}")

    def _message(self, error: Exception) -> str:
        return f"the store {Path(self._path).name} cannot be used: {error}"


def _connection(path: str, *settings: str) -> SqliteConnection:
    usual = "synchronous = FULL", f"cache_size = -{_CACHE_KIB}"
    log = f"wal_autocheckpoint = {_CHECKPOINT_PAGES}", f"journal_size_limit = {_LOG_BYTES}"
    return SqliteConnection(path, *usual, *log, *settings, busy_seconds=_BUSY_SECONDS)


def _create_private(path: str) -> None:
    """Create the file, if there is none, readable by its owner only. SQLite gives its -wal and -shm the same mode."""
    with suppress(OSError):  # it exists, or SQLite reports why it cannot be created
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _set_wal(writer: StoreConnection) -> str:
    """Set WAL mode, and return the mode in force. SQLite does not wait for other processes that set it, so retry."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return str(writer.rows("PRAGMA journal_mode = WAL")[0][0])
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _has_much_free(writer: StoreConnection) -> bool:
    return _pragma(writer, "freelist_count") > max(_FEWEST_FREE, _pragma(writer, "page_count") // _FREE_SHARE)


def _pragma(writer: StoreConnection, name: str) -> int:
    return int(writer.rows(f"PRAGMA {name}")[0][0])
