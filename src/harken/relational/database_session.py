"""A matcher's connection to its database, opened when it is needed, and again after a failure or a fork."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl

from harken.databases.connection import Connection, is_database_file, is_postgres
from harken.databases.on_duckdb import DuckConnection
from harken.databases.on_postgres import PASSWORD_HINT, SECONDS, PostgresConnection
from harken.databases.on_sqlite import SqliteConnection
from harken.errors import CapabilityError, StoreUnavailableError, did_you_mean, reason_of

_IN_MEMORY: dict[str, Callable[[], Connection]] = {
    # Threads of DuckDB would cost small queries more than they save, and compete with the threads that match.
    "duckdb": lambda: DuckConnection(config={"threads": 1}),
    "sqlite": SqliteConnection,
}
_FEW = 1_000
"""Fewest rows for which tables are analysed."""


class _MatcherSession(PostgresConnection):
    def __init__(self, url: str) -> None:
        super().__init__(url, connect_timeout=SECONDS, options="-c client_encoding=UTF8 -c jit=off")

    def connect(self) -> None:
        try:
            super().connect()
        except self.errors():  # the error's text may contain a part of the URL, and so of the password
            hint = f"is the server up, and is the URL right? In {PASSWORD_HINT}"
            raise StoreUnavailableError("PostgreSQL cannot be connected to", hint=hint) from None


class _FileSession(SqliteConnection):
    beginning = "BEGIN IMMEDIATE"

    def __init__(self, path: str) -> None:
        super().__init__(path, "journal_mode = WAL", "cache_size = -32768")


def _file_database(url: str) -> Connection:
    """The connection for the URL of a file. What follows a question mark are settings of DuckDB."""
    kind, _, rest = url.partition(":///")
    path, _, settings = rest.partition("?")
    if not path or not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
        hint = f"{kind}:///folder/file.db, or {kind}:////folder/file.db from the root; the folder has to exist"
        raise CapabilityError(f"{path or 'nothing'!r:.80} is no file for a `database`", hint=hint)
    path = os.path.abspath(path)  # the process may change its working directory
    if kind == "sqlite":
        return _FileSession(path)
    return DuckConnection(path, config={"threads": "1", **dict(parse_qsl(settings))})


def open_database(name: object) -> Connection:
    """The connection for a database's name or URL, not opened yet. Raises CapabilityError for anything else."""
    if isinstance(name, str) and is_database_file(name):
        return _file_database(name)
    if isinstance(name, str) and name in _IN_MEMORY:
        return _IN_MEMORY[name]()
    if isinstance(name, str) and is_postgres(name):
        return _MatcherSession(name)
    # The message does not quote the name: a URL may contain a password.
    near = did_you_mean(name, _IN_MEMORY) if isinstance(name, str) and "://" not in name else None
    hint = (
        near
        or f"it is one of {', '.join(_IN_MEMORY)}, or a URL that begins with postgresql://, duckdb:/// or sqlite:///"
    )
    raise CapabilityError("there is no such `database`", hint=hint)


class Session:
    """The database of a matcher, and whether its tables have all rows. One thread may use it at a time."""

    def __init__(self, name: str) -> None:
        self.database = open_database(name)
        self.is_durable = is_database_file(name)
        """Whether the tables outlive the session."""
        self._process: int | None = None
        """The process whose tables have all rows; None if the tables have to be filled."""
        self._analysed = 0
        """The number of rows when the tables were last analysed."""
        weakref.finalize(self, self.database.close)

    @property
    def is_filled(self) -> bool:
        """Whether this process has tables with all rows. A child of `fork()` has none."""
        return self._process == os.getpid()

    @contextmanager
    def guarded(self) -> Iterator[Connection]:
        """Yield the database. If the block raises, the tables have to be filled again.

        Turns the driver's errors into StoreUnavailableError.
        """
        database, errors = self.database, self.database.errors()
        try:
            yield database
        except BaseException as error:
            self._process = None
            if not isinstance(error, errors):
                raise
            message = f"the database of the matcher ({database.dialect.name}) failed: {reason_of(error)}"
            hint = "match again: the connection is reopened, and the tables are filled again if they have to be"
            raise StoreUnavailableError(message, hint=hint) from error

    def note_filled(self) -> None:
        """Note that the tables have all rows."""
        self._analysed = 0
        self._process = os.getpid()

    def analyse(self, tables: Sequence[str], rows: int) -> None:
        """Analyse tables if their rows have doubled since they were last analysed."""
        if rows >= max(_FEW, 2 * self._analysed):
            self.database.analyse(tables)
            self._analysed = rows

    def count(self, query: str) -> int:
        """The number that a query returns; 0 while there are no tables."""
        if not self.is_filled:
            return 0
        try:
            with self.guarded() as database:
                return int(database.integers(query)[0, 0])
        except StoreUnavailableError:  # the next match fills them again
            return 0

    def size(self, tables: Sequence[str]) -> dict[str, int]:
        """The bytes of tables in the database, under "tables"; empty while there are no tables."""
        if not self.is_filled:
            return {}
        try:
            with self.guarded() as database:
                return {"tables": database.size(tables)}
        except StoreUnavailableError:  # the next match fills them again
            return {}
