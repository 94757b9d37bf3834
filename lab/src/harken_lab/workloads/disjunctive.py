"""Subscriptions with alternatives: any of several conjunctions, over different attributes, has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.workload import WrittenModel


@dataclass(frozen=True)
class Disjunctive(WrittenModel):
    """Attributes `s1`, `s2`, … with values 'v1', 'v2', …, and `n1`, `n2`, … with integers from 0 on."""

    strings: int = 4
    string_values: int = 5_000
    numbers: int = 8
    number_values: int = 10_000
    conjunctions: tuple[int, int] = (2, 8)
    """The least and the most conjunctions of a subscription."""
    in_event: float = 0.8
    """The probability that an event has an attribute."""

    def __post_init__(self) -> None:
        if self.strings < 1 or self.numbers < 2:
            raise ValueError("`strings` is 1 or more, and `numbers` 2 or more")
        if not all(1 <= each < 2**31 for each in (self.string_values, self.number_values)):
            raise ValueError("`string_values` and `number_values` are from 1 to below 2^31")
        if len(self.conjunctions) != 2 or not 1 <= self.conjunctions[0] <= self.conjunctions[1] <= 1_000:
            raise ValueError("`conjunctions` are a least and a most number within 1 to 1,000")
        if not 0 <= self.in_event <= 1:
            raise ValueError(f"`in_event` is a probability, not {self.in_event}")

    def texts(self, rows: int, rng: np.random.Generator) -> Iterator[str]:
        counts = rng.integers(*self.conjunctions, rows, endpoint=True)
        parts = iter(list(self._conjunctions(int(counts.sum()), rng)))
        for count in counts.tolist():
            yield " OR ".join(f"({next(parts)})" for _ in range(count))

    def _conjunctions(self, count: int, rng: np.random.Generator) -> Iterator[str]:
        strings = rng.integers(1, self.strings, count, endpoint=True).tolist()
        values = rng.integers(1, self.string_values, count, endpoint=True).tolist()
        first = rng.integers(0, self.numbers, count)
        second = (first + rng.integers(1, self.numbers, count)) % self.numbers
        bounds = rng.integers(0, self.number_values, (2, count)).tolist()
        kinds = rng.integers(0, 4, count).tolist()
        for each in zip(strings, values, first.tolist(), second.tolist(), *bounds, kinds, strict=True):
            string, value, one, other, bound, more, kind = each
            test = f"s{string} = 'v{value}' AND n{one + 1}"
            if kind == 0:
                yield f"{test} BETWEEN {bound} AND {bound + self.number_values // 4}"
            elif kind == 1:
                yield f"{test} <= {bound}"
            else:
                yield f"{test} >= {bound} AND n{other + 1} {'<=' if kind == 2 else '>='} {more}"

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        columns = {}
        names = pa.array([f"v{number + 1}" for number in range(self.string_values)])
        for number in range(self.strings):
            places = pa.array(rng.integers(0, self.string_values, rows), mask=rng.random(rows) >= self.in_event)
            columns[f"s{number + 1}"] = names.take(places)
        for number in range(self.numbers):
            values = rng.integers(0, self.number_values, rows)
            columns[f"n{number + 1}"] = pa.array(values, mask=rng.random(rows) >= self.in_event)
        return pa.table(columns)
