"""Query_Predicate: the predicates of a subscription as a chain of rows (sections 3.2 and 4.2).

A row leads from `pre_id` to `chain_id` if its predicate holds. The first row has the pre_id 0, and the chain_id of the
last row is the id of the conjunction. With sharing, conjunctions that begin with the same predicates share rows: a row
that is not the last one is found by a key of its pre_id and its predicate. Nothing of this is kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.table_state import TableState
from harken.relational.tables import create_table, delete_keys, insert_rows, row_key, rows_of_keys
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
    "link": Storage.WHOLE,
}
_SHARED = f"""SELECT q.link, q.chain_id, q.pre_id, q.linearpath_id, q.op, q.value, q.number
FROM given CROSS JOIN {TABLE} q WHERE q.link = given.key"""
_USED = f"SELECT DISTINCT q.pre_id FROM given CROSS JOIN {TABLE} q WHERE q.pre_id = given.key"
_BEFORE = f"SELECT q.chain_id, q.pre_id FROM given CROSS JOIN {TABLE} q WHERE q.chain_id = given.key AND q.final = "


class StoredPredicate(NamedTuple):
    """A predicate as columns of a table."""

    path: int
    """The id of its linear path."""
    op: str
    value: str | None
    number: float | None


class Chain(NamedTuple):
    """A conjunction, or the rest of one: where its rows begin, its id, and its predicates."""

    start: int
    sid: int
    predicates: Sequence[StoredPredicate]


class Chains:
    """The table. Row by row, all chains of a change are looked up and extended together."""

    def __init__(self, state: TableState, *, shares: bool = True) -> None:
        self._state = state
        """Has the counter `chain`, of chain_ids other than those of last rows."""
        self._shares = shares

    def create(self, database: Connection) -> None:
        """Create the table."""
        indexes = {"pre": "pre_id, is_equal, value", "chain": "chain_id", "link": "link"}
        create_table(database, TABLE, _COLUMNS, **indexes)

    def insert(self, database: Connection, chains: Sequence[Chain]) -> None:
        """Insert the rows of chains."""
        rows: list[tuple[Any, ...]] = []
        before = [chain.start for chain in chains]
        fresh: set[int] = set()  # chain_ids of this change, which no stored row continues
        for level in range(max((len(chain.predicates) for chain in chains), default=0)):
            links = {
                place: (before[place], *chain.predicates[level])
                for place, chain in enumerate(chains)
                if level < len(chain.predicates) - 1
            }
            shared = self._shared(database, {each for each in links.values() if each[0] not in fresh})
            for place, chain in enumerate(chains):
                if level == len(chain.predicates) - 1:
                    rows.append(_row(before[place], chain.predicates[level], chain.sid, None))
                elif level < len(chain.predicates):
                    link = links[place]
                    known = shared.get(link)
                    if known is None or not self._shares:
                        known = shared[link] = self._state.take("chain", 1)
                        fresh.add(known)
                        rows.append(_row(before[place], chain.predicates[level], known, row_key(*link)))
                    before[place] = known
        insert_rows(database, TABLE, _COLUMNS, rows)

    def _shared(self, database: Connection, links: set[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
        """The chain_ids of the links that are stored already."""
        if not self._shares:
            return {}
        stored = rows_of_keys(database, _SHARED, {row_key(*link) for link in links})
        return {tuple(link): chain_id for _, chain_id, *link in stored}

    def delete(self, database: Connection, sids: Iterable[int]) -> list[int]:
        """Delete the rows of conjunctions, from the last row back to the first that another one shares.

        Returns the ids, other than 0, at which the deleted chains began and no row begins any more.
        """
        gone: list[int] = list(sids)
        starts: list[int] = []
        final = 1
        while gone:
            rows = rows_of_keys(database, f"{_BEFORE}{final}", gone)
            before = {pre_id for _, pre_id in rows}
            if not final:
                starts += set(gone).difference(chain_id for chain_id, _ in rows)
            delete_keys(database, TABLE, "chain_id", gone, f"final = {final}")
            before.discard(START)
            gone = sorted(before - {used for (used,) in rows_of_keys(database, _USED, before)})
            final = 0
        return starts


def _row(before: int, predicate: StoredPredicate, to: int, link: int | None) -> tuple[object, ...]:
    path, op, value, number = predicate
    return before, path, op, int(op == EQUAL), value, number, to, int(link is None), link
