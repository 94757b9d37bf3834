"""The workload of REIN (Qian et al., INFOCOM 2014), rows of many ranges: intervals of one width, drawn evenly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.conditions import AT_LEAST, AT_MOST, Conditions, on_integers
from harken_lab.workloads.drawing import rows_where, subsets
from harken_lab.workloads.workload import PlainModel


@dataclass(frozen=True)
class Ranges(PlainModel):
    """Attributes `a1`, `a2`, … with integers from 0 to below `values`. An event has all of them."""

    attributes: int = 20
    predicates: int = 10
    """Attributes on which a subscription has an interval."""
    values: int = 1_000_000
    width: float = 0.5
    """The share of the values that an interval admits."""

    def __post_init__(self) -> None:
        if not 1 <= self.predicates <= self.attributes <= 10_000:
            raise ValueError("`attributes` is 1 to 10,000, and `predicates` from 1 to that")
        if not 1 <= self.values < 2**31 or not 0 < self.width <= 1:
            raise ValueError("`values` is from 1 to below 2^31, and `width` a share above 0")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        width = max(1, round(self.values * self.width))
        for number, mask in enumerate(subsets(np.full(rows, self.predicates), self.attributes, rng)):
            chosen = rows_where(mask)
            low = rng.integers(0, self.values - width, len(chosen), np.int32, endpoint=True)
            for operator, bounds in ((AT_LEAST, low), (AT_MOST, low + np.int32(width - 1))):
                yield on_integers(f"a{number + 1}", chosen, np.full(len(chosen), operator, np.uint8), bounds, 0)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        names = [f"a{number + 1}" for number in range(self.attributes)]
        return pa.table({name: rng.integers(0, self.values, rows) for name in names})
