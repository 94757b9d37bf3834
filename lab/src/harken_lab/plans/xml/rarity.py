"""The order in which predicates are tested: those that few documents are expected to satisfy come first (section 3.2).

Equalities come before all other predicates. A constant that many subscriptions have is assumed to occur in many
documents, so the equality with the rarest constant comes first. Query_Value counts how many equalities have each
constant, by a key of the constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.tables import create_table, delete_keys, insert_rows, row_key, rows_of_keys
from harken_lab.plans.xml.path_predicates import ANY, EQUAL, PlacedPredicate

TABLE = "query_value"
_COLUMNS = dict.fromkeys(("value_key", "uses"), Storage.WHOLE)
_READ = f"SELECT v.value_key, v.uses FROM given CROSS JOIN {TABLE} v WHERE v.value_key = given.key"
_RANKS = {EQUAL: 0, "!=": 2, "number!=": 2, ANY: 3}
"""By operator; 1 for ranges. Nearly all documents satisfy predicates of the last ranks."""


def create_values(database: Connection) -> None:
    """Create the table."""
    create_table(database, TABLE, _COLUMNS, key="value_key")


def value_keys(predicates: Iterable[PlacedPredicate]) -> list[int]:
    """The keys of the constants of a conjunction's equalities."""
    return [_key(each) for each in predicates if each[0].op == EQUAL]


def count_values(database: Connection, keys: Iterable[int], by: int) -> Counter[int]:
    """Add `by` for each equality with one of these constants. Returns the new counts."""
    differences = Counter(keys)
    counts = Counter({key: by * count for key, count in differences.items()})
    for key, uses in rows_of_keys(database, _READ, differences):
        counts[key] += uses
    delete_keys(database, TABLE, "value_key", differences)
    insert_rows(database, TABLE, _COLUMNS, [each for each in counts.items() if each[1] > 0])
    return counts


def ordered(predicates: Sequence[PlacedPredicate], counts: Counter[int]) -> list[PlacedPredicate]:
    """The predicates of a conjunction, the most selective first."""

    def rank(placed: PlacedPredicate) -> tuple[int, int]:
        op = placed[0].op
        return _RANKS.get(op, 1), counts[_key(placed)] if op == EQUAL else 0

    return sorted(predicates, key=rank)


def _key(placed: PlacedPredicate) -> int:
    return row_key(placed[0].value)
