"""Cuts to codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harken.codes.columns import Column, ColumnPredicates
from harken.codes.conjunctions import CodedPredicates, code
from harken.codes.dictionary import Strings
from harken.schema import Kind

COLUMN = Column(("x",), Kind.NUMBER)


def predicates(constants: Any, cuts: list[tuple[int, int, int, int]], column: Column = COLUMN) -> ColumnPredicates:
    """From (low, its side, high, its side), one for each row."""
    low, low_side, high, high_side = np.array(cuts, np.int32).reshape(-1, 4).T
    rows = np.arange(len(cuts), dtype=np.int32)
    return ColumnPredicates(column, constants, rows, low, low_side.astype(np.uint8), high, high_side.astype(np.uint8))


def coded(constants: Any, *cuts: tuple[int, int, int, int], column: Column = COLUMN) -> CodedPredicates:
    (found,) = code(np.arange(len(cuts)), [predicates(constants, list(cuts), column)]).predicates
    return found


@pytest.mark.parametrize(
    ("cuts", "codes"),
    [
        ((1, 0, 1, 1), (4, 4)),  # = 20
        ((1, 1, 1, 0), (5, 3)),  # <> 20
        ((-1, 0, 1, 0), (1, 3)),  # < 20
        ((-1, 0, 1, 1), (1, 4)),  # <= 20
        ((1, 1, -1, 0), (5, 7)),  # > 20
        ((1, 0, -1, 0), (4, 7)),  # >= 20
        ((-1, 0, -1, 0), (1, 7)),  # any
        ((0, 0, 2, 1), (2, 6)),  # from 10 to 30
        ((2, 0, 0, 1), (6, 2)),  # all but what lies between 10 and 30
    ],
)
def test_cuts_to_codes(cuts: tuple[int, int, int, int], codes: tuple[int, int]) -> None:
    everything = [(place, 0, place, 1) for place in range(3)]
    found = coded(np.array([10, 20, 30]), cuts, *everything)
    assert (found.low[0], found.high[0]) == codes
    assert found.top == 7
    assert found.low.dtype == found.high.dtype == np.uint32


def test_constants_come_in_any_order() -> None:
    found = coded(np.array([30, 10, 20]), (0, 0, 0, 1), (1, 0, 1, 1), (2, 0, 2, 1))
    assert found.low.tolist() == found.high.tolist() == [6, 2, 4]


@pytest.mark.parametrize("constants", [np.array([30, 10, 20]), [30, 10, 20], ["c", "a", "b"]], ids=str)
def test_only_what_is_used_is_kept(constants: Any) -> None:
    kind = Kind.STRING if isinstance(constants[0], str) else Kind.NUMBER
    found = coded(constants, (0, 0, 0, 1), (2, 0, -1, 0), column=Column(("x",), kind))
    assert len(found.dictionary) == 2
    assert (found.low.tolist(), found.high.tolist()) == ([4, 2], [4, 5])


def test_no_predicates_and_no_rows() -> None:
    found = code([], [predicates([], [])])
    assert len(found) == 0
    assert len(found.dictionaries[0]) == 0
    assert code([5], []).numbers.tolist() == [5]


@pytest.mark.parametrize(
    ("cuts", "ordered"),
    [
        ([(0, 0, 0, 1)], False),
        ([(0, 0, 0, 1), (1, 1, 1, 0), (-1, 0, -1, 0)], False),
        ([(0, 0, 0, 1), (-1, 0, 1, 0)], True),
        ([(0, 0, 1, 1)], True),
    ],
)
def test_the_order_of_strings_matters_only_to_some(cuts: list[tuple[int, int, int, int]], ordered: bool) -> None:
    found = coded(["a", "b"], *cuts, column=Column(("x",), Kind.STRING))
    assert isinstance(found.dictionary, Strings)
    assert found.dictionary.ordered is ordered


def test_rows_are_exact_unless_told() -> None:
    assert code([1, 2], []).inexact.tolist() == [False, False]
    assert code([1, 2], [], np.array([True, False])).inexact.tolist() == [True, False]


def test_columns_and_dictionaries_go_together() -> None:
    other = Column(("y",), Kind.STRING)
    found = code([0], [predicates([1], [(0, 0, 0, 1)]), predicates(["a"], [(0, 0, 0, 1)], other)])
    assert found.columns == [COLUMN, other]
    assert [type(each).__name__ for each in found.dictionaries] == ["Numbers", "Strings"]
