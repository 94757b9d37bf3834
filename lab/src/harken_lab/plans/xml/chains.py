"""Query_Predicate: the predicates of a subscription as a chain of rows (sections 3.2 and 4.2).

A row leads from `pre_id` to `chain_id` if its predicate holds. The first has the pre_id 0, and the chain_id of the last
is the subscription's. Subscriptions that begin with the same predicates share their rows.
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


class Stored(NamedTuple):
    """A predicate as it is stored."""

    path: int
    """The id of its linear path."""
    op: str
    value: str | None
    number: float | None


class _Link(NamedTuple):
    """What leads to a chain_id that is no subscription's."""

    before: int
    predicate: Stored


class Chains:
    """The table, and which rows several subscriptions share."""

    def __init__(self) -> None:
        self._shared: dict[_Link, int] = {}
        self._links: dict[int, _Link] = {}
        self._users: dict[int, int] = {}
        """How many rows go on from a chain_id."""
        self._ends: dict[int, tuple[int, int]] = {}
        """Where the chain of each subscription begins, and the pre_id of its last row."""
        self._next = START + 1
        self._new: list[tuple[object, ...]] = []

    def create(self, database: Connection) -> None:
        """Make the table."""
        create_table(database, TABLE, _COLUMNS, pre="pre_id, is_equal, value", chain="chain_id")

    def add(self, sid: int, predicates: Sequence[Stored]) -> None:
        """Take the chain of a subscription."""
        self._ends[sid] = START, self._append(sid, START, predicates)

    def add_behind(self, sid: int, predicates: Sequence[Stored]) -> int:
        """The same for a chain that is entered from elsewhere. Returns the pre_id at which it is."""
        entry = self._next
        self._next += 1
        self._ends[sid] = entry, self._append(sid, entry, predicates)
        return entry

    def _append(self, sid: int, before: int, predicates: Sequence[Stored]) -> int:
        for predicate in predicates[:-1]:
            link = _Link(before, predicate)
            found = self._shared.get(link)
            if found is None:
                found = self._shared[link] = self._next
                self._next += 1
                self._links[found] = link
                self._users[before] = self._users.get(before, 0) + 1
                self._new.append(_row(link, found, final=False))
            before = found
        self._users[before] = self._users.get(before, 0) + 1
        self._new.append(_row(_Link(before, predicates[-1]), sid, final=True))
        return before

    def store(self, database: Connection) -> None:
        """Insert what was taken."""
        insert_rows(database, TABLE, _COLUMNS, self._new)
        self._new = []

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete the rows of subscriptions, from the last on, as far as nobody else has them."""
        gone: list[tuple[int, int]] = []
        for sid in sids:
            if sid not in self._ends:
                continue
            begin, at = self._ends.pop(sid)
            gone.append((sid, 1))
            self._users[at] -= 1
            while at != begin and not self._users[at]:
                link = self._links.pop(at)
                del self._shared[link], self._users[at]
                gone.append((at, 0))
                at = link.before
                self._users[at] -= 1
            if at == begin != START:
                del self._users[begin]
        marks = database.parameter(1), database.parameter(2)
        if gone:
            database.run_many(f"DELETE FROM {TABLE} WHERE chain_id = {marks[0]} AND final = {marks[1]}", gone)


def _row(link: _Link, to: int, *, final: bool) -> tuple[object, ...]:
    path, op, value, number = link.predicate
    return link.before, path, op, int(op == EQUAL), value, number, to, int(final)
