"""Rows in the codes of existing dictionaries, for subscriptions that come after an index was built.

A constant of the dictionary has its code. Any other constant lies in a gap: the row then admits the whole gap, and is
inexact.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.conjunctions import CodedPredicates, Conjunctions
from harken.codes.constants import as_cells, constants_of
from harken.codes.dictionary import Dictionary, Strings
from harken.codes.flat import Flat
from harken.kernels import recoding as kernels


def recode(flat: Flat, dictionaries: Mapping[Column, Dictionary]) -> Conjunctions:
    """The rows in the codes of these dictionaries, one for each column of the rows."""
    inexact = flat.inexact.copy()
    coded = [_recoded(each, dictionaries[each.column], inexact) for each in flat.columns]
    return Conjunctions(flat.numbers, tuple(coded), inexact)


def _recoded(given: ColumnPredicates, dictionary: Dictionary, inexact: NDArray[np.bool_]) -> CodedPredicates:
    constants = constants_of(given.column, given.constants)
    codes = dictionary.encode(as_cells(given.column, constants)).astype(np.int64)
    count = len(given.rows)
    low, high, exact = np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.bool_)
    is_ordered = not isinstance(dictionary, Strings) or dictionary.ordered
    top = 2 * len(dictionary) + 1
    kernels.recode(codes, given.low, given.low_side, given.high, given.high_side, top, is_ordered, low, high, exact)
    if not exact.all():
        inexact[given.rows[~exact]] = True
    return CodedPredicates(given.column, dictionary, given.rows, low, high)
