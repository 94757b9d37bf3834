"""Rows with their constants, before coding: what layers are built and merged from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.conjunctions import Conjunctions, code
from harken.codes.constants import concatenated, constants_of
from harken.codes.flatten import flatten
from harken.language.normal_form import NormalForm


@dataclass(frozen=True, slots=True)
class Flat:
    """Rows of subscriptions. A row holds if all its predicates do, a subscription if one of its rows does."""

    numbers: NDArray[np.int32]
    """The subscription of each row."""
    columns: list[ColumnPredicates]
    inexact: NDArray[np.bool_]
    """Rows that say less than their subscription does: events that they match must be verified."""
    overlapping: NDArray[np.bool_]
    """Rows of subscriptions of which several rows may be true of one event."""

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_forms(cls, entries: Iterable[tuple[int, NormalForm]]) -> Flat:
        """The rows of normal forms."""
        numbers, columns, inexact, overlapping = flatten(entries)
        # Convert constants to arrays once, not at each use.
        columns = [replace(each, constants=constants_of(each.column, each.constants)) for each in columns]
        return cls(numbers, columns, inexact, overlapping)

    @classmethod
    def of_predicates(cls, numbers: NDArray[np.int32], columns: list[ColumnPredicates]) -> Flat:
        """Rows that are exact, one a subscription."""
        return cls(numbers, columns, np.zeros(len(numbers), np.bool_), np.zeros(len(numbers), np.bool_))

    @classmethod
    def of_codes(cls, coded: Conjunctions, overlapping: NDArray[np.bool_]) -> Flat:
        """Coded rows, turned back into rows with constants."""
        columns: list[ColumnPredicates] = []
        for each in coded.predicates:
            low, high = each.low.astype(np.int32), each.high.astype(np.int32)
            # The low code of a cut before the constant of rank r is 2r + 2, behind it 2r + 3; the high one is one less.
            low_rank, high_rank = (low >> 1) - 1, ((high + 1) >> 1) - 1
            low_rank[low == 1] = -1
            high_rank[high == each.top] = -1
            columns.append(
                ColumnPredicates(
                    each.column,
                    each.dictionary.constants,
                    each.rows,
                    low_rank,
                    (low & 1).astype(np.uint8),
                    high_rank,
                    (~high & 1).astype(np.uint8),
                )
            )
        return cls(coded.numbers, columns, coded.inexact, overlapping)

    def coded(self) -> Conjunctions:
        """The rows in codes of dictionaries of their own."""
        return code(self.numbers, self.columns, self.inexact)

    def only(self, wanted: NDArray[np.bool_]) -> Flat:
        """The rows that are wanted."""
        if wanted.all():
            return self
        places = (np.cumsum(wanted) - 1).astype(np.int32)
        columns: list[ColumnPredicates] = []
        for each in self.columns:
            kept = wanted[each.rows]
            columns.append(
                replace(
                    each,
                    rows=places[each.rows[kept]],
                    low=each.low[kept],
                    low_side=each.low_side[kept],
                    high=each.high[kept],
                    high_side=each.high_side[kept],
                )
            )
        return Flat(self.numbers[wanted], columns, self.inexact[wanted], self.overlapping[wanted])


def joined(flats: Sequence[Flat]) -> Flat:
    """Concatenate rows. Columns without predicates are dropped."""
    if len(flats) == 1 and all(len(each.rows) for each in flats[0].columns):
        return flats[0]
    parts: dict[Column, list[tuple[int, ColumnPredicates]]] = {}
    first = 0
    for flat in flats:
        for each in flat.columns:
            if len(each.rows):
                parts.setdefault(each.column, []).append((first, each))
        first += len(flat)
    empty = np.empty(0, np.bool_)
    return Flat(
        np.concatenate([np.empty(0, np.int32), *(flat.numbers for flat in flats)]),
        [joined_column(column, several) for column, several in parts.items()],
        np.concatenate([empty, *(flat.inexact for flat in flats)]),
        np.concatenate([empty, *(flat.overlapping for flat in flats)]),
    )


def joined_column(column: Column, parts: list[tuple[int, ColumnPredicates]]) -> ColumnPredicates:
    constants = [constants_of(column, each.constants) for _, each in parts]
    firsts = np.cumsum([0, *map(len, constants)])[:-1]
    low = [np.where(each.low < 0, -1, each.low + first) for (_, each), first in zip(parts, firsts, strict=True)]
    high = [np.where(each.high < 0, -1, each.high + first) for (_, each), first in zip(parts, firsts, strict=True)]
    return ColumnPredicates(
        column,
        concatenated(constants),
        np.concatenate([each.rows + np.int32(row) for row, each in parts]),
        np.concatenate(low).astype(np.int32),
        np.concatenate([each.low_side for _, each in parts]),
        np.concatenate(high).astype(np.int32),
        np.concatenate([each.high_side for _, each in parts]),
    )
