"""Orders of a shop: nested events, with a customer and a list of items, and subscriptions that look into both.

No paper has this workload. It shows the cost of nested attributes, and of arrays, whose elements are tested one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken_lab.workloads.conditions import AT_LEAST, AT_MOST, Conditions, on_integers, on_strings
from harken_lab.workloads.drawing import independent, independent_not_none, rows_where
from harken_lab.workloads.workload import PlainModel

_SEGMENTS = ("new", "regular", "business", "vip")
_AGES = (18, 90)
_MOST_PIECES = 5
_WATCHED = {"customer.country": 0.4, "items.sku": 0.7}
"""The probability that a subscription tests each. A subscription that tests neither is drawn again."""
_OTHERS = {"customer.segment": 0.3, "customer.age": 0.2, "items.price": 0.5, "items.qty": 0.3, "total": 0.4}
"""The probability that a subscription also tests each of these."""
_FIRST_SECOND, _SECONDS = 1_767_225_600, 86_400 * 365  # the year 2026


@dataclass(frozen=True)
class Orders(PlainModel):
    """A `customer` with country, segment and age, `items` with sku, price and qty, their `total`, and `placed_at`."""

    countries: int = 200
    skus: int = 2_000
    prices: int = 500
    """The highest price of an item; the lowest is 1."""
    items: tuple[int, ...] = (1, 4)
    """The least and the most items of an order."""
    unknown: float = 0.1
    """The probability that an order lacks the customer's age, and that it lacks the segment."""

    def __post_init__(self) -> None:
        if not all(1 <= each < 2**31 for each in (self.countries, self.skus, self.prices)):
            raise ValueError("`countries`, `skus` and `prices` are from 1 to below 2^31")
        if len(self.items) != 2 or not 0 <= self.items[0] <= self.items[1] <= 1_000:
            raise ValueError(f"`items` are a least and a most number within 0 to 1,000, not {list(self.items)}")
        if not 0 <= self.unknown <= 1:
            raise ValueError(f"`unknown` is a probability, not {self.unknown}")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        strings = {
            "customer.country": self._countries(),
            "customer.segment": _SEGMENTS,
            "items.sku": self._skus(),
        }
        numbers = {
            "customer.age": _AGES,
            "items.price": (1, self.prices),
            "items.qty": (1, _MOST_PIECES),
            "total": (1, self.prices * _MOST_PIECES),
        }
        watched = independent_not_none(list(_WATCHED.values()), rows, rng)
        others = independent(list(_OTHERS.values()), rows, rng)
        for attribute, mask in zip((*_WATCHED, *_OTHERS), chain(watched, others), strict=True):
            chosen = rows_where(mask)
            if attribute in strings:
                names = strings[attribute]
                yield on_strings(attribute, chosen, rng.integers(0, len(names), len(chosen), np.int32), names)
            else:
                least, most = numbers[attribute]
                operators = np.where(rng.random(len(chosen)) < 0.5, np.uint8(AT_MOST), np.uint8(AT_LEAST))
                values = rng.integers(0, most - least + 1, len(chosen), np.int32)
                yield on_integers(attribute, chosen, operators, values, least)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        customer = pa.StructArray.from_arrays(
            [
                _picked(self._countries(), rng.integers(0, self.countries, rows)),
                _picked(_SEGMENTS, rng.integers(0, len(_SEGMENTS), rows), rng.random(rows) < self.unknown),
                pa.array(rng.integers(*_AGES, rows, endpoint=True), mask=rng.random(rows) < self.unknown),
            ],
            ["country", "segment", "age"],
        )
        least, most = self.items
        ends = np.append(0, np.cumsum(rng.integers(least, most, rows, endpoint=True)))
        prices = rng.integers(1, self.prices, ends[-1], endpoint=True)
        pieces = rng.integers(1, _MOST_PIECES, ends[-1], endpoint=True)
        skus = _picked(self._skus(), rng.integers(0, self.skus, ends[-1]))
        items = pa.StructArray.from_arrays([skus, pa.array(prices), pa.array(pieces)], ["sku", "price", "qty"])
        seconds = pa.array(_FIRST_SECOND + rng.integers(0, _SECONDS, rows), pa.timestamp("s"))
        return pa.table(
            {
                "customer": customer,
                "items": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items),
                "total": np.diff(np.append(0, np.cumsum(prices * pieces))[ends]),
                "placed_at": pc.strftime(seconds, "%Y-%m-%dT%H:%M:%SZ"),
            }
        )

    def _countries(self) -> list[str]:
        return [f"C{number:03d}" for number in range(self.countries)]

    def _skus(self) -> list[str]:
        return [f"K{number:04d}" for number in range(self.skus)]


def _picked(
    names: list[str] | tuple[str, ...], places: NDArray[np.int64], missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    return pa.array(names).take(pa.array(places, mask=missing))
