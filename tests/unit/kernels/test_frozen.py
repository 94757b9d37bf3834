"""Named tuples of arrays as words, and as what they were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from harken.kernels.compile import kernel
from harken.kernels.frozen import Grid, frozen, thawing


class Inner(NamedTuple):
    grid: Grid[np.uint16]
    flags: NDArray[np.bool_]


class Outer(NamedTuple):
    numbers: NDArray[np.int64]
    inner: Inner
    size: int
    nothing: NDArray[np.float64]


_thawed, _flags, _nothing = thawing(Outer), thawing(Outer, "inner", "flags"), thawing(Outer, "nothing")
_inner, _size = thawing(Outer, "inner"), thawing(Outer, "size")


@kernel
def _read_and_write(words, row, column):
    outer = _thawed(words)
    outer.numbers[1] = 77
    shape = outer.inner.grid.shape[0] * 10 + outer.inner.grid.shape[1]
    return outer.inner.grid[row, column], shape, outer.inner.flags[2], outer.size, outer.nothing.size


@kernel
def _read_fields(words):
    return _flags(words)[2], _inner(words).grid[2, 3], _size(words), _nothing(words).size


def given() -> Outer:
    grid = np.arange(12, dtype=np.uint16).reshape(3, 4)
    return Outer(np.zeros(5, np.int64), Inner(grid, np.array([False, False, True])), -3, np.empty(0))


def test_a_kernel_reads_and_writes_the_arrays_themselves() -> None:
    outer = given()
    outer.inner.grid.flags.writeable = False  # as in a mapped file: that makes no difference
    assert _read_and_write(frozen(outer), 2, 1) == (9, 34, True, -3, 0)
    assert outer.numbers.tolist() == [0, 77, 0, 0, 0]


def test_a_field_is_thawed_by_itself() -> None:
    outer = given()
    assert _read_fields(frozen(outer)) == (True, 11, -3, 0)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(5, np.int32), np.zeros((5, 1), np.int64), np.zeros(10, np.int64)[::2]],
    ids=["items", "dimensions", "gaps"],
)
def test_what_is_not_as_declared_is_rejected(wrong: np.ndarray) -> None:
    with pytest.raises(TypeError, match="Outer has"):
        frozen(given()._replace(numbers=wrong))
