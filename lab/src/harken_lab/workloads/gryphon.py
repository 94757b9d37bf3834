"""The workload of Gryphon's matching tree (Aguilera et al., PODC 1999): equality tests, popular ones and rare ones.

With `ranges`, a share of the tests are ranges, which the paper leaves to later work.

The text of the paper that survives lacks its numbers; the defaults are chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken_lab.workloads.conditions import AT_LEAST, AT_MOST, EQUAL, Conditions, on_integers
from harken_lab.workloads.drawing import independent_not_none, rows_where
from harken_lab.workloads.workload import PlainModel


@dataclass(frozen=True)
class Gryphon(PlainModel):
    """Attributes `a1`, `a2`, … with values 1, 2, … An event has all of them, with values drawn evenly."""

    attributes: int = 30
    values: int = 5
    popularity: float = 0.98
    """The probability that a subscription tests the first attribute. One without any test is drawn again."""
    decline: float = 0.78
    """The factor from the probability of an attribute to that of the next."""
    exponent: float = 1.0
    """Value k is tested in proportion to k^-exponent (Zipf)."""
    ranges: float = 0.0
    """The share of the tests that are a range, `<=` or `>=` as often. The others are equalities."""

    def __post_init__(self) -> None:
        if self.attributes < 1 or not 1 <= self.values < 2**31:
            raise ValueError("`attributes` and `values` are 1 or more, and `values` is below 2^31")
        if not (0 < self.popularity <= 1 and 0 <= self.decline <= 1):
            raise ValueError("`popularity` and `decline` are from 0 to 1, and the first is not 0")
        if not 0 <= self.ranges <= 1:
            raise ValueError(f"`ranges` is a share from 0 to 1, not {self.ranges}")
        if not 0 <= self.exponent < 100:
            raise ValueError(f"`exponent` is from 0 to below 100, not {self.exponent}")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        chances = [self.popularity * self.decline**number for number in range(self.attributes)]
        weights = np.arange(1, self.values + 1) ** -float(self.exponent)
        for number, mask in enumerate(independent_not_none(chances, rows, rng)):
            chosen = rows_where(mask)
            values = rng.choice(self.values, len(chosen), p=weights / weights.sum())
            yield on_integers(f"a{number + 1}", chosen, self._operators(len(chosen), rng), values, 1)

    def _operators(self, count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        operators = np.full(count, EQUAL, np.uint8)
        if self.ranges:  # without ranges the workload is the same as before there were any
            is_range = rng.random(count) < self.ranges
            operators[is_range] = np.where(rng.random(int(is_range.sum())) < 0.5, AT_MOST, AT_LEAST)
        return operators

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        names = [f"a{number + 1}" for number in range(self.attributes)]
        return pa.table({name: rng.integers(1, self.values, rows, endpoint=True) for name in names})
