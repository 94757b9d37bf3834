"""Conjunctions as rows of codes: what all matchers on arrays are built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.constants import constants_of, selected
from harken.codes.dictionary import Dictionary, dictionary_of


@dataclass(frozen=True, slots=True)
class CodedPredicates:
    """The predicates on one column: a row asks for a code from `low` to `high`, both included.

    Where low is greater than high the interval is wrapped: it admits every code but 0 that is >= low or <= high. So
    `<>` goes from one above the constant's code to one below it.
    """

    column: Column
    dictionary: Dictionary
    rows: NDArray[np.int32]
    """The row of each predicate, ascending."""
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]

    @property
    def top(self) -> int:
        """The greatest code."""
        return 2 * len(self.dictionary) + 1


@dataclass(frozen=True, slots=True)
class Conjunctions:
    """Rows, each of which asks for all of its predicates. A subscription is true if one of its rows is."""

    numbers: NDArray[np.int32]
    """The subscription of each row."""
    predicates: tuple[CodedPredicates, ...]
    inexact: NDArray[np.bool_]
    """Rows that say less than their subscription does: events that they match must be verified."""

    def __len__(self) -> int:
        return len(self.numbers)

    def without_rows(self) -> Conjunctions:
        """The same columns and dictionaries, and no rows."""
        none = [replace(each, rows=each.rows[:0], low=each.low[:0], high=each.high[:0]) for each in self.predicates]
        return Conjunctions(self.numbers[:0], tuple(none), self.inexact[:0])

    @property
    def columns(self) -> list[Column]:
        return [each.column for each in self.predicates]

    @property
    def dictionaries(self) -> list[Dictionary]:
        return [each.dictionary for each in self.predicates]


def code(
    numbers: ArrayLike, columns: Sequence[ColumnPredicates], inexact: NDArray[np.bool_] | None = None
) -> Conjunctions:
    """Rank the constants that the predicates of each column use, and write the predicates in codes."""
    row_numbers = np.asarray(numbers, np.int32)
    if inexact is None:
        inexact = np.zeros(len(row_numbers), np.bool_)
    return Conjunctions(row_numbers, tuple(map(_coded, columns)), inexact)


def _coded(predicates: ColumnPredicates) -> CodedPredicates:
    low, high = predicates.low, predicates.high
    constants = constants_of(predicates.column, predicates.constants)
    used = np.zeros(len(constants), np.bool_)
    used[low[low >= 0]] = True
    used[high[high >= 0]] = True
    dictionary, ranks = dictionary_of(predicates.column, selected(constants, used), _is_ordered(predicates))
    # The last place is for -1: no constant.
    codes = np.zeros(len(used) + 1, np.uint32)
    codes[:-1][used] = 2 * ranks + 1
    low_codes = codes[low] + predicates.low_side + np.uint32(1)
    low_codes[low < 0] = 1
    high_codes = codes[high] + predicates.high_side
    high_codes[high < 0] = 2 * len(dictionary) + 1
    return CodedPredicates(predicates.column, dictionary, predicates.rows, low_codes, high_codes)


def _is_ordered(predicates: ColumnPredicates) -> bool:
    """Whether some predicate is not =, <> or any value."""
    is_equality = (predicates.low == predicates.high) & (predicates.low_side != predicates.high_side)
    is_any = (predicates.low < 0) & (predicates.high < 0)
    return not bool((is_equality | is_any).all())
