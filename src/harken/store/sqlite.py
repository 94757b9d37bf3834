"""SQLite under the store: one file, WAL, every commit on disk."""

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
"""Pages of the WAL after which it is written back: more, so that pages that many batches change are written less."""
_LOG_BYTES = 32 << 20
"""Bytes of the WAL that stay on disk once it was written back."""
_FEWEST_FREE, _FREE_SHARE = 4_096, 4
"""Free pages are given back if there are more than this, and more than a quarter of all."""
_GIVEN_BACK_AT_ONCE = 1_000
_PATIENCE_MS = 200
"""How long the WAL's end waits for those who read, and writers with it."""


class SqliteDatabase(StoreDatabase):
    """A file. One connection writes, and as many as are needed read."""

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
                if not _pragma(writer, "page_count"):  # later it would have no effect
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
        with suppress(StoreError), self._writer() as writer:  # somebody may read: a later checkpoint does it then
            writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def give_back(self) -> bool:
        """A file of an earlier Harken gives nothing back until it had a VACUUM: it uses what is free again."""
        with self._writer() as writer:
            self._end_log(writer)
            if not _has_much_free(writer) or not _pragma(writer, "auto_vacuum"):
                return False
            # It has a row without columns for each page, after the first of which `execute` would stop.
            writer.driver.executescript(f"PRAGMA incremental_vacuum({_GIVEN_BACK_AT_ONCE})")
            has_more = _has_much_free(writer)
            if not has_more:
                writer.rows("PRAGMA wal_checkpoint(PASSIVE)")  # cuts the file
            return has_more

    def _end_log(self, writer: StoreConnection) -> None:
        """Begin the WAL anew if it is long: where somebody always reads, SQLite does not by itself."""
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
    """Make the file, for its owner only, if it is not there. SQLite gives the files beside it the same rights."""
    with suppress(OSError):  # it is there, or SQLite says why it cannot be
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _set_wal(writer: StoreConnection) -> str:
    """Set the mode, and return the one that it is. SQLite itself does not wait for others who set it, too."""
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
