"""The stock workload of XML publish/subscribe on a relational database (Tian et al., section 5.1), as XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from harken_lab.workloads.workload import WrittenModel

NUMBERS = ("price", "open", "change", "low", "high", "volume")
COMPARED = 4
"""Inequalities of a subscription, on different numbers."""
_VALUES = 100_000
_CENTS = frozenset(NUMBERS) - {"volume"}
_BLOCK = 65_536


@dataclass(frozen=True)
class StockXml(WrittenModel):
    """Flat messages of a symbol and six numbers. A subscription tests the symbol and compares four of the numbers."""

    language: ClassVar[str] = "xpath"

    symbols: int = 3_000
    selectivity: float = 1e-5
    """The share of pairs of a message and a subscription that match: 100,000 of 10,000 · 1,000,000 pairs."""

    def __post_init__(self) -> None:
        if not 1 <= self.symbols < 2**31:
            raise ValueError("`symbols` is from 1 to below 2^31")
        if not 0 <= self.selectivity * self.symbols <= 1:
            raise ValueError(f"`selectivity` is from 0 to 1 / `symbols`, not {self.selectivity}")

    @property
    def share(self) -> float:
        """The mean share of messages for which an inequality holds."""
        return float((self.selectivity * self.symbols) ** (1 / COMPARED))

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        for start in range(0, rows, _BLOCK):
            yield from self._block(min(_BLOCK, rows - start), rng)

    def _block(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        symbols = rng.integers(0, self.symbols, rows).tolist()
        which = np.sort(np.argsort(rng.random((rows, len(NUMBERS))), axis=1)[:, :COMPARED], axis=1)
        is_more = rng.random((rows, COMPARED)) < 0.5
        # The share that an inequality admits varies as much as it can around the mean.
        admitted = self.share + min(self.share, 1 - self.share) * rng.uniform(-1, 1, (rows, COMPARED))
        bounds = np.rint(_VALUES * np.where(is_more, 1 - admitted, admitted)).astype(np.int64)
        bounds -= is_more  # > admits values above its bound, < values below
        for symbol, names, signs, values in zip(
            symbols, which.tolist(), is_more.tolist(), bounds.tolist(), strict=True
        ):
            comparisons = "".join(
                f" and /stock/{NUMBERS[name]}/text() {'>' if sign else '<'} {_number(NUMBERS[name], value)}"
                for name, sign, value in zip(names, signs, values, strict=True)
            )
            yield f"/stock/symbol/text() = '{_symbol(symbol)}'{comparisons}"

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        symbols = rng.integers(0, self.symbols, rows).tolist()
        values = rng.integers(0, _VALUES, (rows, len(NUMBERS))).tolist()
        messages = [_message(symbol, numbers) for symbol, numbers in zip(symbols, values, strict=True)]
        return pa.table({"document": pa.array(messages, pa.string())})


def _message(symbol: int, values: list[int]) -> str:
    numbers = "".join(f"<{name}>{_number(name, value)}</{name}>" for name, value in zip(NUMBERS, values, strict=True))
    return f'<?xml version="1.0"?><stock><symbol>{_symbol(symbol)}</symbol>{numbers}</stock>'


def _symbol(number: int) -> str:
    return f"S{number:04d}"


def _number(name: str, value: int) -> str:
    """A value as text: a volume as an integer, other numbers in hundredths. Half of all changes are below 0."""
    if name == "change":
        value -= _VALUES // 2
    return f"{value / 100:.2f}" if name in _CENTS else str(value)
