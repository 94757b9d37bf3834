"""Predicate_Unroll: the first predicates of a subscription in one row, the rest as a chain (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, insert_rows
from harken_lab.plans.xml.chains import Chains, StoredPredicate
from harken_lab.plans.xml.linear_paths import NO_PATH
from harken_lab.plans.xml.path_predicates import ANY, EQUAL

TABLE = "predicate_unroll"
LEVELS = 5
"""Predicates in a row. The paper calls 5 or 6 reasonable."""
NOTHING = StoredPredicate(NO_PATH, ANY, None, None)
"""A predicate that always holds, for subscriptions with fewer predicates."""


def _columns() -> Iterator[tuple[str, Storage]]:
    yield "sub_id", Storage.WHOLE
    yield "is_equal", Storage.WHOLE
    for level in range(1, LEVELS + 1):
        yield f"path{level}", Storage.WHOLE
        yield f"op{level}", Storage.TEXT
        yield f"value{level}", Storage.TEXT
        yield f"number{level}", Storage.NUMBER
    yield "chain_id", Storage.WHOLE
    yield "final", Storage.WHOLE


COLUMNS = dict(_columns())


class UnrolledRows:
    """The table, and the chains of predicates that do not fit into a row."""

    def __init__(self) -> None:
        self.chains = Chains()
        self._new: list[list[object]] = []

    def create(self, database: Connection) -> None:
        """Create the tables."""
        self.chains.create(database)
        create_table(database, TABLE, COLUMNS, value="is_equal, value1", sub="sub_id")

    def add(self, sid: int, predicates: Sequence[StoredPredicate]) -> None:
        """Buffer the row of a conjunction, and its chain if it has more predicates than fit."""
        row: list[object] = [sid, int(predicates[0].op == EQUAL)]
        for predicate in (*predicates[:LEVELS], *[NOTHING] * (LEVELS - len(predicates))):
            row += predicate
        rest = predicates[LEVELS:]
        row += (self.chains.add_continuation(sid, rest), 0) if rest else (sid, 1)
        self._new.append(row)

    def store(self, database: Connection) -> None:
        """Insert the buffered rows."""
        self.chains.store(database)
        insert_rows(database, TABLE, COLUMNS, self._new)
        self._new = []

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete the rows of conjunctions."""
        removed = list(sids)
        self.chains.delete(database, removed)
        database.run_many(f"DELETE FROM {TABLE} WHERE sub_id = {database.parameter(1)}", [(sid,) for sid in removed])
