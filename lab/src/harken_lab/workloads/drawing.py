"""Which attributes a subscription or an event has, drawn for all rows at once, an attribute at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


def rows_where(mask: Mask) -> NDArray[np.int32]:
    """The rows at which the mask is true, ascending."""
    return np.flatnonzero(mask).astype(np.int32)


def subsets(wanted: NDArray[np.int64], attributes: int, rng: np.random.Generator) -> Iterator[Mask]:
    """For every attribute the rows that have it. Row i has `wanted[i]` attributes; all subsets are equally likely.

    Selection sampling (Knuth, The Art of Computer Programming, 3.4.2, algorithm S), in all rows at once.
    """
    lacking = wanted.astype(np.uint16)
    for left in range(attributes, 0, -1):
        mask = rng.integers(0, left, len(lacking), np.uint16) < lacking
        lacking -= mask
        yield mask


def independent(probabilities: Sequence[float], rows: int, rng: np.random.Generator) -> Iterator[Mask]:
    """For every attribute the rows that have it, each with its probability."""
    for probability in probabilities:
        yield rng.random(rows) < probability


def independent_not_none(probabilities: Sequence[float], rows: int, rng: np.random.Generator) -> Iterator[Mask]:
    """As `independent`, but every row has at least one attribute, as if rows without any had been drawn again.

    The first attribute of a row is drawn from the distribution of first attributes. The later ones are independent.
    """
    chances = np.asarray(probabilities, np.float64)
    is_first = chances * np.cumprod(np.append(1.0, 1.0 - chances[:-1]))
    first = rng.choice(len(chances), rows, p=is_first / is_first.sum())
    for attribute, probability in enumerate(probabilities):
        later = (first < attribute) & (rng.random(rows) < probability)
        yield (first == attribute) | later
