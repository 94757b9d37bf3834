"""The columns of an index: the path of a value in the event, and its kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harken.schema import Kind, format_path
from harken.schema.derived import place_of
from harken.schema.paths import Path


class Column(NamedTuple):
    """The values of one kind at one path. Codes belong to a column: values of unlike kinds never compare."""

    path: Path
    kind: Kind | None
    """None for a presence column, whose values are False and True: whether the event has any value at the path."""
    coded: tuple[str, ...] | None = None
    """The values of the attribute's coded domain, if it has one. The constants are then places in the domain."""

    def __str__(self) -> str:
        return f"{format_path(self.path)} {'presence' if self.kind is None else self.kind}"


FEW_COLUMNS = 16
"""Number of columns up to which all are encoded: asking which of them the events have would cost more."""


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The places of columns by the first name of their paths: of many columns an event has few."""

    by_name: dict[str, list[int]]
    always: list[int]
    """Columns to encode whatever names an event has: presence, and derived attributes other than time readings."""

    @classmethod
    def of(cls, columns: Iterable[Column]) -> NamedColumns:
        by_name: dict[str, list[int]] = {}
        always: list[int] = []
        for place, column in enumerate(columns):
            name = place_of(column.path)[0]
            (by_name.setdefault(name, []) if name and column.kind is not None else always).append(place)
        return cls(by_name, always)

    def of_names(self, names: Iterable[str]) -> list[int]:
        """The places of the columns to encode for events that have these names, each once."""
        places = self.always.copy()
        for name in names:
            places += self.by_name.get(name, ())
        return places


@dataclass(frozen=True, slots=True)
class ColumnPredicates:
    """The predicates on one column, before coding: each admits what lies between two cuts.

    A cut is a constant and a side: 0 is just before it, 1 just after it. Where `low` is -1 everything from the left
    end is admitted, where `high` is -1 everything to the right end. If the low cut lies behind the high cut, as for
    `<>`, the predicate admits all values of the kind but those between the two.
    """

    column: Column
    constants: object
    """Constants in any order: a NumPy array of int64 or float64, a list of values, or `Constants`."""
    rows: NDArray[np.int32]
    """The row of each predicate, ascending. A row has at most one predicate on a column."""
    low: NDArray[np.int32]
    low_side: NDArray[np.uint8]
    high: NDArray[np.int32]
    high_side: NDArray[np.uint8]
