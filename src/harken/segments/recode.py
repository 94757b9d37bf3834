"""Rows in codes of dictionaries that were made before: for what comes after an index was built.

A constant that the dictionary knows gives the code that it would have given. One that it does not know lies in a gap;
the row then admits the whole gap, and is inexact.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harken.segments.columns import Column, ColumnPredicates
from harken.segments.conjunctions import CodedPredicates, Conjunctions
from harken.segments.constants import as_cells, constants_of
from harken.segments.dictionary import Dictionary, Strings
from harken.segments.flat import Flat


def recode(flat: Flat, dictionaries: Mapping[Column, Dictionary]) -> Conjunctions:
    """The rows in codes of these dictionaries, which have all columns of the rows."""
    inexact = flat.inexact.copy()
    coded = [_recoded(each, dictionaries[each.column], inexact) for each in flat.columns]
    return Conjunctions(flat.numbers, tuple(coded), inexact)


def _recoded(given: ColumnPredicates, dictionary: Dictionary, inexact: NDArray[np.bool_]) -> CodedPredicates:
    top = 2 * len(dictionary) + 1
    constants = constants_of(given.column, given.constants)
    codes = np.zeros(len(constants) + 1, np.int64)  # the last place is for -1: no constant
    codes[:-1] = dictionary.encode(as_cells(given.column, constants))
    first, second = codes[given.low], codes[given.high]
    low = np.where(given.low < 0, 1, first + (given.low_side & (first & 1 == 0)))
    high = np.where(given.high < 0, top, second - ((1 - given.high_side.astype(np.int64)) & (second & 1 == 0)))
    known = (first & 1 == 0) & (second & 1 == 0)
    is_same = (given.low == given.high) & (given.low >= 0)
    # What lies outside a gap, or between two constants of one gap, cannot be told from the rest.
    vague = ~known & ((first > second) | ((first == second) & ~(is_same & (given.low_side == 0))))
    vague &= (given.low >= 0) & (given.high >= 0)
    if isinstance(dictionary, Strings) and not dictionary.ordered:
        vague |= ~(is_same & (given.low_side != given.high_side)) & ((given.low >= 0) | (given.high >= 0))
    low[vague], high[vague] = 1, top
    inexact[given.rows[~known | vague]] = True
    return CodedPredicates(given.column, dictionary, given.rows, low.astype(np.uint32), high.astype(np.uint32))
