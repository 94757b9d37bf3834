"""Predicates as in the paper's relations, (attr, op, val), and SQL conditions for those that an event satisfies.

`val` is three columns, one a storage: no type of SQL holds numbers and texts and compares both as Harken does. Every
event has the attribute 0, and a row without predicates gets an equality on it.
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
from harken.relational.typed_values import LEAST, StoredInterval

_MOST_OUTSIDE = 4
"""Most predicates of a row that have two alternatives: with n such predicates a row becomes 2^n rows."""
_PLACE = 58
"""The lowest bit in a row's id of its place among the alternatives of one row."""
_AT_ONCE = 32
"""Most attributes in one condition: databases limit the depth of expressions."""
# By operator, how the stored constant compares with the event's value.
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOW, _HIGH = (">=", ">"), ("<", "<=")

Fact = tuple[int, Storage, Any]
"""A value of an event: its attribute, its storage, and the value."""
ALWAYS: Fact = (0, Storage.WHOLE, 0)


class Predicate(NamedTuple):
    """A row of the paper's relations."""

    attribute: int
    operator: str
    storage: Storage
    value: Any


VALUE_COLUMNS = {"attr": Storage.WHOLE, "op": Storage.TEXT, **{str(storage): storage for storage in Storage}}
"""The columns of a table that hold a predicate."""


def create_value_indexes(database: Connection, table: str) -> None:
    """Create B-trees on attribute, operator and value, if the database has indexes."""
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
    """A row as alternative rows of predicates, with their ids: a value outside an interval is below it or above it."""
    choices = [_alternatives(each) for each in row.predicates]
    if sum(len(each) > 1 for each in choices) > _MOST_OUTSIDE:
        pairs = zip(choices, row.predicates, strict=True)
        choices = [each if len(each) == 1 else [[_presence(interval)]] for each, interval in pairs]
        return [(row.sid | 1, _conjunction(next(product(*choices))))]
    return [(row.sid | place << _PLACE, _conjunction(chosen)) for place, chosen in enumerate(product(*choices))]


def _conjunction(chosen: Sequence[list[Predicate]]) -> list[Predicate]:
    """The chosen predicates in one list; if there are none, a predicate that always holds."""
    predicates = [predicate for several in chosen for predicate in several]
    return predicates or [Predicate(0, "=", Storage.WHOLE, 0)]


def _alternatives(interval: StoredInterval) -> list[list[Predicate]]:
    """Conjunctions of predicates, one of which holds if and only if a value lies in the interval."""
    attribute, storage, low, high, is_outside = interval
    below = [] if high is None else [Predicate(attribute, _HIGH[high[1]], storage, high[0])]
    above = [] if low is None else [Predicate(attribute, _LOW[low[1]], storage, low[0])]
    if is_outside:
        if low is not None and high == (low[0], 0) and low[1]:
            return [[Predicate(attribute, "<>", storage, low[0])]]
        return [below, above]
    if interval.point is not None:
        return [[Predicate(attribute, "=", storage, interval.point)]]
    return [above + below or [_presence(interval)]]


def _presence(interval: StoredInterval) -> Predicate:
    return Predicate(interval.attribute, ">=", interval.storage, LEAST[interval.storage])


def conditions(facts: Sequence[Fact], parameter: Callable[[int], str]) -> tuple[list[str], list[Any]]:
    """SQL conditions on predicates, and the values of their parameters, for the values of an event.

    A satisfied predicate meets exactly one condition, because each is about other attributes.
    """
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
    """The condition for values of these storages. Each alternative of the OR is one range of the B-tree."""
    return " OR ".join(
        f"(attr = {marks[2 * place]} AND op = '{operator}' AND {storage} {mirrored} {marks[2 * place + 1]})"
        for place, storage in enumerate(storages)
        for operator, mirrored in _MIRRORED.items()
    )


def find_by_event(
    database: Connection, events: TypedEvents, places: range, selected: str, query: Callable[[str], str]
) -> NDArray[np.int64]:
    """Pairs of an event and a row that holds for it, by one query for each event, as in the paper.

    `selected` is the query for all predicates, without a condition. `query` makes the query for rows that hold from the
    query for predicates that hold.
    """
    pairs = [np.empty((0, 2), np.int64)]
    for event, facts in enumerate(events.by_event()[places.start : places.stop], places.start):
        if not events.excluded[event]:
            texts, values = conditions(facts, database.parameter)
            satisfied = " UNION ALL ".join(f"{selected} WHERE {text}" for text in texts)
            pairs.append(np.insert(database.integers(query(satisfied), values), 0, event, axis=1))
    return np.concatenate(pairs)
