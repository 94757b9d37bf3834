"""The base class of connections to databases: statements, transactions, rows in bulk, errors."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from harken.databases.dialects import Dialect, Storage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = tuple[Any, ...]
ColumnValues = Mapping[str, tuple[Storage, list[Any]]]
"""The storage and the values of each column, by name. A value is None where a row has none."""
_POSTGRES = ("postgresql://", "postgres://")
_FILES = ("duckdb:///", "sqlite:///")
_ROWS_AT_ONCE = 512


def is_postgres(place: str) -> bool:
    """Whether a text is a PostgreSQL URL."""
    return place.startswith(_POSTGRES)


def is_database_file(place: object) -> bool:
    """Whether a text is the URL of a file: behind the third slash is a path, which is absolute if a fourth follows."""
    return isinstance(place, str) and place.startswith(_FILES)


class Connection(ABC):
    """A connection that can be opened, closed and reopened. One thread may use it at a time."""

    dialect: ClassVar[Dialect]
    beginning: ClassVar[str] = "BEGIN"
    """The statement that begins a transaction."""

    def __init__(self) -> None:
        self.driver: Any = None
        """The driver's connection; None while closed."""
        self._process = os.getpid()

    @abstractmethod
    def _opened(self) -> Any:
        """A new connection of the driver, which commits each statement outside of a transaction."""

    def connect(self) -> None:
        """Open the connection, after closing it if it is open. Raises MissingExtraError and the driver's errors."""
        self.close()
        self.driver, self._process = self._opened(), os.getpid()

    def close(self) -> None:
        """Close the connection if this process opened it: a child of `fork()` must not close its parent's."""
        if self.driver is not None and self._process == os.getpid():
            self.driver.close()
            self.driver = None

    @property
    def is_usable(self) -> bool:
        """Whether this process opened the connection, and may use it again."""
        return self.driver is not None and self._process == os.getpid()

    # Errors

    @classmethod
    @abstractmethod
    def errors(cls) -> tuple[type[Exception], ...]:
        """The exception classes of the driver."""

    @classmethod
    @abstractmethod
    def is_transient(cls, error: BaseException) -> bool:
        """Whether a retry may succeed, later or on another connection."""

    @abstractmethod
    def is_lost(self, error: BaseException) -> bool:
        """Whether this connection cannot be used any more after an error."""

    # Statements

    def _executed(self, text: str, values: Sequence[Any]) -> Any:
        # Without values psycopg uses the simple query protocol, which costs less.
        return self.driver.execute(text, values) if values else self.driver.execute(text)

    def parameter(self, place: int) -> str:
        """The placeholder in a statement for its value at a place, from 1."""
        return f"${place}"

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        """Run a statement. Returns the number of rows that it changed, if the driver knows it."""
        return int(self._executed(text, values).rowcount)

    def run_many(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        self.driver.executemany(text, rows)

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query returns."""
        rows: list[Row] = self._executed(text, values).fetchall()
        return rows

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows that a query returns, a part at a time in memory. Requires a transaction."""
        cursor = self._executed(text, values)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from rows

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        """The rows of a query as a matrix. All columns must be integers."""
        import numpy as np

        cursor = self._executed(query, values)
        return np.array(cursor.fetchall(), np.int64).reshape(-1, len(cursor.description))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: commit when it ends, roll back if it raises."""
        self.run(self.beginning)
        with self.committing():
            yield

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit the current transaction when the block ends, or roll it back if the block or the commit raises."""
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """Roll back the transaction if there is still one: SQLite rolls back by itself when the disk is full."""
        with suppress(Exception):
            self.driver.execute("ROLLBACK")

    # Rows in bulk

    @abstractmethod
    def insert(self, table: str, columns: ColumnValues) -> None:
        """Insert many rows, passed as columns."""

    @abstractmethod
    def relation(self, name: str, columns: ColumnValues) -> tuple[str, list[Any]]:
        """Let queries read these rows as a table `name`. Returns the text to put before a query, and its values."""

    @abstractmethod
    def analyse(self, tables: Sequence[str]) -> None:
        """Update the planner's statistics of tables."""

    @abstractmethod
    def size(self, tables: Sequence[str]) -> int:
        """The bytes of tables and their indexes; of a database in memory, all of its bytes."""
