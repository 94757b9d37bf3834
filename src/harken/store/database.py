"""What the store asks of a database: transactions, statements with `?` for values, and rows in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol, TypeVar

Row = tuple[Any, ...]
Value = TypeVar("Value")
_VALUES_AT_ONCE = 500
"""Values that one statement names."""


class Transaction(Protocol):
    """Statements that take effect together."""

    writes_whole_pages: ClassVar[bool]
    """Whether a small row costs a page on disk, so that rows are better written side by side."""

    def rows(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query returns."""

    def stream(self, text: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The same, of which not all are in memory at once."""

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        """Run a statement. Returns how many rows it changed."""

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows, none of which may be there."""

    def contains(self, column: str) -> str:
        """The condition that the bytes of a column have others, a value of the statement, in them."""

    def announce(self, text: str) -> None:
        """Tell other processes, once this is committed, who has changed something."""


class StoreDatabase(Protocol):
    """SQLite or PostgreSQL. Every method raises StoreError, and StoreUnavailableError where to try again may help."""

    words: ClassVar[dict[str, str]]
    """What the statements of migrations say differently: the names of types, options of tables, and the query that
    tells whether there is a table `layout`."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """One at a time: a transaction that is on disk when the block ends, and leaves no trace if that raises."""

    def erasing(self) -> AbstractContextManager[Transaction]:
        """The same, and what it replaces is overwritten on disk, where the database can do that."""

    def migrating(self) -> AbstractContextManager[Transaction]:
        """The same, while no other process migrates."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one moment and changes nothing. Several threads may read."""

    def give_back(self) -> bool:
        """Give some of the space on disk that is free back to the system. Returns whether there is more."""

    def claims(self) -> str:
        """What a query says at its end so that several processes take different rows."""

    def close(self) -> None: ...


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
