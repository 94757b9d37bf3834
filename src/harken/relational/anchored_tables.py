"""The table and the query of `relational_anchored`: one row a conjunction.

A row is found by its anchor. `anchor` is the attribute of an equality, with its value in `num_lo`, `txt_lo` or
`whole_lo`; or, negative, that of a range, which begins there and ends before `num_hi`, `txt_hi` or `whole_hi`; or 0.
Every other predicate on attribute 3 is a range: from `a3_lo` on, below `a3_hi`, NULL where it has no end; or what lies
outside of one: below `a3_below` or from `a3_above` on. Events have the value of attribute 3 in `c3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harken.databases.dialects import Dialect, Storage
from harken.relational.typed_values import BEYOND, LEAST, Typed, first_beyond, first_of

TABLE = "anchored"
NO_KEY = "whole_lo"
"""The column that is 0 in rows without an anchor."""
EVENTS = "events"
_BRANCHES = 100
"""Anchors in one query: SQLite unites 500 at most."""


class Use(NamedTuple):
    """A predicate that is no anchor, but for its bounds: rows of one anchor have the columns of some uses."""

    attribute: int
    storage: Storage
    is_outside: bool

    @property
    def columns(self) -> tuple[str, str]:
        """The names of its two columns."""
        ends = ("below", "above") if self.is_outside else ("lo", "hi")
        return f"a{self.attribute}_{ends[0]}", f"a{self.attribute}_{ends[1]}"


class Anchor(NamedTuple):
    """The anchor of some rows."""

    attribute: int
    """0: they have none."""
    storage: Storage = Storage.WHOLE
    is_range: bool = False

    @property
    def number(self) -> int:
        return -self.attribute if self.is_range else self.attribute


Uses = dict[Anchor, set[Use]]
"""What the rows of each anchor ask for besides."""


def anchor_of(chosen: Typed | None) -> Anchor:
    """The anchor of rows that are found by a predicate."""
    return Anchor(0) if chosen is None else Anchor(chosen.attribute, chosen.storage, chosen.point is None)


def values_of(predicates: Iterable[Typed], chosen: Typed | None) -> tuple[dict[str, Any], set[Use]]:
    """The values of a row by column, and what it asks for besides its anchor."""
    values: dict[str, Any] = {"anchor": anchor_of(chosen).number}
    if chosen is None:
        values[NO_KEY] = 0  # so that these rows, too, are found in an index
    else:
        low, high = first_of(chosen), first_beyond(chosen)
        values[f"{chosen.storage}_lo"] = LEAST[chosen.storage] if low is None else low
        if chosen.point is None:
            values[f"{chosen.storage}_hi"] = BEYOND[chosen.storage] if high is None else high
    uses: set[Use] = set()
    for each in predicates:
        if each is chosen:
            continue
        use = Use(each.attribute, each.storage, each.is_outside)
        uses.add(use)
        left, right = use.columns
        low, high = first_of(each), first_beyond(each)
        if use.is_outside:
            values[left], values[right] = high, low
        else:  # one of them has a value, which asks for one of the event
            values[left] = LEAST[each.storage] if low is None and high is None else low
            values[right] = high
    return values, uses


def anchor_columns() -> dict[str, Storage]:
    """The columns that every row's anchor may have, with their types."""
    ends = {f"{storage}_{end}": storage for storage in Storage for end in ("lo", "hi")}
    return {"anchor": Storage.WHOLE, **ends}


def indexes(dialect: Dialect, table: str = TABLE) -> list[str]:
    """B-trees on the anchors, where there are indexes."""
    if not dialect.has_indexes:
        return []
    return [
        f"CREATE INDEX {table}_{storage} ON {table} (anchor, {storage}_lo) WHERE {storage}_lo IS NOT NULL"
        for storage in Storage
    ]


def range_indexes(dialect: Dialect, anchors: Iterable[Anchor], table: str = TABLE) -> list[str]:
    """GiST on the ranges of each of these anchors, where there is a type for them."""
    return [
        f"CREATE INDEX {table}_ranges_{each.attribute} ON {table} USING gist ({_range(dialect, each.storage)})"
        f" WHERE anchor = {each.number}"
        for each in sorted(anchors)
        if each.is_range and each.storage in dialect.range_types
    ]


def _range(dialect: Dialect, storage: Storage, row: str = "") -> str:
    return f"{dialect.range_types[storage]}({row}{storage}_lo, {row}{storage}_hi)"


def queries(
    dialect: Dialect, uses: Mapping[Anchor, Iterable[Use]], selected: str, tables: tuple[str, str] = (EVENTS, TABLE)
) -> list[str]:
    """What finds the rows `s` of events `e`, anchor by anchor: equalities by key, ranges by a comparison at each end.

    Where there is a type of ranges, it is asked for those that contain the value instead. `tables` has the names of the
    table of events and of that of subscriptions. Most have one query; where there are many anchors, the answers of
    several are to be united.
    """
    branches = [_branch(dialect, anchor, uses[anchor], selected, tables) for anchor in sorted(uses)]
    parts = (branches[first : first + _BRANCHES] for first in range(0, len(branches), _BRANCHES))
    return ["\nUNION ALL\n".join(part) for part in parts]


def _branch(dialect: Dialect, anchor: Anchor, uses: Iterable[Use], selected: str, tables: tuple[str, str]) -> str:
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
            is_open = anchor.storage is Storage.TEXT  # which has no greatest value
            conditions.append(f"({high} IS NULL OR {high} > {value})" if is_open else f"{high} > {value}")
    joined = "CROSS JOIN" if dialect.keeps_order or not anchor.attribute else "JOIN"
    on = " WHERE " if joined == "CROSS JOIN" else " ON "
    conditions += [_condition(use) for use in sorted(uses)]
    return f"SELECT {selected} FROM {tables[0]} e {joined} {tables[1]} s{on}" + "\n  AND ".join(conditions)


def _condition(use: Use) -> str:
    value, (left, right) = f"e.c{use.attribute}", use.columns
    if use.is_outside:
        return f"(s.{left} IS NULL OR {value} < s.{left} OR {value} >= s.{right})"
    return f"(s.{left} IS NULL OR {value} >= s.{left}) AND (s.{right} IS NULL OR {value} < s.{right})"
