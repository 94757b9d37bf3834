"""The workloads W0 to W4 of ToPSS (Ashayer, Leung, Jacobsen; section 5.1): few operators on integers, drawn evenly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harken_lab.workloads.conditions import EQUAL, LESS, MORE, UNEQUAL, Conditions, on_integers
from harken_lab.workloads.drawing import rows_where, subsets
from harken_lab.workloads.workload import PlainModel

_OPERATORS = np.array([EQUAL, UNEQUAL, LESS, MORE], np.uint8)
_MOST_ATTRIBUTES = 10_000


@dataclass(frozen=True)
class Topss(PlainModel):
    """Attributes `a1`, `a2`, …, each with an interval of integers for its domain."""

    attributes: int = 120
    """The number of attributes (n_t)."""
    predicates: tuple[int, int] = (1, 20)
    """The least and the most predicates of a subscription (n_P), each on another attribute."""
    carried: int = 120
    """The number of attributes of an event (n_A)."""
    domains: tuple[tuple[int, int], ...] = ((1, 250),)
    """The least and the greatest value (l, u). Attributes take these domains in turn."""
    subscription_batch: int = 120
    """Subscriptions that are submitted together (n_Sb): see `Workload.batches`. It changes nothing that is drawn."""
    event_batch: int = 100
    """Events that are submitted together (n_Eb): see `Workload.event_batches`. It changes nothing that is drawn."""

    def __post_init__(self) -> None:
        if not 1 <= self.attributes <= _MOST_ATTRIBUTES:
            raise ValueError(f"`attributes` is 1 to {_MOST_ATTRIBUTES:,}, not {self.attributes:,}")
        if len(self.predicates) != 2 or not 1 <= self.predicates[0] <= self.predicates[1] <= self.attributes:
            raise ValueError(
                f"`predicates` are a least and a most number within 1 to {self.attributes}, the attributes"
            )
        if not 0 <= self.carried <= self.attributes:
            raise ValueError(f"`carried` is 0 to {self.attributes}, the attributes, not {self.carried}")
        if self.subscription_batch < 1 or self.event_batch < 1:
            raise ValueError("`subscription_batch` and `event_batch` are 1 or more")
        if not all(len(each) == 2 and 0 <= each[1] - each[0] < 2**31 for each in self.domains):
            raise ValueError("`domains` are pairs of a least and a greatest value, less than 2^31 apart")

    def conditions(self, rows: int, rng: np.random.Generator) -> Iterator[Conditions]:
        least, most = self.predicates
        wanted = rng.integers(least, most, rows, endpoint=True)
        for number, mask in enumerate(subsets(wanted, self.attributes, rng)):
            name, low, high = self._attribute(number)
            chosen = rows_where(mask)
            operators = _OPERATORS[rng.integers(0, len(_OPERATORS), len(chosen), np.uint8)]
            values = rng.integers(0, high - low, len(chosen), np.int32, endpoint=True)
            yield on_integers(name, chosen, operators, values, low)

    def events(self, rows: int, rng: np.random.Generator) -> pa.Table:
        columns = {}
        for number, mask in enumerate(subsets(np.full(rows, self.carried), self.attributes, rng)):
            name, low, high = self._attribute(number)
            columns[name] = pa.array(rng.integers(low, high, rows, endpoint=True), mask=~mask)
        return pa.table(columns)

    def _attribute(self, number: int) -> tuple[str, int, int]:
        low, high = self.domains[number % len(self.domains)]
        return f"a{number + 1}", low, high
