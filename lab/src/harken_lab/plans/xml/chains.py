"""Query_Predicate: the predicates of a subscription as a chain of rows (sections 3.2 and 4.2).

A row leads from `pre_id` to `chain_id` if its predicate holds. The first row has the pre_id 0, and the chain_id of the
last row is the id of the subscription. Subscriptions that begin with the same predicates share rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, insert_rows
from harken_lab.plans.xml.path_predicates import EQUAL

TABLE = "query_predicate"
START = 0
_COLUMNS = {
    "pre_id": Storage.WHOLE,
    "linearpath_id": Storage.WHOLE,
    "op": Storage.TEXT,
    "is_equal": Storage.WHOLE,
    "value": Storage.TEXT,
    "number": Storage.NUMBER,
    "chain_id": Storage.WHOLE,
    "final": Storage.WHOLE,
}


class StoredPredicate(NamedTuple):
    """A predicate as columns of a table."""

    path: int
    """The id of its linear path."""
    op: str
    value: str | None
    number: float | None


class _Link(NamedTuple):
    """The row that leads to a chain_id, other than the last row of a subscription."""

    before: int
    predicate: StoredPredicate


class Chains:
    """The table, and the rows that subscriptions share."""

    def __init__(self) -> None:
        self._shared: dict[_Link, int] = {}
        self._links: dict[int, _Link] = {}
        self._users: dict[int, int] = {}
        """By chain_id, how many rows continue from it."""
        self._ends: dict[int, tuple[int, int]] = {}
        """By subscription, the pre_ids of the first and of the last row of its chain."""
        self._next = START + 1
        self._new: list[tuple[object, ...]] = []

    def create(self, database: Connection) -> None:
        """Create the table."""
        create_table(database, TABLE, _COLUMNS, pre="pre_id, is_equal, value", chain="chain_id")

    def add(self, sid: int, predicates: Sequence[StoredPredicate]) -> None:
        """Buffer the chain of a conjunction."""
        self._ends[sid] = START, self._append(sid, START, predicates)

    def add_continuation(self, sid: int, predicates: Sequence[StoredPredicate]) -> int:
        """Buffer a chain that continues a row of another table. Returns the pre_id of its first row."""
        entry = self._next
        self._next += 1
        self._ends[sid] = entry, self._append(sid, entry, predicates)
        return entry

    def _append(self, sid: int, before: int, predicates: Sequence[StoredPredicate]) -> int:
        """Add the rows of a chain, from the pre_id `before` on. Returns the pre_id of the last row."""
        for predicate in predicates[:-1]:
            link = _Link(before, predicate)
            chain_id = self._shared.get(link)
            if chain_id is None:
                chain_id = self._shared[link] = self._next
                self._next += 1
                self._links[chain_id] = link
                self._users[before] = self._users.get(before, 0) + 1
                self._new.append(_row(link, chain_id, final=False))
            before = chain_id
        self._users[before] = self._users.get(before, 0) + 1
        self._new.append(_row(_Link(before, predicates[-1]), sid, final=True))
        return before

    def store(self, database: Connection) -> None:
        """Insert the buffered rows."""
        insert_rows(database, TABLE, _COLUMNS, self._new)
        self._new = []

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete the rows of subscriptions, from the last row back to the first that another subscription shares."""
        removed: list[tuple[int, int]] = []
        for sid in sids:
            if sid not in self._ends:
                continue
            begin, at = self._ends.pop(sid)
            removed.append((sid, 1))
            self._users[at] -= 1
            while at != begin and not self._users[at]:
                link = self._links.pop(at)
                del self._shared[link], self._users[at]
                removed.append((at, 0))
                at = link.before
                self._users[at] -= 1
            if at == begin != START:
                del self._users[begin]
        marks = database.parameter(1), database.parameter(2)
        if removed:
            database.run_many(f"DELETE FROM {TABLE} WHERE chain_id = {marks[0]} AND final = {marks[1]}", removed)


def _row(link: _Link, to: int, *, final: bool) -> tuple[object, ...]:
    path, op, value, number = link.predicate
    return link.before, path, op, int(op == EQUAL), value, number, to, int(final)
