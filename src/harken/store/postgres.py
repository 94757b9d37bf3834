"""PostgreSQL under the store: one connection writes, others read; all tables are in the schema `harken`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from harken.databases.on_postgres import PASSWORD_HINT, SECONDS, PostgresConnection
from harken.errors import StoreError, StoreUnavailableError, reason_of
from harken.store.database import StoreDatabase, Transaction

_MIGRATING = 7_401_215_306
"""The advisory lock of whoever makes or changes tables."""
CHANNEL = "harken"
"""What a process tells the others on, when it has committed."""


class _StoreSession(PostgresConnection):
    def __init__(self, url: str) -> None:
        super().__init__(url, connect_timeout=SECONDS, options="-c search_path=harken -c synchronous_commit=on")

    def connect(self) -> None:
        try:
            super().connect()
        except self.errors() as error:
            if self.is_passing(error):
                raise StoreUnavailableError(f"PostgreSQL cannot be used now: {_without_address(error)}") from None
            # It quotes what it does not understand, which may be a part of the password.
            raise StoreError("the URL of the store cannot be understood", hint=f"in {PASSWORD_HINT}") from None


class PostgresDatabase(StoreDatabase):
    """A database that several processes may share."""

    kind = PostgresConnection
    layout = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'harken' AND tablename = 'layout'"
    writes_whole_pages = False
    contains = "position(? in {}) > 0"
    announcing = f"SELECT pg_notify('{CHANNEL}', ?)"
    claims = " FOR UPDATE SKIP LOCKED"
    _begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(partial(_StoreSession, url), partial(_StoreSession, url))

    @contextmanager
    def migrating(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
            transaction.run("CREATE SCHEMA IF NOT EXISTS harken")
            yield transaction

    def announced(self, seconds: float) -> Iterator[str]:
        """What other processes announce, as it comes; an empty text whenever nothing came for so long."""
        with self._as_store_errors(), closing(_StoreSession(self._url)) as connection:
            connection.connect()
            connection.run(f"LISTEN {CHANNEL}")
            yield ""  # something may have come before
            while not self._closed:
                heard = list(connection.driver.notifies(timeout=seconds, stop_after=1))  # all that came together
                yield from [each.payload for each in heard] or [""]

    def _message(self, error: Exception) -> str:
        what = "cannot be used now" if self.kind.is_passing(error) else "refused"
        return f"PostgreSQL {what}: {reason_of(error)}"


def _without_address(error: Exception) -> str:
    """Why there is no connection. What is taken for a host may be a part of the password."""
    _, is_told, why = reason_of(error).rpartition(" failed: ")
    return why if is_told else "the server cannot be found"
