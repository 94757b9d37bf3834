"""Many kinds of event, each with attributes of its own: thousands of attributes, of which an event has a few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.conditions import AT_LEAST, AT_MOST, EQUAL, Conditions, on_integers, on_strings
from harken_lab.workloads.drawing import rows_where, subsets
from harken_lab.workloads.workload import PlainModel

_STRINGS = 5
"""Every fifth attribute is a string."""


@dataclass(frozen=True)
class AttributesMany(PlainModel):
    """Attributes `a1`, `a2`, …, as many for each kind. An event has those of its kind, and some of the next kind."""

    kinds: int = 200
    attributes: int = 25
    """Of each kind."""
    more: int = 5
    """Attributes of the next kind that an event has."""
    predicates: tuple[int, int] = (3, 8)
    """The least and the most predicates of a subscription, all on attributes of one kind."""
    values: int = 100

    def __post_init__(self) -> None:
        if min(self.kinds, self.attributes) < 1 or self.kinds * self.attributes > 100_000:
            raise ValueError("`kinds` and `attributes` are 1 or more, and their product is at most 100,000")
        if len(self.predicates) != 2 or not 1 <= self.predicates[0] <= self.predicates[1] <= self.attributes:
            raise ValueError(f"`predicates` are a least and a most number within 1 to {self.attributes}")
        if not 0 <= self.more <= self.attributes or not 1 <= self.values < 2**31:
            raise ValueError("`more` is at most `attributes`, and `values` from 1 to below 2^31")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        kinds = rng.integers(0, self.kinds, rows, np.int32)
        wanted = rng.integers(*self.predicates, rows, endpoint=True)
        names = self._strings()
        for place, mask in enumerate(subsets(wanted, self.attributes, rng)):
            chosen = rows_where(mask)
            chosen = chosen[np.argsort(kinds[chosen], kind="stable")]
            ends = np.searchsorted(kinds[chosen], np.arange(self.kinds + 1))
            values = rng.integers(0, self.values, len(chosen), np.int32)
            ranges = np.where(rng.random(len(chosen)) < 0.5, np.uint8(AT_MOST), np.uint8(AT_LEAST))
            operators = np.where(rng.random(len(chosen)) < 0.5, np.uint8(EQUAL), ranges)
            for kind in range(self.kinds):
                part = slice(ends[kind], ends[kind + 1])
                name = self._name(kind, place)
                if place % _STRINGS == 0:
                    yield on_strings(name, chosen[part], values[part], names)
                else:
                    yield on_integers(name, chosen[part], operators[part], values[part], 1)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        kinds = rng.integers(0, self.kinds, rows)
        values = rng.integers(0, self.values, (self.attributes, rows))
        names = pa.array(self._strings())
        columns = {}
        for kind in range(self.kinds):
            own, before = kinds == kind, (kinds + 1) % self.kinds == kind
            for place in range(self.attributes):
                missing = ~(own | before) if place < self.more else ~own
                if place % _STRINGS == 0:
                    columns[self._name(kind, place)] = names.take(pa.array(values[place], mask=missing))
                else:
                    columns[self._name(kind, place)] = pa.array(values[place] + 1, mask=missing)
        return pa.table(columns)

    def _name(self, kind: int, place: int) -> str:
        return f"a{kind * self.attributes + place + 1}"

    def _strings(self) -> list[str]:
        return [f"v{number + 1}" for number in range(self.values)]
