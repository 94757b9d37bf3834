"""Predicate_Unroll: the first predicates of a subscription in one row, the rest as a chain (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, insert_rows
from harken_lab.plans.xml.chains import Chains, Stored
from harken_lab.plans.xml.linear_paths import NO_PATH
from harken_lab.plans.xml.path_predicates import ANY, EQUAL

TABLE = "predicate_unroll"
LEVELS = 5
"""Predicates in a row: the paper finds 5 or 6 reasonable."""
NOTHING = Stored(NO_PATH, ANY, None, None)
"""What stands in a row in place of predicates that a subscription does not have. It always holds."""


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
    """The table, and the chains of what does not fit into a row."""

    def __init__(self) -> None:
        self.chains = Chains()
        self._new: list[list[object]] = []

    def create(self, database: Connection) -> None:
        """Make the tables."""
        self.chains.create(database)
        create_table(database, TABLE, COLUMNS, value="is_equal, value1", sub="sub_id")

    def add(self, sid: int, predicates: Sequence[Stored]) -> None:
        """Take a subscription."""
        row: list[object] = [sid, int(predicates[0].op == EQUAL)]
        for predicate in (*predicates[:LEVELS], *[NOTHING] * (LEVELS - len(predicates))):
            row += predicate
        rest = predicates[LEVELS:]
        row += (self.chains.add_behind(sid, rest), 0) if rest else (sid, 1)
        self._new.append(row)

    def store(self, database: Connection) -> None:
        """Insert what was taken."""
        self.chains.store(database)
        insert_rows(database, TABLE, COLUMNS, self._new)
        self._new = []

    def delete(self, database: Connection, sids: Iterable[int]) -> None:
        """Delete subscriptions."""
        gone = list(sids)
        self.chains.delete(database, gone)
        database.run_many(f"DELETE FROM {TABLE} WHERE sub_id = {database.parameter(1)}", [(sid,) for sid in gone])
