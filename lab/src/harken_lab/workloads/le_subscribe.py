"""The workload of Le Subscribe (Fabret, Llirbat, Pereira, Shasha): a few optional attributes, strings and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken_lab.workloads.conditions import AT_LEAST, AT_MOST, EQUAL, Conditions, on_integers, on_strings
from harken_lab.workloads.drawing import independent, independent_not_none, rows_where
from harken_lab.workloads.workload import PlainModel


@dataclass(frozen=True)
class LeSubscribe(PlainModel):
    """Attributes `s1`, `s2`, … with values 'v1', 'v2', …, and `n1`, `n2`, … with values 1, 2, …"""

    strings: int = 3
    string_values: int = 200
    numbers: int = 3
    number_values: int = 5_000
    in_subscription: float = 0.5
    """The probability that a subscription tests an attribute. One without any is drawn again."""
    in_event: float = 0.5
    """The probability that an event has an attribute. An event may have none."""
    equality: float = 0.5
    """The probability that the test of a number is an equality (p in the paper). Else it is <= or >=, evenly."""

    def __post_init__(self) -> None:
        if min(self.strings, self.numbers) < 0 or self.strings + self.numbers < 1:
            raise ValueError("`strings` and `numbers` are not negative, and not both 0")
        if not all(1 <= each < 2**31 for each in (self.string_values, self.number_values)):
            raise ValueError("`string_values` and `number_values` are from 1 to below 2^31")
        if not all(0 <= each <= 1 for each in (self.in_event, self.equality)) or not 0 < self.in_subscription <= 1:
            raise ValueError("`in_subscription`, `in_event` and `equality` are probabilities, the first above 0")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        names = self._string_values()
        chances = [self.in_subscription] * (self.strings + self.numbers)
        for number, mask in enumerate(independent_not_none(chances, rows, rng)):
            chosen = rows_where(mask)
            if number < self.strings:
                values = rng.integers(0, self.string_values, len(chosen), np.int32)
                yield on_strings(self._name(number), chosen, values, names)
            else:
                values = rng.integers(0, self.number_values, len(chosen), np.int32)
                yield on_integers(self._name(number), chosen, self._operators(len(chosen), rng), values, 1)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        strings = pa.array(self._string_values())
        columns = {}
        for number, mask in enumerate(independent([self.in_event] * (self.strings + self.numbers), rows, rng)):
            if number < self.strings:
                numbers = pa.array(rng.integers(0, self.string_values, rows), mask=~mask)
                columns[self._name(number)] = strings.take(numbers)
            else:
                numbers = rng.integers(1, self.number_values, rows, endpoint=True)
                columns[self._name(number)] = pa.array(numbers, mask=~mask)
        return pa.table(columns)

    def _operators(self, count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        ranges = np.where(rng.random(count) < 0.5, np.uint8(AT_MOST), np.uint8(AT_LEAST))
        return np.where(rng.random(count) < self.equality, np.uint8(EQUAL), ranges)

    def _name(self, number: int) -> str:
        return f"s{number + 1}" if number < self.strings else f"n{number - self.strings + 1}"

    def _string_values(self) -> list[str]:
        return [f"v{number + 1}" for number in range(self.string_values)]
