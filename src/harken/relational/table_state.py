"""What a matcher's tables say of themselves: their layout, how often they were changed, and the next free ids.

It is a table of one row, written in the transaction of each change. By it a matcher that opens a file again knows
whether the file has exactly the rows that it expects.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, insert_rows

_LAYOUT = 1
"""The version of the tables' layout. A file with another one is rejected."""
_OWN = ("layout", "settings", "stamp", "sequence", "subscriptions")


class TableState:
    """The counters of a matcher's tables. They are valid between `create` or `read` and the next failure."""

    def __init__(self, table: str, settings: int, first: Mapping[str, int]) -> None:
        """`settings` is a key of all options that decide what the rows are; `first` has the counters' first values."""
        self.table = table
        self.settings = settings
        self._first = dict(first)
        self._columns = dict.fromkeys((*_OWN, *first), Storage.WHOLE)
        self._values: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __setitem__(self, name: str, value: int) -> None:
        self._values[name] = value

    @property
    def moment(self) -> tuple[int, int]:
        """Identifies the rows: which tables they are, and how often they were changed."""
        return self._values["stamp"], self._values["sequence"]

    @property
    def is_ours(self) -> bool:
        """Whether the tables have this layout, and were made with these settings."""
        return (self._values["layout"], self._values["settings"]) == (_LAYOUT, self.settings)

    def take(self, name: str, count: int) -> int:
        """Take consecutive ids. Returns the first."""
        first = self._values[name]
        self._values[name] = first + count
        return first

    def create(self, database: Connection) -> None:
        """Create the table of a matcher without subscriptions."""
        stamp = secrets.randbits(62)
        own = dict(zip(_OWN, (_LAYOUT, self.settings, stamp, 0, 0), strict=True))
        self._values = {**own, **self._first}
        create_table(database, self.table, self._columns)
        insert_rows(database, self.table, self._columns, [list(self._values.values())])

    def exists(self, database: Connection) -> bool:
        """Whether a file has the table. SQLite and DuckDB list their tables under the same name."""
        query = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{self.table}'"
        return bool(database.rows(query)[0][0])

    def read(self, database: Connection) -> None:
        """Read the counters. Those of another matcher or layout are not read: see `is_ours`."""
        ((layout, settings, stamp, sequence, subscriptions),) = database.rows(
            f"SELECT {', '.join(_OWN)} FROM {self.table}"
        )
        self._values = dict(zip(_OWN, (layout, settings, stamp, sequence, subscriptions), strict=True))
        if self.is_ours:
            ((*counters,),) = (
                database.rows(f"SELECT {', '.join(self._first)} FROM {self.table}") if self._first else [()]
            )
            self._values |= dict(zip(self._first, counters, strict=True))

    def stored_moment(self, database: Connection) -> tuple[int, int]:
        """The moment that the table has now."""
        ((stamp, sequence),) = database.rows(f"SELECT stamp, sequence FROM {self.table}")
        return stamp, sequence

    def write(self, database: Connection) -> None:
        """Write the counters."""
        listed = ", ".join(f"{name} = {database.parameter(place)}" for place, name in enumerate(self._values, 1))
        database.run(f"UPDATE {self.table} SET {listed}", list(self._values.values()))
