"""A connection to a database, whichever its engine: statements, transactions, rows in bulk, errors."""

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
"""Columns by their names, each with its values: None where a row has none."""
_POSTGRES = ("postgresql://", "postgres://")
_ROWS_AT_ONCE = 512


def is_postgres(place: str) -> bool:
    """Whether a text is a URL of PostgreSQL."""
    return place.startswith(_POSTGRES)


class Connection(ABC):
    """A connection that is opened when it is needed, and may be opened anew. One thread uses it at a time."""

    dialect: ClassVar[Dialect]

    def __init__(self) -> None:
        self.driver: Any = None
        """The connection of the driver; None if it is closed."""
        self._process = os.getpid()

    @abstractmethod
    def _opened(self) -> Any:
        """A new connection of the driver. It commits every statement by itself unless a transaction is begun."""

    def connect(self) -> None:
        """Open it anew. Raises MissingExtraError, and what the driver raises."""
        self.close()
        self.driver, self._process = self._opened(), os.getpid()

    def close(self) -> None:
        """Close it if it is open. A child of `fork()` leaves that of its parent alone."""
        if self.driver is not None and self._process == os.getpid():
            self.driver.close()
            self.driver = None

    @property
    def is_usable(self) -> bool:
        """Whether this process has it open, and may use it again."""
        return self.driver is not None and self._process == os.getpid()

    # Errors

    @classmethod
    @abstractmethod
    def errors(cls) -> tuple[type[Exception], ...]:
        """What the driver raises."""

    @classmethod
    @abstractmethod
    def is_passing(cls, error: BaseException) -> bool:
        """Whether to try again, later or on another connection, may help."""

    @abstractmethod
    def is_lost(self, error: BaseException) -> bool:
        """Whether this connection stays of no use after an error."""

    # Statements

    def _executed(self, text: str, values: Sequence[Any]) -> Any:
        # Without values PostgreSQL is sent the text alone, which costs both sides less.
        return self.driver.execute(text, values) if values else self.driver.execute(text)

    def parameter(self, place: int) -> str:
        """How a statement names its value at a place, from 1."""
        return f"${place}"

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        """Run a statement. Returns how many rows it changed, if the driver knows."""
        return int(self._executed(text, values).rowcount)

    def run_many(self, text: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        self.driver.executemany(text, rows)

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query returns."""
        rows: list[Row] = self._executed(text, values).fetchall()
        return rows

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The same, in a transaction: not all of them are in memory at once."""
        cursor = self._executed(text, values)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from rows

    def integers(self, query: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        """The rows of a query whose columns are integers, as a matrix."""
        import numpy as np

        cursor = self._executed(query, values)
        return np.array(cursor.fetchall(), np.int64).reshape(-1, len(cursor.description))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside, or nothing."""
        self.run("BEGIN")
        with self.committing():
            yield

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit the transaction that was begun when the block ends, or roll it back if that raises."""
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End a transaction, if there is one still: SQLite rolls back by itself where the disk is full."""
        with suppress(Exception):
            self.driver.execute("ROLLBACK")

    # Rows in bulk

    @abstractmethod
    def insert(self, table: str, columns: ColumnValues) -> None:
        """Insert many rows, given column by column."""

    @abstractmethod
    def relation(self, name: str, columns: ColumnValues) -> tuple[str, list[Any]]:
        """Make rows known as a table to queries. Returns what a query begins with for that, and its values."""

    @abstractmethod
    def analyse(self, tables: Sequence[str]) -> None:
        """Have the planner look at tables."""

    @abstractmethod
    def size(self, tables: Sequence[str]) -> int:
        """The bytes of tables, with their indexes. A database in memory counts all that it holds."""
