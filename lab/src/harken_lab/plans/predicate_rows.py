"""Predicates as the paper's relations have them, (attr, op, val), and the condition that a publication puts on them.

`val` is three columns, one a storage: no type of SQL holds numbers and texts and compares both as Harken does. The
attribute 0 is one that every event has: a row that asks for nothing asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.databases.connection import Connection
from harken.databases.dialects import Storage
from harken.relational.sql_rows import SqlRow
from harken.relational.typed_events import TypedEvents
from harken.relational.typed_values import LEAST, Typed

_MOST_OUTSIDE = 4
"""Predicates of a row that have two ways to hold; the rows that it becomes are 2 to the power of that many."""
_PLACE = 58
"""The bit of a row's id from which on its place among its alternatives stands."""
_AT_ONCE = 32
"""Attributes in one condition: databases bound how deep an expression may be."""
# Which comparison of the stored value with that of the event each operator is.
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOW, _HIGH = (">=", ">"), ("<", "<=")

Fact = tuple[int, Storage, Any]
"""An attribute of an event, how it is stored, and its value."""
ALWAYS: Fact = (0, Storage.WHOLE, 0)


class Predicate(NamedTuple):
    """A row of the paper's relations."""

    attribute: int
    operator: str
    storage: Storage
    value: Any


VALUE_COLUMNS = {"attr": Storage.WHOLE, "op": Storage.TEXT, **{str(storage): storage for storage in Storage}}
"""The columns of a predicate in a table."""


def create_value_indexes(database: Connection, table: str) -> None:
    """Make b-trees on attribute, operator and value, where the engine has any."""
    for storage in Storage if database.dialect.has_indexes else ():
        text = f"CREATE INDEX {table}_{storage} ON {table} (attr, op, {storage}) WHERE {storage} IS NOT NULL"
        database.run(text)


def columns_of(predicates: Sequence[Predicate]) -> dict[str, tuple[Storage, list[Any]]]:
    """Predicates as columns to insert."""
    columns: dict[str, tuple[Storage, list[Any]]] = {
        "attr": (Storage.WHOLE, [each.attribute for each in predicates]),
        "op": (Storage.TEXT, [each.operator for each in predicates]),
    }
    for storage in Storage:
        values = [each.value if each.storage is storage else None for each in predicates]
        columns[storage.value] = storage, values
    return columns


def alternatives(row: SqlRow) -> list[tuple[int, list[Predicate]]]:
    """A row as rows of predicates, with their ids: what is outside an interval is below it or above it."""
    ways = [_ways(each) for each in row.predicates]
    if sum(len(each) > 1 for each in ways) > _MOST_OUTSIDE:
        pairs = zip(ways, row.predicates, strict=True)
        ways = [each if len(each) == 1 else [[_presence(typed)]] for each, typed in pairs]
        return [(row.sid | 1, _joined(next(product(*ways))))]
    return [(row.sid | place << _PLACE, _joined(chosen)) for place, chosen in enumerate(product(*ways))]


def _joined(chosen: Sequence[list[Predicate]]) -> list[Predicate]:
    found = [predicate for several in chosen for predicate in several]
    return found or [Predicate(0, "=", Storage.WHOLE, 0)]


def _ways(typed: Typed) -> list[list[Predicate]]:
    attribute, storage, low, high, is_outside = typed
    below = [] if high is None else [Predicate(attribute, _HIGH[high[1]], storage, high[0])]
    above = [] if low is None else [Predicate(attribute, _LOW[low[1]], storage, low[0])]
    if is_outside:
        if low is not None and high == (low[0], 0) and low[1]:
            return [[Predicate(attribute, "<>", storage, low[0])]]
        return [below, above]
    if typed.point is not None:
        return [[Predicate(attribute, "=", storage, typed.point)]]
    return [above + below or [_presence(typed)]]


def _presence(typed: Typed) -> Predicate:
    return Predicate(typed.attribute, ">=", typed.storage, LEAST[typed.storage])


def conditions(facts: Sequence[Fact], parameter: Callable[[int], str]) -> tuple[list[str], list[Any]]:
    """The conditions that a publication puts on predicates, one of which holds for each that is satisfied, and their
    values. They differ in attributes, so that no predicate meets two."""
    facts = [ALWAYS, *facts]
    texts: list[str] = []
    values: list[Any] = []
    for first in range(0, len(facts), _AT_ONCE):
        part = facts[first : first + _AT_ONCE]
        marks = tuple(parameter(place) for place in range(len(values) + 1, len(values) + 2 * len(part) + 1))
        texts.append(_condition(tuple(storage for _, storage, _ in part), marks))
        values += [each for attribute, _, value in part for each in (attribute, value)]
    return texts, values


@lru_cache(1_024)
def _condition(storages: tuple[Storage, ...], marks: tuple[str, ...]) -> str:
    """Written so that each alternative is one range of the b-tree."""
    return " OR ".join(
        f"(attr = {marks[2 * place]} AND op = '{operator}' AND {storage} {mirrored} {marks[2 * place + 1]})"
        for place, storage in enumerate(storages)
        for operator, mirrored in _MIRRORED.items()
    )


def find_by_event(
    database: Connection, events: TypedEvents, places: range, selected: str, query: Callable[[str], str]
) -> NDArray[np.int64]:
    """Pairs of an event and a row that holds for it, by a query for each event, as the paper has it.

    `selected` is what selects predicates, without a condition; `query` makes the query of what selects those that hold.
    """
    found = [np.empty((0, 2), np.int64)]
    for event, facts in enumerate(events.by_event()[places.start : places.stop], places.start):
        if not events.apart[event]:
            texts, values = conditions(facts, database.parameter)
            held = " UNION ALL ".join(f"{selected} WHERE {text}" for text in texts)
            found.append(np.insert(database.integers(query(held), values), 0, event, axis=1))
    return np.concatenate(found)
