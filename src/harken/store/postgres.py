"""PostgreSQL under the store: one connection writes, others read; all tables are in the schema `harken`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from harken.databases.on_postgres import PASSWORD_HINT, SECONDS, PostgresConnection
from harken.errors import StoreError, StoreUnavailableError, reason_of
from harken.store.database import StoreDatabase, Transaction

_MIGRATION_LOCK = 7_401_215_306
"""The advisory lock that a process holds while it creates or changes tables."""
CHANNEL = "harken"
"""The channel on which a process notifies the others after a commit."""


class _StoreSession(PostgresConnection):
    def __init__(self, url: str) -> None:
        super().__init__(url, connect_timeout=SECONDS, options="-c search_path=harken -c synchronous_commit=on")

    def connect(self) -> None:
        try:
            super().connect()
        except self.errors() as error:
            if self.is_transient(error):
                raise StoreUnavailableError(f"PostgreSQL cannot be used now: {_without_address(error)}") from None
            # The driver's message quotes the part that it cannot parse, which may be part of the password.
            raise StoreError("the URL of the store cannot be understood", hint=f"in {PASSWORD_HINT}") from None


class PostgresDatabase(StoreDatabase):
    """A database that several processes may share."""

    kind = PostgresConnection
    layout = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'harken' AND tablename = 'layout'"
    writes_whole_pages = False
    contains = "position(? in {}) > 0"
    notify = f"SELECT pg_notify('{CHANNEL}', ?)"
    claims = " FOR UPDATE SKIP LOCKED"
    _begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(partial(_StoreSession, url), partial(_StoreSession, url))

    @contextmanager
    def migrating(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
            transaction.run("CREATE SCHEMA IF NOT EXISTS harken")
            yield transaction

    def announced(self, seconds: float) -> Iterator[str]:
        """The texts that processes announce, as they arrive; an empty text after `seconds` without one."""
        with self._as_store_errors(), closing(_StoreSession(self._url)) as connection:
            connection.connect()
            connection.run(f"LISTEN {CHANNEL}")
            yield ""  # changes before LISTEN were not announced here
            while not self._closed:
                notices = list(connection.driver.notifies(timeout=seconds, stop_after=1))  # all that came together
                yield from [each.payload for each in notices] or [""]

    def _message(self, error: Exception) -> str:
        what = "cannot be used now" if self.kind.is_transient(error) else "rejected"
        return f"PostgreSQL {what}: {reason_of(error)}"


def _without_address(error: Exception) -> str:
    """Why there is no connection, without the host: in a mistyped URL, it may be part of the password."""
    _, separator, reason = reason_of(error).rpartition(" failed: ")
    return reason if separator else "the server cannot be found"
