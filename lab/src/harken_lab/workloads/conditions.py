"""The predicates of a workload as they are drawn: on one attribute, of one type, in many subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.schema import Kind, parse_path

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(len(OPERATORS))

# By operator: is there a cut at this end, and on which side of the constant (0 before, 1 after)?
_HAS_LOW = np.array([True, True, False, False, True, True])
_LOW_SIDE = np.array([0, 1, 0, 0, 1, 0], np.uint8)
_HAS_HIGH = np.array([True, True, True, True, False, False])
_HIGH_SIDE = np.array([1, 0, 0, 1, 0, 0], np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class Conditions:
    """Predicates on one attribute: an operator and a constant for each of some subscriptions."""

    attribute: str
    """As subscriptions write it: `items.sku` is a path."""
    constants: NDArray[np.int64] | list[str]
    """Different constants, each of them used."""
    rows: NDArray[np.int32]
    """The subscriptions, ascending, each at most once."""
    operators: NDArray[np.uint8]
    """Places in OPERATORS."""
    operands: NDArray[np.int32]
    """Places in the constants."""

    @property
    def kind(self) -> Kind:
        return Kind.STRING if isinstance(self.constants, list) else Kind.NUMBER

    def as_predicates(self) -> ColumnPredicates:
        """The conditions in the form that an index takes."""
        operators, operands = self.operators, self.operands
        none = np.int32(-1)
        return ColumnPredicates(
            column=Column(parse_path(self.attribute), self.kind),
            constants=self.constants,
            rows=self.rows,
            low=np.where(_HAS_LOW[operators], operands, none),
            low_side=_LOW_SIDE[operators],
            high=np.where(_HAS_HIGH[operators], operands, none),
            high_side=_HIGH_SIDE[operators],
        )

    def renamed(self, attribute: str) -> Conditions:
        """The same conditions on another attribute."""
        return replace(self, attribute=attribute)

    def moved(self, rows: NDArray[np.int32]) -> Conditions:
        """The same conditions in other subscriptions: row i becomes `rows[i]`, and these are ascending."""
        return replace(self, rows=rows[self.rows])


def as_predicates(conditions: Sequence[Conditions]) -> list[ColumnPredicates]:
    """Conditions in the form that an index takes: an attribute with a lower and an upper bound has one predicate."""
    by_attribute: dict[str, list[Conditions]] = {}
    for each in conditions:
        by_attribute.setdefault(each.attribute, []).append(each)
    return [each[0].as_predicates() if len(each) == 1 else _between(*each) for each in by_attribute.values()]


def _between(lower: Conditions, upper: Conditions) -> ColumnPredicates:
    """One predicate for a lower and an upper bound, which the same subscriptions have."""
    assert np.array_equal(lower.rows, upper.rows)
    low, high = lower.as_predicates(), upper.as_predicates()
    constants, places = np.unique(np.concatenate([lower.constants, upper.constants]), return_inverse=True)
    lows, highs = np.split(places.astype(np.int32), [len(lower.constants)])
    return replace(low, constants=constants, low=lows[low.low], high=highs[high.high], high_side=high.high_side)


def on_integers(
    attribute: str, rows: NDArray[np.int32], operators: NDArray[np.uint8], values: NDArray[np.integer], least: int
) -> Conditions:
    """Conditions on integers. The constants are `least + values`."""
    used, operands = _used(values)
    return Conditions(attribute, used.astype(np.int64) + least, rows, operators, operands)


def on_strings(
    attribute: str, rows: NDArray[np.int32], values: NDArray[np.integer], names: Sequence[str]
) -> Conditions:
    """Equalities with strings. A value is the place of its string in `names`."""
    used, operands = _used(values)
    return Conditions(attribute, [names[each] for each in used], rows, np.zeros(len(rows), np.uint8), operands)


def _used(values: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The different values, ascending, and the place of each value among them. Quicker than sorting."""
    is_used = np.zeros(values.max(initial=-1) + 1, np.bool_)
    is_used[values] = True
    places = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(is_used), places[values]
