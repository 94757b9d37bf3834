"""The stock workload of XML publish/subscribe on a relational database (Tian et al., section 5.1), as flat events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.conditions import LESS, MORE, Conditions, on_integers, on_strings
from harken_lab.workloads.workload import PlainModel

_NUMBERS = ("price", "open", "high", "volume")


@dataclass(frozen=True)
class Stock(PlainModel):
    """A `symbol`, and `price`, `open`, `high` and `volume`, which are integers from 0 to below `values`."""

    symbols: int = 3_000
    values: int = 100_000
    reach: float = 0.56
    """An inequality admits at most this share of the values: half of it on average, at either end."""

    def __post_init__(self) -> None:
        if not (1 <= self.symbols < 2**31 and 1 <= self.values < 2**31):
            raise ValueError("`symbols` and `values` are from 1 to below 2^31")
        if not 0 <= self.reach <= 1:
            raise ValueError(f"`reach` is a share, from 0 to 1, not {self.reach}")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        all_rows = np.arange(rows, dtype=np.int32)
        yield on_strings("symbol", all_rows, rng.integers(0, self.symbols, rows, np.int32), self._symbols())
        for name in _NUMBERS:
            is_more = rng.random(rows) < 0.5
            share = self.reach * rng.random(rows)
            bounds = np.rint(self.values * np.where(is_more, 1.0 - share, share)).astype(np.int32)
            yield on_integers(name, all_rows, np.where(is_more, np.uint8(MORE), np.uint8(LESS)), bounds, 0)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        symbols = pa.array(self._symbols()).take(pa.array(rng.integers(0, self.symbols, rows)))
        return pa.table({"symbol": symbols} | {name: rng.integers(0, self.values, rows) for name in _NUMBERS})

    def _symbols(self) -> list[str]:
        return [f"S{number:04d}" for number in range(self.symbols)]
