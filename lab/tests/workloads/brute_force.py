"""Workloads evaluated by what their predicates say, without any of Harken's matching: the oracle of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import ColumnPredicates
from harken.schema.paths import Path
from harken_lab.workloads.workload import Workload

Event = dict[str, Any]


def is_true(predicate: tuple[Any, int, Any, int], value: Any) -> bool:
    """A predicate as (low, side, high, side), constants or None, of a value: in plain Python."""
    low, low_side, high, high_side = predicate
    if value is None:
        return False
    above = low is None or (value > low if low_side else value >= low)
    below = high is None or (value <= high if high_side else value < high)
    is_wrapped = low is not None and high is not None and (low, low_side) > (high, high_side)
    return above or below if is_wrapped else above and below


def bindings(event: Event) -> Iterator[Event]:
    """The event with one element in place of every array, in all ways that there are."""
    arrays = [name for name, value in event.items() if isinstance(value, list)]
    for elements in product(*(event[name] or [None] for name in arrays)):
        yield event | dict(zip(arrays, elements, strict=True))


def value_at(holder: Any, path: Path) -> Any:
    for key in path:
        holder = None if holder is None else holder[key]
    return holder


def rows_of(workload: Workload) -> list[dict[Path, tuple[Any, int, Any, int]]]:
    """Every subscription's predicates by attribute, read off the arrays one by one."""
    found: list[dict[Path, tuple[Any, int, Any, int]]] = [{} for _ in range(workload.subscriptions)]
    for each in workload.predicates:
        name = each.column.path
        constants = constants_of(each)
        for row, low, low_side, high, high_side in zip(
            *(part.tolist() for part in (each.rows, each.low, each.low_side, each.high, each.high_side)), strict=True
        ):
            assert name not in found[row]
            cuts = [None if cut < 0 else constants[cut] for cut in (low, high)]
            found[row][name] = (cuts[0], low_side, cuts[1], high_side)
    return found


def constants_of(predicates: ColumnPredicates) -> list[Any]:
    constants: Any = predicates.constants
    return constants if isinstance(constants, list) else constants.tolist()


class BruteForce:
    """Evaluates all predicates of a workload at once."""

    def __init__(self, workload: Workload) -> None:
        self._subscriptions = workload.subscriptions
        self._by_name: dict[str, list[tuple[ColumnPredicates, NDArray[Any]]]] = {}
        for each in workload.predicates:
            self._by_name.setdefault(each.column.path[0], []).append((each, np.asarray(each.constants)))

    def matches(self, event: Event) -> NDArray[np.intp]:
        """The rows of the subscriptions that are true of the event."""
        is_match = np.ones(self._subscriptions, np.bool_)
        for name, columns in self._by_name.items():
            has_one = np.ones(self._subscriptions, np.bool_)
            for predicates, _ in columns:
                has_one[predicates.rows] = False
            for element in event[name] if isinstance(event[name], list) else [event[name]]:
                has_one |= self._holds(columns, element)
            is_match &= has_one
        return np.flatnonzero(is_match)

    def _holds(self, columns: list[tuple[ColumnPredicates, NDArray[Any]]], element: Any) -> NDArray[np.bool_]:
        """The rows whose predicates on an attribute, or on what is inside of it, all hold for one element of it."""
        holds = np.ones(self._subscriptions, np.bool_)
        for predicates, constants in columns:
            value = value_at(element, predicates.column.path[1:])
            holds[predicates.rows] &= False if value is None else _are_true(predicates, constants, value)
        return holds


def _are_true(predicates: ColumnPredicates, constants: NDArray[Any], value: Any) -> NDArray[np.bool_]:
    # By side and constant: does the value lie behind this cut?
    behind = np.stack([value >= constants, value > constants])
    above = (predicates.low < 0) | behind[predicates.low_side, predicates.low]
    below = (predicates.high < 0) | ~behind[predicates.high_side, predicates.high]
    # Only != has both cuts at one constant with the low one behind.
    is_wrapped = (predicates.low == predicates.high) & (predicates.low_side > predicates.high_side)
    return np.where(is_wrapped, above | below, above & below)
