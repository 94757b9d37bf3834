"""What the store asks of a database: transactions, statements with `?` for values, and rows in bulk."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, TypeVar

from harken.databases.connection import Row
from harken.databases.connection_pool import Pool
from harken.databases.dialects import Storage
from harken.databases.on_postgres import PostgresConnection
from harken.databases.on_sqlite import SqliteConnection
from harken.errors import StoreError, StoreUnavailableError

StoreConnection = SqliteConnection | PostgresConnection
Value = TypeVar("Value")
_VALUES_AT_ONCE = 500
"""Most values in one statement."""


class Transaction:
    """Statements that take effect together."""

    def __init__(self, database: StoreDatabase, connection: StoreConnection) -> None:
        self._database = database
        self._connection = connection
        self.writes_whole_pages = database.writes_whole_pages

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query returns."""
        return self._connection.rows(self._connection.marked(text), values)

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows that a query returns, read from the database a few at a time."""
        return self._connection.stream(self._connection.marked(text), values)

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        """Run a statement. Returns how many rows it changed."""
        return self._connection.run(self._connection.marked(text), values)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows. None of them may exist already."""
        self._connection.insert_rows(table, columns, rows)

    def contains(self, column: str) -> str:
        """The SQL condition that a column of bytes contains the statement's next value."""
        return self._database.contains.format(column)

    def announce(self, text: str) -> None:
        """Send a text to the other processes that share the database, once this transaction is committed."""
        if self._database.notify:
            self.run(self._database.notify, (text,))


class StoreDatabase(ABC):
    """SQLite or PostgreSQL. Methods raise StoreError, or StoreUnavailableError if trying again may help."""

    kind: ClassVar[type[SqliteConnection] | type[PostgresConnection]]
    layout: ClassVar[str]
    """A query that returns a row if there is a table `layout`."""
    writes_whole_pages: ClassVar[bool]
    """Whether changing one small row writes a whole page to disk, so that rows are better written side by side."""
    contains: ClassVar[str]
    """The SQL condition that a column of bytes contains a value."""
    notify: ClassVar[str] = ""
    """The statement that sends a text to other processes; empty if processes cannot share the database."""
    claims: ClassVar[str] = ""
    """The end of a query by which several processes get different rows."""
    _begin_writing: ClassVar[str] = "BEGIN"
    _begin_reading: ClassVar[str] = "BEGIN"

    def __init__(self, writer: Callable[[], StoreConnection], reader: Callable[[], StoreConnection]) -> None:
        """`writer` makes the connection that writes, `reader` those that read."""
        self._write_lock = threading.Lock()
        self._writers = Pool(writer, most_idle=1)
        self._readers = Pool(reader)
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The only write transaction of this process: committed to disk when the block ends, undone if it raises."""
        with self._writer(self._begin_writing) as writer, writer.committing():
            yield Transaction(self, writer)

    def erasing(self) -> AbstractContextManager[Transaction]:
        """A write transaction that overwrites on disk the data that it replaces, if the database can do that."""
        return self.writing()

    def migrating(self) -> AbstractContextManager[Transaction]:
        """A write transaction during which no other process migrates."""
        return self.writing()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A read-only transaction on one snapshot of the data. Several threads may read."""
        with self._as_store_errors():
            reader, _ = self._readers.take(lambda new: new.run(self._begin_reading))
            try:
                yield Transaction(self, reader)
            finally:
                reader.roll_back()
                self._readers.give_back(reader)

    def shrink(self) -> bool:
        """Return some free space in the database to the operating system. Returns whether there is more."""
        return False

    def close(self) -> None:
        self._closed = True
        with self._write_lock:
            self._writers.close()
        self._readers.close()

    def filled(self, text: str) -> str:
        """Fill in the database's own names of types and options of tables in the text of statements."""
        dialect = self.kind.dialect
        integer, string = dialect.types[Storage.WHOLE], dialect.types[Storage.TEXT]
        return text.format(integer=integer, text=string, blob=dialect.blob, by_key=dialect.by_key)

    @contextmanager
    def _writer(self, begin: str | None = None) -> Iterator[StoreConnection]:
        """The connection that writes, after running the statement `begin`, if given."""
        with self._write_lock, self._as_store_errors():
            if self._closed:
                raise StoreError("the store is closed")
            writer, _ = self._writers.take(lambda new: new.run(begin) if begin else 0)
            try:
                yield writer
            except BaseException as error:
                if writer.is_lost(error):
                    writer.close()
                raise
            finally:
                self._writers.give_back(writer)

    @contextmanager
    def _as_store_errors(self) -> Iterator[None]:
        """Raise errors of the driver as StoreError."""
        errors = self.kind.errors()
        try:
            yield
        except UnicodeEncodeError as error:
            raise StoreError("a text has a lone surrogate, which UTF-8 cannot encode") from error
        except errors as error:
            kind = StoreUnavailableError if self.kind.is_transient(error) else StoreError
            raise kind(self._message(error)) from error

    @abstractmethod
    def _message(self, error: Exception) -> str:
        """The message of a StoreError for an error of the driver."""


def places(count: int) -> str:
    """`count` placeholders in brackets: `(?, ?, ?)`."""
    return f"({', '.join('?' * count)})"


def parts(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Values in parts that are small enough for one statement each."""
    for start in range(0, len(values), _VALUES_AT_ONCE):
        yield values[start : start + _VALUES_AT_ONCE]


def fitting(sizes: Iterable[int], most: int) -> int:
    """How many of the first sizes add up to at most `most`; 1 at least."""
    count = 0
    for size in sizes:
        most -= size
        if most < 0:
            return max(1, count)
        count += 1
    return count


def rows_in(transaction: Transaction, text: str, values: Sequence[Any]) -> Iterator[Row]:
    """The rows that a query whose text ends with `IN` returns for all these values."""
    for some in parts(values):
        yield from transaction.rows(f"{text} {places(len(some))}", some)
