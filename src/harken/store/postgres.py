"""PostgreSQL under the store: one connection writes, others read; all tables are in the schema `harken`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

from harken.errors import StoreError, StoreUnavailableError
from harken.store.database import Row, Transaction

if TYPE_CHECKING:
    import psycopg

_FEW_ROWS = 8
"""From so many rows on they are copied."""
_MIGRATING = 7_401_215_306
"""The advisory lock of whoever makes or changes tables."""
CHANNEL = "harken"
"""What a process tells the others on, when it has committed."""


class PostgresDatabase:
    """A database that several processes may share."""

    words: ClassVar[dict[str, str]] = {
        "integer": "BIGINT",
        "text": 'TEXT COLLATE "C"',
        "blob": "BYTEA",
        "by_key": "",
        "layout": "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'harken' AND tablename = 'layout'",
    }

    def __init__(self, url: str) -> None:
        self._url = url
        self._write_lock = threading.Lock()
        self._writer: psycopg.Connection[Row] | None = None
        self._readers: SimpleQueue[psycopg.Connection[Row]] = SimpleQueue()
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._write_lock, _postgres_errors():
            writer, begun = self._begun()
            try:
                with begun:
                    yield _PostgresTransaction(writer)
            except BaseException as error:
                if writer.broken or isinstance(error, _passing()):
                    writer.close()
                raise

    def _begun(self) -> tuple[psycopg.Connection[Row], ExitStack]:
        """The connection that writes, in a transaction. One that was cut while it lay idle gives way to another."""
        is_new = self._writer is None or self._writer.closed
        writer = self._writer = self.connected() if self._writer is None or self._writer.closed else self._writer
        begun = ExitStack()
        try:
            begun.enter_context(writer.transaction())
        except _passing():
            writer.close()
            if is_new:
                raise
            return self._begun()
        return writer, begun

    def erasing(self) -> AbstractContextManager[Transaction]:
        return self.writing()  # old rows lie in the tables until they are vacuumed

    @contextmanager
    def migrating(self) -> Iterator[Transaction]:
        with self.writing() as transaction:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
            transaction.run("CREATE SCHEMA IF NOT EXISTS harken")
            yield transaction

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with _postgres_errors():
            connection = self._reader()
            try:
                yield _PostgresTransaction(connection)
            finally:
                with suppress(Exception):
                    connection.execute("ROLLBACK")
                if self._closed or connection.closed or connection.broken:
                    connection.close()
                else:
                    self._readers.put(connection)

    def announced(self, seconds: float) -> Iterator[str]:
        """What other processes announce, as it comes; an empty text whenever nothing came for so long."""
        with _postgres_errors(), self.connected() as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            yield ""  # something may have come before
            while not self._closed:
                found = list(connection.notifies(timeout=seconds, stop_after=1))  # all that came together
                yield from [each.payload for each in found] or [""]

    def give_back(self) -> bool:
        return False  # autovacuum has space used again

    def claims(self) -> str:
        return " FOR UPDATE SKIP LOCKED"

    def connected(self) -> psycopg.Connection[Row]:
        """A new connection, which commits every statement by itself unless a transaction is begun."""
        import psycopg

        try:
            return psycopg.connect(
                self._url, autocommit=True, options="-c search_path=harken -c synchronous_commit=on", connect_timeout=10
            )
        except psycopg.OperationalError as error:
            raise StoreUnavailableError(f"PostgreSQL cannot be used now: {_without_address(error)}") from None
        except psycopg.Error:  # it quotes what it does not understand, which may be a part of the password
            hint = "in a password, %, / and @ are written %25, %2F and %40"
            raise StoreError("the URL of the store cannot be understood", hint=hint) from None

    def close(self) -> None:
        self._closed = True
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
        with suppress(Empty):
            while True:
                self._readers.get_nowait().close()

    def _reader(self) -> psycopg.Connection[Row]:
        """A connection in a transaction that only reads. One that lay idle may have been cut: then it is another."""
        import psycopg

        try:
            found, is_new = self._readers.get_nowait(), False
        except Empty:
            found, is_new = self.connected(), True
        try:
            found.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except psycopg.Error:
            found.close()
            if is_new:
                raise
            return self._reader()
        return found


class _PostgresTransaction:
    writes_whole_pages: ClassVar[bool] = False

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_marked(text), values).fetchall()

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        with self._connection.cursor("stream") as cursor:
            cursor.itersize = 2_000
            cursor.execute(_marked(text), values)
            yield from cursor

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(_marked(text), values).rowcount

    def contains(self, column: str) -> str:
        return f"position(? in {column}) > 0"

    def announce(self, text: str) -> None:
        self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names = ", ".join(columns)
        with self._connection.cursor() as cursor:
            if len(rows) < _FEW_ROWS:
                marks = ", ".join(["%s"] * len(columns))
                cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
                return
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def _marked(text: str) -> str:
    """The statement with psycopg's marks for values. None of ours has a `?` or a `%` for anything else."""
    return text.replace("?", "%s")


def _passing() -> tuple[type[Exception], ...]:
    """Errors after which to try again on another connection may help. A server may take no changes for a while."""
    import psycopg

    return psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction


@contextmanager
def _postgres_errors() -> Iterator[None]:
    """Errors of PostgreSQL as those of the store."""
    import psycopg

    try:
        yield
    except _passing() as error:
        raise StoreUnavailableError(f"PostgreSQL cannot be used now: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused: {_first_line(error)}") from error
    except UnicodeEncodeError as error:
        raise StoreError("a text has a lone surrogate, which UTF-8 cannot encode") from error


def _without_address(error: Exception) -> str:
    """Why there is no connection. What is taken for a host may be a part of the password."""
    _, is_told, reason = _first_line(error).rpartition(" failed: ")
    return reason if is_told else "the server cannot be found"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
