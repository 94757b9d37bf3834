"""Constants of one column as arrays, in any order: what dictionaries are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.codes.columns import Column
from harken.events.cells import Cells, as_integer, embedded, whole_and_part
from harken.schema import Kind


@dataclass(frozen=True, slots=True)
class Pairs:
    """Constants as integers, and numbers with the part that an integer does not hold (see events.cells)."""

    whole: NDArray[np.int64]
    part: NDArray[np.float64] | None = None
    """None if there are only integers."""

    def __len__(self) -> int:
        return len(self.whole)


Constants = Pairs | Any
"""`Pairs`, or a pyarrow.LargeStringArray, for which there are no type hints."""


def holds_strings(column: Column) -> bool:
    """Whether the constants of a column are strings, not integers or numbers."""
    return column.kind is Kind.STRING and column.coded is None


def constants_of(column: Column, given: Any) -> Constants:
    """Constants of a column from a NumPy array, a list of values, or constants."""
    if isinstance(given, Pairs):
        return given
    if holds_strings(column):
        if isinstance(given, pa.Array):
            return given.cast(pa.large_string())
        return pa.array(given, pa.large_string())
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "f":
            return Pairs(*embedded(given))
        return Pairs(given.astype(np.int64))
    return _pairs_of_list(column, given)


def selected(constants: Constants, used: NDArray[np.bool_]) -> Constants:
    """The constants that are used."""
    if used.all():
        return constants
    if isinstance(constants, Pairs):
        return Pairs(constants.whole[used], None if constants.part is None else constants.part[used])
    return constants.filter(pa.array(used))


def concatenated(several: Sequence[Constants]) -> Constants:
    """Concatenate constants of one column."""
    pairs = [each for each in several if isinstance(each, Pairs)]
    if not pairs:
        return pa.concat_arrays(several)
    whole = np.concatenate([each.whole for each in pairs])
    if all(each.part is None for each in pairs):
        return Pairs(whole)
    parts = [np.zeros(len(each)) if each.part is None else each.part for each in pairs]
    return Pairs(whole, np.concatenate(parts))


def as_cells(column: Column, constants: Constants) -> Cells:
    """Constants as cells, one an event, so that another dictionary can encode them."""
    rows = np.arange(len(constants), dtype=np.int32)
    kind = column.kind or Kind.BOOLEAN
    if isinstance(constants, Pairs):
        return Cells(kind, rows, constants.whole, constants.part)
    return Cells(kind, rows, constants)


def _pairs_of_list(column: Column, given: Sequence[Any]) -> Pairs:
    types = set(map(type, given))
    if types <= {int} or types <= {bool}:
        return Pairs(np.array(given, np.int64))
    if types <= {float}:
        return Pairs(*embedded(np.array(given, np.float64)))
    if column.kind is Kind.NUMBER:
        pairs = list(map(whole_and_part, given))
        whole, part = np.array([whole for whole, _ in pairs], np.int64), np.array([part for _, part in pairs])
        return Pairs(whole, part if part.any() else None)
    assert column.kind is not None, f"{types} in a column that asks for presence"
    kind = column.kind
    return Pairs(np.array([as_integer(kind, value) for value in given], np.int64))
