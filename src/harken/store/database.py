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
"""Values that one statement names."""


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
        """The same, of which not all are in memory at once."""
        return self._connection.stream(self._connection.marked(text), values)

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        """Run a statement. Returns how many rows it changed."""
        return self._connection.run(self._connection.marked(text), values)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows, none of which may be there."""
        self._connection.insert_rows(table, columns, rows)

    def contains(self, column: str) -> str:
        """The condition that the bytes of a column have others, a value of the statement, in them."""
        return self._database.contains.format(column)

    def announce(self, text: str) -> None:
        """Tell other processes, once this is committed, who has changed something."""
        if self._database.announcing:
            self.run(self._database.announcing, (text,))


class StoreDatabase(ABC):
    """SQLite or PostgreSQL. Every method raises StoreError, and StoreUnavailableError where to try again may help."""

    kind: ClassVar[type[SqliteConnection] | type[PostgresConnection]]
    layout: ClassVar[str]
    """The query that tells whether there is a table `layout`."""
    writes_whole_pages: ClassVar[bool]
    """Whether a small row costs a page on disk, so that rows are better written side by side."""
    contains: ClassVar[str]
    """The condition that the bytes of a column have others in them."""
    announcing: ClassVar[str] = ""
    """What tells other processes something, if several may share the database."""
    claims: ClassVar[str] = ""
    """What a query says at its end so that several processes take different rows."""
    _begin_writing: ClassVar[str] = "BEGIN"
    _begin_reading: ClassVar[str] = "BEGIN"

    def __init__(self, writer: Callable[[], StoreConnection], reader: Callable[[], StoreConnection]) -> None:
        """With what makes the connection that writes, and those that read."""
        self._write_lock = threading.Lock()
        self._writers = Pool(writer, most_idle=1)
        self._readers = Pool(reader)
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One at a time: a transaction that is on disk when the block ends, and leaves no trace if that raises."""
        with self._writer(self._begin_writing) as writer, writer.committing():
            yield Transaction(self, writer)

    def erasing(self) -> AbstractContextManager[Transaction]:
        """The same, and what it replaces is overwritten on disk, where the database can do that."""
        return self.writing()

    def migrating(self) -> AbstractContextManager[Transaction]:
        """The same, while no other process migrates."""
        return self.writing()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one moment and changes nothing. Several threads may read."""
        with self._as_store_errors():
            reader, _ = self._readers.take(lambda new: new.run(self._begin_reading))
            try:
                yield Transaction(self, reader)
            finally:
                reader.roll_back()
                self._readers.give_back(reader)

    def give_back(self) -> bool:
        """Give some of the space on disk that is free back to the system. Returns whether there is more."""
        return False

    def close(self) -> None:
        self._closed = True
        with self._write_lock:
            self._writers.close()
        self._readers.close()

    def filled(self, text: str) -> str:
        """The text of statements with the names of types, and with options of tables."""
        dialect = self.kind.dialect
        integer, string = dialect.types[Storage.WHOLE], dialect.types[Storage.TEXT]
        return text.format(integer=integer, text=string, blob=dialect.blob, by_key=dialect.by_key)

    @contextmanager
    def _writer(self, begin: str | None = None) -> Iterator[StoreConnection]:
        """The connection that writes, with a transaction begun if there is a statement for that."""
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
        """Raise errors of the driver as those of the store."""
        errors = self.kind.errors()
        try:
            yield
        except UnicodeEncodeError as error:
            raise StoreError("a text has a lone surrogate, which UTF-8 cannot encode") from error
        except errors as error:
            kind = StoreUnavailableError if self.kind.is_passing(error) else StoreError
            raise kind(self._message(error)) from error

    @abstractmethod
    def _message(self, error: Exception) -> str:
        """What an error of the driver means."""


def places(count: int) -> str:
    """So many `?`, in brackets."""
    return f"({', '.join('?' * count)})"


def parts(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Values in as many parts as statements need to name them all."""
    for start in range(0, len(values), _VALUES_AT_ONCE):
        yield values[start : start + _VALUES_AT_ONCE]


def fitting(sizes: Iterable[int], most: int) -> int:
    """How many of the first sizes are no more than `most` together, but at least one."""
    count = 0
    for size in sizes:
        most -= size
        if most < 0:
            return max(1, count)
        count += 1
    return count


def rows_in(transaction: Transaction, text: str, values: Sequence[Any]) -> Iterator[Row]:
    """The rows of a query whose text ends with `IN`, for all these values."""
    for some in parts(values):
        yield from transaction.rows(f"{text} {places(len(some))}", some)
