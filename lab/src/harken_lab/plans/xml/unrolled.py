"""Predicate_Unroll: the first k predicates of a subscription in one row, the rest as a chain (section 4.3).

Subscriptions with more than k predicates that agree in the first k share the row, and then the beginnings of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.table_state import TableState
from harken.relational.tables import create_table, delete_keys, insert_rows, row_key, rows_of_keys
from harken_lab.plans.xml.chains import Chain, Chains, StoredPredicate
from harken_lab.plans.xml.linear_paths import NO_PATH
from harken_lab.plans.xml.path_predicates import ANY, EQUAL

TABLE = "predicate_unroll"
NOTHING = StoredPredicate(NO_PATH, ANY, None, None)
"""A predicate that always holds, for subscriptions with fewer predicates."""


class UnrolledRows:
    """The table, and the chains of predicates that do not fit into a row."""

    def __init__(self, state: TableState, levels: int) -> None:
        self.chains = Chains(state)
        self.levels = levels
        """Predicates in a row: the paper's k."""
        self._state = state
        places = range(1, levels + 1)
        self._predicates = [f"{name}{place}" for place in places for name in ("path", "op", "value", "number")]
        types = (Storage.WHOLE, Storage.TEXT, Storage.TEXT, Storage.NUMBER) * levels
        ends = dict.fromkeys(("chain_id", "final", "link"), Storage.WHOLE)
        self._columns = {"is_equal": Storage.WHOLE, **dict(zip(self._predicates, types, strict=True)), **ends}

    def create(self, database: Connection) -> None:
        """Create the tables."""
        self.chains.create(database)
        second = ", path2" if self.levels > 1 else ""
        indexes = {"value": "is_equal, value1", "path": f"is_equal, path1{second}", "chain": "chain_id", "link": "link"}
        create_table(database, TABLE, self._columns, **indexes)

    def insert(self, database: Connection, chains: Sequence[Chain]) -> None:
        """Insert the rows of conjunctions, and the chains of those with more predicates than fit."""
        rows = [self._row(chain.predicates, chain.sid, None) for chain in chains if not self._rest(chain)]
        long = [(tuple(chain.predicates[: self.levels]), chain) for chain in chains if self._rest(chain)]
        starts = self._starts(database, {first for first, _ in long})
        for first, _ in long:
            if first not in starts:
                starts[first] = self._state.take("chain", 1)
                rows.append(self._row(first, starts[first], row_key(*first)))
        insert_rows(database, TABLE, self._columns, rows)
        self.chains.insert(database, [Chain(starts[first], chain.sid, self._rest(chain)) for first, chain in long])

    def _rest(self, chain: Chain) -> Sequence[StoredPredicate]:
        return chain.predicates[self.levels :]

    def _row(self, predicates: Sequence[StoredPredicate], chain_id: int, link: int | None) -> list[Any]:
        row: list[Any] = [int(predicates[0].op == EQUAL)]
        for predicate in (*predicates, *[NOTHING] * (self.levels - len(predicates))):
            row += predicate
        return [*row, chain_id, int(link is None), link]

    def _starts(
        self, database: Connection, wanted: set[tuple[StoredPredicate, ...]]
    ) -> dict[tuple[StoredPredicate, ...], int]:
        """Where the chains begin that continue stored rows, by the predicates of the rows."""
        columns = ", ".join(f"u.{name}" for name in ("chain_id", *self._predicates))
        query = f"SELECT {columns} FROM given CROSS JOIN {TABLE} u WHERE u.link = given.key"
        stored = rows_of_keys(database, query, {row_key(*first) for first in wanted})
        return {
            tuple(StoredPredicate(*cells[at : at + 4]) for at in range(0, len(cells), 4)): start
            for start, *cells in stored
        }

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete the rows of conjunctions."""
        removed = list(sids)
        delete_keys(database, TABLE, "chain_id", removed, "final = 1")
        delete_keys(database, TABLE, "chain_id", self.chains.delete(database, removed), "final = 0")
