"""What an index is about, column by column: where a value stands in the event, and of which kind it is."""

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
    """None asks whether there is any value at all: the values of such a column are False and True."""
    coded: tuple[str, ...] | None = None
    """The values of a coded domain, if the attribute has one. Then the constants are their places in it."""

    def __str__(self) -> str:
        return f"{format_path(self.path)} {'presence' if self.kind is None else self.kind}"


FEW_COLUMNS = 16
"""So many columns are all looked at: to ask which of them events have would cost more."""


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The places of columns by the name that their paths begin with: an event has few of many."""

    by_name: dict[str, list[int]]
    always: list[int]
    """Those that are looked at whatever an event has: of presence, and of derived attributes but for readings."""

    @classmethod
    def of(cls, columns: Iterable[Column]) -> NamedColumns:
        by_name: dict[str, list[int]] = {}
        always: list[int] = []
        for place, column in enumerate(columns):
            name = place_of(column.path)[0]
            (by_name.setdefault(name, []) if name and column.kind is not None else always).append(place)
        return cls(by_name, always)

    def of_names(self, names: Iterable[str]) -> list[int]:
        """The places of the columns to look at for events that have these names, each once."""
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
    """Constants in any order: a NumPy array of int64 or float64, a list of values, or as in constants.py."""
    rows: NDArray[np.int32]
    """The row of each predicate, ascending. A row has at most one predicate on a column."""
    low: NDArray[np.int32]
    low_side: NDArray[np.uint8]
    high: NDArray[np.int32]
    high_side: NDArray[np.uint8]
