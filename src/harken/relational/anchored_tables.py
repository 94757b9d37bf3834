"""The table and the query of `relational_anchored`: one row a conjunction.

A row is found by its anchor, one of its predicates. The column `anchor` is the attribute of an equality, whose value is
in `num_lo`, `txt_lo` or `whole_lo`; or, negated, the attribute of a range from there to below `num_hi`, `txt_hi` or
`whole_hi`; or 0 without an anchor. The other predicates have columns by attribute: a range on attribute 3 goes from
`a3_lo` to below `a3_hi`, NULL for no bound; the values outside of a range are below `a3_below` or from `a3_above` on.
Events have the value of attribute 3 in `c3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harken.databases.dialects import Dialect, Storage
from harken.relational.typed_values import BEYOND, LEAST, StoredInterval, first_beyond, first_of

TABLE = "anchored"
NO_KEY = "whole_lo"
"""The column that is 0 in rows without an anchor, so that an index finds these rows too."""
EVENTS = "events"
_BRANCHES = 100
"""Most anchors in one query. SQLite allows 500 terms in a UNION."""


class PredicateColumns(NamedTuple):
    """The two columns that hold the bounds of predicates on one attribute, other than anchors."""

    attribute: int
    storage: Storage
    is_outside: bool

    @property
    def columns(self) -> tuple[str, str]:
        """The names of its two columns."""
        ends = ("below", "above") if self.is_outside else ("lo", "hi")
        return f"a{self.attribute}_{ends[0]}", f"a{self.attribute}_{ends[1]}"


class Anchor(NamedTuple):
    """What the anchors of some rows have in common: attribute, storage, and whether they are ranges."""

    attribute: int
    """0 for rows without an anchor."""
    storage: Storage = Storage.WHOLE
    is_range: bool = False

    @property
    def number(self) -> int:
        """The value of the column `anchor`."""
        return -self.attribute if self.is_range else self.attribute


ColumnsByAnchor = dict[Anchor, set[PredicateColumns]]
"""The columns that hold predicates of the rows of each anchor."""


def anchor_of(chosen: StoredInterval | None) -> Anchor:
    """The anchor of rows that are found by this predicate."""
    return Anchor(0) if chosen is None else Anchor(chosen.attribute, chosen.storage, chosen.point is None)


def values_of(
    predicates: Iterable[StoredInterval], chosen: StoredInterval | None
) -> tuple[dict[str, Any], set[PredicateColumns]]:
    """The values of a row by column, and the columns of its predicates other than the anchor."""
    values: dict[str, Any] = {"anchor": anchor_of(chosen).number}
    if chosen is None:
        values[NO_KEY] = 0
    else:
        low, high = first_of(chosen), first_beyond(chosen)
        values[f"{chosen.storage}_lo"] = LEAST[chosen.storage] if low is None else low
        if chosen.point is None:
            values[f"{chosen.storage}_hi"] = BEYOND[chosen.storage] if high is None else high
    used: set[PredicateColumns] = set()
    for each in predicates:
        if each is chosen:
            continue
        pair = PredicateColumns(each.attribute, each.storage, each.is_outside)
        used.add(pair)
        left, right = pair.columns
        low, high = first_of(each), first_beyond(each)
        if pair.is_outside:
            values[left], values[right] = high, low
        else:  # one bound is not NULL, so that the event has to have a value
            values[left] = LEAST[each.storage] if low is None and high is None else low
            values[right] = high
    return values, used


def anchor_columns() -> dict[str, Storage]:
    """The columns that hold anchors, with their types."""
    ends = {f"{storage}_{end}": storage for storage in Storage for end in ("lo", "hi")}
    return {"anchor": Storage.WHOLE, **ends}


def indexes(dialect: Dialect, table: str = TABLE) -> list[str]:
    """Statements that create B-tree indexes on the anchors, if the database has indexes."""
    if not dialect.has_indexes:
        return []
    return [
        f"CREATE INDEX {table}_{storage} ON {table} (anchor, {storage}_lo) WHERE {storage}_lo IS NOT NULL"
        for storage in Storage
    ]


def range_indexes(dialect: Dialect, anchors: Iterable[Anchor], table: str = TABLE) -> list[str]:
    """Statements that create a GiST index for each anchor on ranges of which the database has a range type."""
    return [
        f"CREATE INDEX {table}_ranges_{each.attribute} ON {table} USING gist ({_range(dialect, each.storage)})"
        f" WHERE anchor = {each.number}"
        for each in sorted(anchors)
        if each.is_range and each.storage in dialect.range_types
    ]


def _range(dialect: Dialect, storage: Storage, row: str = "") -> str:
    return f"{dialect.range_types[storage]}({row}{storage}_lo, {row}{storage}_hi)"


def queries(
    dialect: Dialect,
    columns: Mapping[Anchor, Iterable[PredicateColumns]],
    selected: str,
    tables: tuple[str, str] = (EVENTS, TABLE),
) -> list[str]:
    """The queries that find the rows `s` that match events `e`: equalities by key, ranges by comparing both bounds.

    If the database has a range type, ranges are found by the operator "contains" instead. `tables` has the names of the
    table of events and of the table of subscriptions. The matches are the union of the queries' results: there is one
    query unless there are many anchors.
    """
    branches = [_branch(dialect, anchor, columns[anchor], selected, tables) for anchor in sorted(columns)]
    parts = (branches[first : first + _BRANCHES] for first in range(0, len(branches), _BRANCHES))
    return ["\nUNION ALL\n".join(part) for part in parts]


def _branch(
    dialect: Dialect, anchor: Anchor, columns: Iterable[PredicateColumns], selected: str, tables: tuple[str, str]
) -> str:
    conditions = [f"s.anchor = {anchor.number}"]
    if not anchor.attribute:
        conditions.append(f"s.{NO_KEY} = 0")
    else:
        value, low, high = f"e.c{anchor.attribute}", f"s.{anchor.storage}_lo", f"s.{anchor.storage}_hi"
        if not anchor.is_range:
            conditions.append(f"{low} = {value}")
        elif anchor.storage in dialect.range_types:
            conditions.append(f"{_range(dialect, anchor.storage, 's.')} @> {value}")
        else:
            conditions.append(f"{low} <= {value}")
            is_open = anchor.storage is Storage.TEXT  # there is no greatest text
            conditions.append(f"({high} IS NULL OR {high} > {value})" if is_open else f"{high} > {value}")
    joined = "CROSS JOIN" if dialect.keeps_order or not anchor.attribute else "JOIN"
    on = " WHERE " if joined == "CROSS JOIN" else " ON "
    conditions += [_condition(pair) for pair in sorted(columns)]
    return f"SELECT {selected} FROM {tables[0]} e {joined} {tables[1]} s{on}" + "\n  AND ".join(conditions)


def _condition(pair: PredicateColumns) -> str:
    value, (left, right) = f"e.c{pair.attribute}", pair.columns
    if pair.is_outside:
        return f"(s.{left} IS NULL OR {value} < s.{left} OR {value} >= s.{right})"
    return f"(s.{left} IS NULL OR {value} >= s.{left}) AND (s.{right} IS NULL OR {value} < s.{right})"
