"""A matcher's connection to its database: made when it is needed, and again after a failure or a fork."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harken.errors import StoreUnavailableError
from harken.relational.databases import MatchingDatabase, open_database, told_clearly

_FEW = 1_000
"""From so many rows on the planner looks at tables, and again when they have doubled."""


class Session:
    """Whether the tables of a matcher are there, and all of its rows in them. One thread uses it at a time."""

    def __init__(self, name: str) -> None:
        self.database = open_database(name)
        self._process: int | None = None
        """The process whose tables have all rows; None: they have to be filled."""
        self._analysed = 0
        self._closing = weakref.finalize(self, _close, self.database, os.getpid())

    @property
    def is_filled(self) -> bool:
        """Whether this process has tables with all rows. A child of `fork()` has none."""
        return self._process == os.getpid()

    @contextmanager
    def guarded(self) -> Iterator[MatchingDatabase]:
        """The database. Whatever fails inside leaves tables that nobody can be sure of: they are filled again."""
        try:
            with told_clearly(self.database):
                yield self.database
        except BaseException:
            self._process = None
            raise

    def begin(self, create: Callable[[MatchingDatabase], None]) -> None:
        """Connect, and make empty tables."""
        database = self.database
        database.connect()
        self._analysed = 0
        # Of this process: a child of `fork()` has to leave the connection alone.
        self._closing.detach()
        self._closing = weakref.finalize(self, _close, database, os.getpid())
        with database.transaction():
            create(database)
        self._process = os.getpid()

    def analyse(self, tables: Sequence[str], rows: int) -> None:
        """Have the planner look at tables, if there are many more rows than when it looked last."""
        if rows >= max(_FEW, 2 * self._analysed):
            self.database.analyse(tables)
            self._analysed = rows

    def size(self, tables: Sequence[str]) -> dict[str, int]:
        """The bytes of tables; empty while there are none. What is kept in this process is not among them."""
        if not self.is_filled:
            return {}
        try:
            with self.guarded() as database:
                return {"tables": database.size(tables)}
        except StoreUnavailableError:  # the next match fills them again
            return {}


def _close(database: MatchingDatabase, process: int) -> None:
    if os.getpid() == process:
        database.close()
